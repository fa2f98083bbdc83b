r"""Points of many dimensions in the plane in which they differ most, for pictures."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = []  # for the pictures of recipes


def principal_plane(vectors: Float[Tensor, "points dimensions"]) -> Float[Tensor, "points 2"]:
    """Coordinates along the two axes of greatest variance, each so turned that its longest entry is positive.

    >>> principal_plane(torch.tensor([[0.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])).shape
    torch.Size([4, 2])
    """
    centred = vectors - vectors.mean(0)
    _, _, axes = torch.linalg.svd(centred, full_matrices=False)
    axes = axes[:2]  # (2, dimensions)
    longest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    return centred @ (axes * longest.sign()).mT
