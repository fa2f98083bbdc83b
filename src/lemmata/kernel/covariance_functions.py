r"""Covariance functions: how alike the values of a random function are at two points, with parameters to be learnt."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = [
    "ConstantKernel",
    "CovarianceFunction",
    "ProductKernel",
    "SumKernel",
]

Scale = float | Sequence[float] | Tensor
SWITCHED = ("bias_variance", "noise")  # what may be 0: then it is not there


class Positive:
    """A number above zero, or several, kept as a parameter, its logarithm: `kernel.variance = 2.0` sets it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.log = f"log_{name}"

    def __get__(self, kernel: Any, owner: type | None = None) -> Any:
        return self if kernel is None else getattr(kernel, self.log).exp()

    def __set__(self, kernel: Any, value: Scale) -> None:
        log = getattr(kernel, self.log)
        with torch.no_grad():
            log.copy_(_positive_number(self.log[4:], value, log.device, torch.float64).log())


class CovarianceFunction(nn.Module):
    r"""What every covariance function has: a Gram matrix of two sets of points, its diagonal, sums and products.

    $$ k(x, x') = \operatorname{Cov}(f(x), f(x')), \qquad (k_1 + k_2)(x, x'), \qquad (k_1 k_2)(x, x') $$

    Parameters are positive numbers, kept as logarithms (`log_variance`), read and set by their names (`variance`), and
    left as they are by a fit where `kernel.log_variance.requires_grad_(False)` says so. A number may stand in place of
    a kernel: `2.0 * RBFKernel() + 0.1`. Parameters are float64 unless `dtype` says otherwise, as they are few and a
    covariance that is inverted forgives no rounding; the matrix has the dtype of the points.

    Shapes:
        x1: (points, features), x2: (others, features), x1 if left out    returns: (points, others)

    Claims: gp.def, gp.linear_layer, gp.rbf_prior
    """

    def forward(
        self, x1: Float[Tensor, "*batch points features"], x2: Float[Tensor, "*batch others features"] | None = None
    ) -> Float[Tensor, "*batch points others"]:
        """The Gram matrix."""
        x1 = self._checked_points("x1", x1)
        return self._gram_matrix(
            x1, x1 if x2 is None else validate.last_axis("x2", self._checked_points("x2", x2), x1.shape[-1])
        )

    def diagonal(self, x: Float[Tensor, "*batch points features"]) -> Float[Tensor, "*batch points"]:
        """The variance of the function at each point, $k(x, x)$."""
        return self._gram_diagonal(self._checked_points("x", x))

    def derivatives(
        self, x1: Float[Tensor, "points features"], x2: Float[Tensor, "others features"] | None = None
    ) -> dict[str, Tensor]:
        r"""$\partial K/\partial\theta$ for each parameter as it is kept, a logarithm: (*parameter, points, others)."""
        names, values = zip(*self.named_parameters(), strict=True)
        gram = self(x1, x2)
        weights = torch.ones_like(gram, requires_grad=True)
        # The gradient of a weighed sum is linear in the weights: its own derivative in them is the one of the matrix.
        sums = torch.autograd.grad((weights * gram).sum(), values, create_graph=True, allow_unused=True)
        found = {}
        for name, value, each in zip(names, values, sums, strict=True):
            rows = [gram.new_zeros(gram.shape)] * value.numel() if each is None else _parameter_gradients(each, weights)
            found[name] = torch.stack(rows).reshape(*value.shape, *gram.shape).detach()
        return found

    def _gram_matrix(self, x1: Tensor, x2: Tensor) -> Tensor:
        raise NotImplementedError

    def _gram_diagonal(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _checked_points(self, name: str, x: Tensor) -> Tensor:
        if validate.tensor(name, x).ndim < 2:
            raise ValueError(f"{name} must be a (points, features) tensor, got shape {tuple(x.shape)}")
        scale = getattr(self, "log_length_scale", None)
        if scale is not None and scale.ndim:
            validate.last_axis(name, x, len(scale))
        if not x.is_floating_point():
            raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}: use {name}.double()")
        return x

    def __add__(self, other: "CovarianceFunction | float") -> "SumKernel":
        return SumKernel(self, _as_kernel(other, self))

    def __mul__(self, other: "CovarianceFunction | float") -> "ProductKernel":
        return ProductKernel(self, _as_kernel(other, self))

    __radd__, __rmul__ = __add__, __mul__

    def extra_repr(self) -> str:
        """Parameters by name, rounded."""
        found = []
        for name, value in self.named_parameters(recurse=False):
            numbers = value.detach().double().exp().reshape(-1).tolist()
            words = ", ".join(f"{number:.4g}" for number in numbers)
            found.append(f"{name.removeprefix('log_')}={f'[{words}]' if value.ndim else words}")
        return ", ".join(found)

    def _keep_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None, **values: Scale) -> None:
        for name, value in values.items():
            log = nn.Parameter(_positive_number(name, value, device, dtype).log())
            # A part that is switched off has no gradient to grow by.
            log.requires_grad = not (isinstance(value, int | float) and value == 0)
            self.register_parameter(f"log_{name}", log)


