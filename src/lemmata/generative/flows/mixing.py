r"""Layers that mix features, so that the next layer divides them otherwise: a permutation, and a learnt matrix."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.generative.flows.transform import Transform
from lemmata.marks import system

__all__ = ["InvertibleConvolution", "Permutation"]


@system(
    "flow_permutation",
    title="Permutation of features",
    kind="module",
    example="Permutation((2, 0, 1))(torch.randn(5, 3))",
)
class Permutation(Transform):
    r"""Features in another order: $x_j = z_{\sigma(j)}$, which stretches nothing.

    $$ x_j = z_{\sigma(j)}, \qquad \log|\det| = 0 $$

    Shapes:
        z: (batch, features)    returns: x (batch, features), log_det (batch,)

    Claims: flow.log_density
    Source: L. Dinh, J. Sohl-Dickstein and S. Bengio, Density estimation using Real NVP (2017).

    >>> Permutation((2, 0, 1))(torch.tensor([[1.0, 2.0, 3.0]]))[0]
    tensor([[3., 1., 2.]])
    """

    order: Tensor
    back: Tensor

    def __init__(self, order: Sequence[int], device: torch.device | str | None = None, dtype: Any = None) -> None:
        super().__init__()
        del dtype  # it has no numbers of its own
        self.features = len(order)
        if not order or sorted(order) != list(range(self.features)):
            raise ValueError(f"order must hold each of 0 to {max(self.features - 1, 0)} once, got {list(order)}")
        back = sorted(range(self.features), key=lambda place: order[place])
        self.register_buffer("order", torch.tensor(list(order), device=device))
        self.register_buffer("back", torch.tensor(back, device=device))

    def forward(self, z: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        return self.checked("z", z)[:, self.order], z.new_zeros(z.shape[0])

    def inverse(self, x: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        return self.checked("x", x)[:, self.back], x.new_zeros(x.shape[0])

    def extra_repr(self) -> str:
        return f"features={self.features}"


@system(
    "invertible_convolution",
    title="Invertible 1x1 convolution",
    kind="module",
    example="InvertibleConvolution(3)(torch.randn(5, 3))",
)
class InvertibleConvolution(Transform):
    r"""A learnt invertible matrix over the channels, kept as its LU factors: the same at each pixel, if there are any.

    $$ x = Wz, \quad W = PL(U + \mathrm{diag}(\sigma\odot e^{s})), \qquad \log|\det| = \text{pixels}\cdot\sum_j s_j $$

    $L$ has ones on its diagonal, $U$ zeros; $P$ is a fixed permutation and $\sigma$ fixed signs, those of the random
    rotation that the matrix begins as, to within a thousandth. The determinant costs a sum instead of an elimination,
    and the way back two triangular systems.

    Shapes:
        z: (batch, features) or (batch, features, ...), such as pixels    returns: x of that shape, log_det (batch,)

    Claims: flow.change_of_variables, flow.log_density
    Source: D. P. Kingma and P. Dhariwal 2018.

    >>> image = torch.randn(2, 3, 8, 8)
    >>> x, log_det = InvertibleConvolution(3)(image)
    >>> x.shape, log_det.shape
    (torch.Size([2, 3, 8, 8]), torch.Size([2]))
    """

    order: Tensor
    sign: Tensor

    def __init__(
        self, features: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.features = validate.count("features", features)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.lower = nn.Parameter(torch.zeros(features, features, **options))
        self.upper = nn.Parameter(torch.zeros(features, features, **options))
        self.log_scale = nn.Parameter(torch.zeros(features, **options))
        self.register_buffer("order", torch.arange(features, device=device))
        self.register_buffer("sign", torch.ones(features, **options))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Begin as another random rotation."""
        rotation = torch.linalg.qr(torch.randn(self.features, self.features, dtype=torch.float64)).Q
        permutation, lower, upper = torch.linalg.lu(rotation)
        diagonal = upper.diagonal()
        self.order.copy_(permutation.argmax(1))  # row j of PM is row order[j] of M
        self.sign.copy_(diagonal.sign())
        self.log_scale.copy_(_summing_to_zero(diagonal.abs().log()))
        self.lower.copy_(lower.tril(-1))
        self.upper.copy_(upper.triu(1))

    def _triangular_factors(self) -> tuple[Tensor, Tensor]:
        """L and U with their diagonals."""
        unit = torch.eye(self.features, dtype=self.lower.dtype, device=self.lower.device)
        return self.lower.tril(-1) + unit, self.upper.triu(1) + torch.diag(self.sign * self.log_scale.exp())

    @property
    def weight(self) -> Float[Tensor, "features features"]:
        """The matrix itself."""
        lower, upper = self._triangular_factors()
        return (lower @ upper)[self.order]

    def _log_det(self, like: Tensor) -> Tensor:
        return math.prod(like.shape[2:]) * self.log_scale.sum().expand(like.shape[0])

    def forward(self, z: Float[Tensor, "batch features ..."]) -> tuple[Tensor, Tensor]:
        x = torch.einsum("ij, bj... -> bi...", self.weight, self._feature_columns("z", z))  # (batch, features, ...)
        return x, self._log_det(z)

    def inverse(self, x: Float[Tensor, "batch features ..."]) -> tuple[Tensor, Tensor]:
        exact = torch.promote_types(x.dtype, torch.float32)  # no triangular solver knows half precision
        lower, upper = (factor.to(exact) for factor in self._triangular_factors())
        columns = self._feature_columns("x", x).flatten(2) if x.ndim > 2 else self._feature_columns("x", x)[..., None]
        columns = columns[:, self.order.argsort()].to(exact)  # (batch, features, pixels)
        solved = torch.linalg.solve_triangular(lower, columns, upper=False, unitriangular=True)
        solved = torch.linalg.solve_triangular(upper, solved, upper=True)
        return solved.reshape(x.shape).to(x.dtype), -self._log_det(x)

    def _feature_columns(self, name: str, value: Tensor) -> Tensor:
        if validate.tensor(name, value).ndim < 2 or value.shape[1] != self.features:
            wanted = f"(batch, {self.features}) or (batch, {self.features}, ...)"
            raise ValueError(f"{name} must be {wanted}, got shape {tuple(value.shape)}")
        return validate.inputs(name, value.movedim(1, -1), self.features).movedim(-1, 1)

    def extra_repr(self) -> str:
        return f"features={self.features}"


def _summing_to_zero(values: Tensor) -> Tensor:
    """The nearest multiples of 1/4096 whose sum is exactly zero in any precision that holds them: volume is kept."""
    rounded = (4096 * values).round()
    rounded[0] -= rounded.sum()
    return rounded / 4096
