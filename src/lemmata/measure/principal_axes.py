r"""The axes along which points of many dimensions differ most."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = []  # for systems and the pictures of recipes


def principal_plane(vectors: Float[Tensor, "points dimensions"]) -> Float[Tensor, "points 2"]:
    """Coordinates along the two axes of greatest variance, each so turned that its longest entry is positive.

    >>> principal_plane(torch.tensor([[0.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])).shape
    torch.Size([4, 2])
    """
    centred = vectors - vectors.mean(0)
    axes, _ = principal_axes(centred)
    return centred @ axes[:2].mT


def principal_axes(
    centred: Float[Tensor, "points dimensions"],
) -> tuple[Float[Tensor, "axes dimensions"], Float[Tensor, " axes"]]:
    """All axes of points about the origin, and the mean square along each, largest first; turned as above.

    >>> axes, variances = principal_axes(torch.tensor([[0.0, -2.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 2.0]]))
    >>> axes.abs(), variances
    (tensor([[0., 1.],
            [1., 0.]]), tensor([2.0000, 0.5000]))
    """
    _, lengths, axes = torch.linalg.svd(centred, full_matrices=False)
    longest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    return axes * longest.sign(), lengths.square() / len(centred)