@system("constant_kernel", title="Constant kernel", kind="module", example="ConstantKernel(2.0)(torch.randn(4, 5, 3))")
class ConstantKernel(CovarianceFunction):
    r"""A random constant, $k(x, x') = \sigma^2$: the level of a function, or the factor of another kernel.

    Shapes:
        x1: (points, features), x2: (others, features)    returns: (points, others)

    Claims: gp.def
    Differs: it does not look at the features, so it does not pass `wrong_width`.

    >>> (ConstantKernel(2.0) + 1.0)(torch.zeros(1, 1)).item()
    3.0
    """

    variance = Positive()

    def __init__(
        self,
        variance: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self._keep_parameters(device, dtype, variance=validate.positive("variance", variance))

    def _gram_matrix(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.variance.to(x1.dtype).expand(*x1.shape[:-1], x2.shape[-2])

    def _gram_diagonal(self, x: Tensor) -> Tensor:
        return self.variance.to(x.dtype).expand(x.shape[:-1])


# --- Of others ---


class SumKernel(CovarianceFunction):
    """The sum of independent functions: covariances add."""

    def __init__(self, *parts: CovarianceFunction) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def _gram_matrix(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self._join_parts([part(x1, None if x2 is x1 else x2) for part in self.parts])

    def _gram_diagonal(self, x: Tensor) -> Tensor:
        parts: Any = self.parts
        return self._join_parts([part.diagonal(x) for part in parts])

    def _join_parts(self, found: list[Tensor]) -> Tensor:
        return sum(found[1:], start=found[0])


class ProductKernel(SumKernel):
    """The product of independent functions: covariances multiply. Variances of the factors do too: fix all but one."""

    def _join_parts(self, found: list[Tensor]) -> Tensor:
        product = found[0]
        for each in found[1:]:
            product = product * each
        return product


def _positive_number(name: str, value: Scale, device: Any, dtype: Any) -> Tensor:
    """One number, or a vector of them."""
    dtype = dtype or torch.float64
    if isinstance(value, int | float):
        checked = validate.number(name, value, least=0) if name in SWITCHED else validate.positive(name, value)
        return torch.tensor(checked, device=device, dtype=dtype)
    several = validate.floating(name, torch.as_tensor(value, dtype=dtype, device="cpu"))
    if several.ndim > 1 or bool((several <= 0).any()):
        raise ValueError(f"{name} must be one number > 0, or one for each feature, got {several.tolist()}")
    return several.to(torch.empty(0, device=device).device)


def _parameter_gradients(values: Tensor, weights: Tensor) -> list[Tensor]:
    return [torch.autograd.grad(value, weights, retain_graph=True)[0] for value in values.reshape(-1)]


def _as_kernel(part: CovarianceFunction | float, beside: CovarianceFunction) -> CovarianceFunction:
    if isinstance(part, CovarianceFunction):
        return part
    like = next(beside.parameters())
    return ConstantKernel(validate.positive("variance", part), like.device, like.dtype)
