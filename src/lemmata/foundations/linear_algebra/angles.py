r"""Angles and distances between vectors, from their lengths and inner products."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.norms import p_norm
from lemmata.validate import broadcast, fits, matrices

__all__ = ["cosine_of_angle", "angle_between", "squared_distances"]


@system("cosine", title="Cosine of the angle between vectors", kind="function")
def cosine_of_angle(x: Float[Tensor, "*#batch d"], y: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch"]:
    r"""The cosine of the angle between two vectors, which no positive rescaling of them changes.

    $$ \cos\angle(x, y) = \frac{x^\top y}{\|x\|\,\|y\|} \in [-1, 1], \qquad x, y \ne 0 $$

    Shapes:
        x, y: (..., d)    returns: (...)

    Claims: geometry.cosine_angle
    Differs: torch.cosine_similarity answers 0 for a zero vector; a zero vector has no direction, so here it is refused.

    >>> cosine_of_angle(torch.tensor([1.0, 0.0]), torch.tensor([[2.0, 0.0], [3.0, 3.0], [0.0, -1.0]]))
    tensor([1.0000, 0.7071, 0.0000])
    """
    x, y = _directions(x, y)
    return (x * y).sum(-1).clamp(-1.0, 1.0)  # rounding must not leave the range of a cosine


def angle_between(x: Float[Tensor, "*#batch d"], y: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch"]:
    r"""The angle between two vectors in radians, accurate also where it is tiny.

    $$ \angle(x, y) = 2\arctan\frac{\|\hat x - \hat y\|}{\|\hat x + \hat y\|}, \qquad \hat x = x/\|x\| $$

    Shapes:
        x, y: (..., d)    returns: (...), from 0 to $\pi$

    Claims: geometry.cosine_angle
    Source: W. Kahan. The arc cosine would turn a rounding of $10^{-16}$ into an angle of $10^{-8}$.

    >>> angle_between(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1e-6]))
    tensor(1.0000e-06)
    """
    x, y = _directions(x, y)
    return 2 * torch.atan2(p_norm(x - y), p_norm(x + y))


def squared_distances(
    x: Float[Tensor, "*#batch points d"], y: Float[Tensor, "*#batch others d"]
) -> Float[Tensor, "*#batch points others"]:
    r"""All squared distances between two sets of points, by the cosine theorem: one matrix product.

    $$ \|x - y\|^2 = \|x\|^2 + \|y\|^2 - 2\langle x, y\rangle $$

    Both sets are moved to the mean of the first, which changes no distance and keeps the subtraction from cancelling
    for data far from the origin. What is left is wrong by at most rounding times the squared lengths.

    Shapes:
        x: (..., points, d), y: (..., others, d)    returns: (..., points, others)

    Claims: geometry.cosine_theorem, linalg.kernel_psd

    >>> squared_distances(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([[25.],
            [13.]])
    """
    matrices("x", x, "points, features")
    fits("y", matrices("y", y, "points, features"), (x.shape[-1],), like=x, whose="x")
    broadcast(x=tuple(x.shape[:-2]), y=tuple(y.shape[:-2]))
    centre = x.detach().mean(-2, keepdim=True)
    x, y = x - centre, y - centre
    lengths = (x * x).sum(-1)[..., :, None] + (y * y).sum(-1)[..., None, :]
    return (lengths - 2 * x @ y.mT).clamp(min=0.0)  # rounding alone goes below 0


def _directions(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both vectors at length 1."""
    if validate.floating("x", x).ndim == 0:
        raise ValueError("x must be a (..., features) tensor, got shape ()")
    fits("y", y, (x.shape[-1],), like=x, whose="x")
    broadcast(x=tuple(x.shape), y=tuple(y.shape))
    for name, vectors in (("x", x), ("y", y)):
        if (vectors == 0).all(-1).any():
            raise ValueError(f"{name} must hold no zero vector: it has no direction and no angle")
    return x / p_norm(x)[..., None], y / p_norm(y)[..., None]
