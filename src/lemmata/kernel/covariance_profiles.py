r"""What covariance functions are made of: distances exact at equal points, and profiles with every derivative."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = []  # for covariance functions

FEW = 64  # features up to which differences are taken one by one on the CPU
FALL = {1: 0.5, 2: 1 / 6}  # the derivative of one Matérn profile is this fraction of the one before, negative


def squared_distances(
    left: Float[Tensor, "*batch points features"], right: Float[Tensor, "*batch others features"]
) -> Float[Tensor, "*batch points others"]:
    r"""$\|a_i - b_j\|^2$, exactly 0 for equal points, with gradients of any order."""
    centre = right.detach().mean(-2, keepdim=True) if right.shape[-2] else 0.0
    return _SquaredDistance.apply(left - centre, right - centre)  # type: ignore[no-any-return]


def matern_profile(squared: Float[Tensor, "*shape"], order: int) -> Float[Tensor, "*shape"]:
    r"""$e^{-s}$, $(1+s)e^{-s}$ or $(1+s+\frac{s^2}{3})e^{-s}$ at $s = \sqrt{\text{squared}}$, for orders 0, 1 and 2."""
    return _MaternProfile.apply(squared, order)  # type: ignore[no-any-return]


class _SquaredDistance(torch.autograd.Function):
    """Differences forwards, where a product would lose the digits of near points, and products backwards."""

    generate_vmap_rule = True

    @staticmethod
    def forward(left: Tensor, right: Tensor) -> Tensor:
        wide = left if left.dtype is torch.float64 else left.float()
        other = right.to(wide.dtype)
        if not wide.is_cuda and wide.shape[-1] <= FEW:
            found = torch.cdist(wide, other, compute_mode="donot_use_mm_for_euclid_dist").square()
            return found.to(left.dtype)
        sizes = wide.square().sum(-1)[..., :, None] + other.square().sum(-1)[..., None, :]
        found = sizes - 2 * (wide @ other.mT)
        # Each sum of so many products is off by less than this: nearer points are told apart by rounding alone.
        lost = 2 * (wide.shape[-1] + 2) * torch.finfo(wide.dtype).eps * sizes
        return torch.where(found > lost, found, 0.0).to(left.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (left, right), (weights,) = ctx.saved_tensors, gradients
        to_left = weights.sum(-1)[..., None] * left - weights @ right
        to_right = weights.sum(-2)[..., None] * right - weights.mT @ left
        return 2 * to_left, 2 * to_right


class _MaternProfile(torch.autograd.Function):
    """Each profile's derivative in the squared distance is the one before, which is finite where a root's is not."""

    generate_vmap_rule = True

    @staticmethod
    def forward(squared: Tensor, order: int) -> Tensor:
        s = squared.sqrt()
        falling = torch.exp(-s)
        if order == 0:
            return falling
        return falling * (1 + s) if order == 1 else falling * (1 + s + squared / 3)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        squared, ctx.order = inputs
        ctx.save_for_backward(squared)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (squared,), (weights,) = ctx.saved_tensors, gradients
        if ctx.order:
            return -FALL[ctx.order] * weights * matern_profile(squared, ctx.order - 1), None
        # The exponential has a kink at distance 0; by symmetry its slope there is taken for 0.
        apart = squared > 0
        s = squared.where(apart, 1.0).sqrt()
        return weights * (-torch.exp(-s) / (2 * s)).where(apart, 0.0), None
