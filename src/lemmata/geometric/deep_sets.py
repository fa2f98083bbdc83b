r"""Deep Sets: functions of sets, built so that order and number of the elements cannot matter."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["DeepSets", "EquivariantDeepSets", "pool_elements"]

REDUCTIONS = ("sum", "mean", "max")
Network = Callable[[Tensor], Tensor]


def pool_elements(
    x: Float[Tensor, "*batch elements features"],
    mask: Bool[Tensor, "*batch elements"] | None = None,
    reduce: str = "sum",
) -> Float[Tensor, "*batch features"]:
    r"""The sum, mean or maximum over the elements of each set; elements whose mask is false are not in it.

    The sum and the mean of an empty set are zero, its maximum too.

    Claims: sets.sum_invariant

    >>> pool_elements(torch.tensor([[1.0], [2.0], [9.0]]), torch.tensor([True, True, False]))
    tensor([3.])
    """
    validate.one_of("reduce", reduce, REDUCTIONS)
    x = only_elements(x, mask)
    if reduce == "max":
        if mask is not None:
            x = x.masked_fill(~mask[..., None], -torch.inf)
        if not x.shape[-2]:
            return x.new_zeros(*x.shape[:-2], x.shape[-1])
        top = x.amax(-2)
        return top if mask is None else top.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    if reduce == "sum":
        return x.sum(-2)
    # In float32 at least: the sum of a large set may be too large for half precision, though its mean is not.
    total = x.sum(-2, dtype=torch.promote_types(x.dtype, torch.float32))
    count = max(x.shape[-2], 1) if mask is None else mask.sum(-1, keepdim=True).clamp(min=1)
    return (total / count).to(x.dtype)


def only_elements(x: Tensor, mask: Tensor | None) -> Tensor:
    """Zero where the mask is false: what stands there, infinite or NaN, reaches neither values nor gradients."""
    if validate.tensor("x", x).ndim < 2:
        raise ValueError(f"x must be (..., elements, features), got shape {tuple(x.shape)}")
    if not x.is_floating_point():
        raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
    if mask is None:
        return x
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, true for the elements of the set, got {mask.dtype}")
    if mask.shape != x.shape[:-1]:
        wanted = tuple(x.shape[:-1])
        raise ValueError(f"mask must have the shape {wanted} of sets and elements, got {tuple(mask.shape)}")
    return x.masked_fill(~mask[..., None], 0.0)  # not a product, which would keep NaN


def check_network(name: str, value: Network) -> Network:
    """Refuse what cannot be called, such as the size that other layers take."""
    if not callable(value):
        raise TypeError(f"{name} must be a network such as nn.Linear(8, 4), got {value!r}"[:200])
    return value


@system(
    "deep_sets",
    title="Deep Sets",
    kind="module",
    example="DeepSets(nn.Linear(3, 8), nn.Linear(8, 2))(torch.randn(5, 4, 3))",
)
class DeepSets(nn.Module):
    r"""A function of sets: each element by itself, all of them joined, and a network of what is joined.

    $$ f(\{x_1, \dots, x_M\}) = \rho\Big(\sum_m \phi(x_m)\Big) $$

    The same value for any order, and for any number of elements. With `reduce="max"` or `"mean"` another aggregate
    takes the sum's place. Every continuous function of sets of at most M numbers has this form with M latent features,
    and with fewer some have not.

    Shapes:
        x: (..., elements, inputs)    mask: (..., elements), true for those that are in the set
        phi: (..., inputs) to (..., latent)    rho: (..., latent) to (..., outputs)    returns: (..., outputs)

    Claims: sets.problem, sets.deep_sets, sets.invariance, sets.deep_sets.universality
    Source: M. Zaheer et al., Deep sets (2017); E. Wagstaff et al., On the limitations of representing functions on sets
        (2019).
    Differs: does not pass `wrong_width`: the networks are given, and say it themselves.

    >>> model = DeepSets(nn.Linear(3, 8), nn.Linear(8, 2))
    >>> x = torch.randn(5, 4, 3)
    >>> torch.allclose(model(x), model(x.flip(1)), atol=1e-6)
    True
    """

    def __init__(self, phi: Network, rho: Network, reduce: str = "sum") -> None:
        super().__init__()
        self.phi, self.rho = check_network("phi", phi), check_network("rho", rho)
        self.reduce = validate.one_of("reduce", reduce, REDUCTIONS)

    def forward(
        self, x: Float[Tensor, "*batch elements inputs"], mask: Bool[Tensor, "*batch elements"] | None = None
    ) -> Float[Tensor, "*batch outputs"]:
        x = only_elements(x, mask)
        return self.rho(pool_elements(self.phi(x), mask, self.reduce))  # (..., latent) to (..., outputs)


@system(
    "equivariant_deep_sets",
    title="Equivariant Deep Sets",
    kind="module",
    example="EquivariantDeepSets(nn.Linear(3, 8), nn.Linear(3 + 8, 2), reduce='max')(torch.randn(5, 4, 3))",
)
class EquivariantDeepSets(nn.Module):
    r"""A function of each element and of the set it is in: relabelled elements have relabelled results.

    $$ f(x_1, \dots, x_M)_i = \rho\Big(x_i, \sum_m \phi(x_m)\Big) $$

    Shapes:
        x: (..., elements, inputs)    mask: (..., elements); results of elements outside the set are zero
        phi: (..., inputs) to (..., latent)    rho: (..., inputs + latent) to (..., outputs)
        returns: (..., elements, outputs)

    Claims: sets.deep_sets.equivariant, sets.equivariance
    Source: Zaheer et al. 2017.
    Differs: does not pass `wrong_width`: the networks are given, and say it themselves.

    >>> model = EquivariantDeepSets(nn.Linear(3, 8), nn.Linear(3 + 8, 2), reduce="max")
    >>> model(torch.randn(5, 4, 3)).shape
    torch.Size([5, 4, 2])
    """

    def __init__(self, phi: Network, rho: Network, reduce: str = "sum") -> None:
        super().__init__()
        self.phi, self.rho = check_network("phi", phi), check_network("rho", rho)
        self.reduce = validate.one_of("reduce", reduce, REDUCTIONS)

    def forward(
        self, x: Float[Tensor, "*batch elements inputs"], mask: Bool[Tensor, "*batch elements"] | None = None
    ) -> Float[Tensor, "*batch elements outputs"]:
        x = only_elements(x, mask)
        joined = pool_elements(self.phi(x), mask, self.reduce)[..., None, :]  # (..., 1, latent)
        found = self.rho(torch.cat([x, joined.expand(*x.shape[:-1], -1)], -1))  # (..., elements, outputs)
        return found if mask is None else found.masked_fill(~mask[..., None], 0.0)
