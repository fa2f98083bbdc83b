r"""Segmentation: regions that share no pixel and leave none out, and the connected parts of a mask."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["connected_parts", "is_partition", "labels_of", "regions_of"]


@system("is_partition", title="Partition of an image", kind="function")
def is_partition(regions: Bool[Tensor, "*batch regions height width"]) -> Bool[Tensor, "*batch"]:
    r"""Whether each pixel is in one region: $I = \bigcup_{i=1}^N R_i$, $R_i \cap R_j = \emptyset$ for $i \ne j$.

    Shapes:
        regions: (..., N, height, width) bool    returns: (...) bool

    Claims: vision.segmentation

    >>> is_partition(torch.tensor([[[True, False]], [[False, True]]]))
    tensor(True)
    """
    if validate.tensor("regions", regions).dtype is not torch.bool or regions.ndim < 3 or 0 in regions.shape:
        told = f"{regions.dtype} of shape {tuple(regions.shape)}"
        raise ValueError(f"regions must be (..., regions, height, width) bool and not empty, got {told}")
    return (regions.sum(-3) == 1).all(-1).all(-1)


@system("labels_of", title="Label map of regions", kind="function")
def labels_of(regions: Bool[Tensor, "*batch regions height width"]) -> Int[Tensor, "*batch height width"]:
    r"""The number of the region of each pixel; regions that overlap or leave pixels out are refused.

    Shapes:
        regions: (..., N, height, width) bool    returns: (..., height, width) int64

    Claims: vision.segmentation

    >>> labels_of(torch.tensor([[[True, True]], [[False, True]]]))
    Traceback (most recent call last):
    ValueError: regions must be a partition, 1 pixel is in several regions and 0 in none: use scores.argmax(-3)
    """
    if not bool(is_partition(regions).all()):
        times = regions.sum(-3)
        several, none = int((times > 1).sum()), int((times == 0).sum())
        told = f"{several} {'pixel is' if several == 1 else 'pixels are'} in several regions and {none} in none"
        raise ValueError(f"regions must be a partition, {told}: use scores.argmax(-3)")
    return regions.int().argmax(-3)


@system("regions_of", title="Regions of a label map", kind="function")
def regions_of(labels: Int[Tensor, "*batch height width"], count: int) -> Bool[Tensor, "*batch count height width"]:
    r"""The regions of a label map, $R_i = \{p : \text{label}(p) = i\}$: always a partition.

    Shapes:
        labels: (..., height, width) integers from 0 to below `count`    returns: (..., count, height, width) bool

    Claims: vision.segmentation

    >>> regions_of(torch.tensor([[0, 1]]), 2).int()
    tensor([[[1, 0]],
    <BLANKLINE>
            [[0, 1]]], dtype=torch.int32)
    """
    if validate.tokens("labels", labels, validate.count("count", count)).ndim < 2:
        raise ValueError(f"labels must be (..., height, width), got shape {tuple(labels.shape)}")
    numbers = torch.arange(count, device=labels.device).reshape(-1, 1, 1)
    return labels.unsqueeze(-3) == numbers


@system("connected_parts", title="Connected parts", kind="function")
def connected_parts(mask: Bool[Tensor, "height width"], neighbours: int = 4) -> Int[Tensor, "height width"]:
    r"""A number from 1 on for each connected part of a mask, in the order of their first pixels; 0 elsewhere.

    Every pixel takes the least index among its neighbours, and then what the pixel with that index has taken, until
    nothing changes: a few rounds, and more of them for mazes.

    Shapes:
        mask: (height, width) bool    returns: (height, width) int64

    Claims: vision.segmentation
    Source: numbering as scipy.ndimage.label.

    >>> connected_parts(torch.tensor([[True, False, True], [True, False, False]]))
    tensor([[1, 0, 2],
            [1, 0, 0]])
    """
    if validate.tensor("mask", mask).dtype is not torch.bool or mask.ndim != 2 or mask.numel() == 0:
        raise ValueError(
            f"mask must be (height, width) bool and not empty, got {mask.dtype} of shape {tuple(mask.shape)}"
        )
    if neighbours not in (4, 8):
        raise ValueError(f"neighbours must be 4 or 8, got {neighbours!r}")
    far = mask.numel()  # no pixel's index; float64 below holds all indices exactly
    labels = torch.where(mask.flatten(), torch.arange(far, device=mask.device), far)
    while True:
        spread = _least_beside(labels.reshape(mask.shape), neighbours).flatten()
        spread = torch.where(mask.flatten(), spread, far)
        # The least pixel that a part knows of tells all that took its number.
        table = torch.arange(far + 1, device=mask.device).scatter_reduce(0, labels, spread, "amin")
        spread = table[table[spread]]
        if torch.equal(spread, labels):
            break
        labels = spread
    first = torch.unique(labels[mask.flatten()])  # ascending: the first pixel of each part
    numbered = torch.zeros(far + 1, dtype=torch.long, device=mask.device)
    numbered[first] = torch.arange(1, len(first) + 1, device=mask.device)
    return numbered[labels].reshape(mask.shape)


def _least_beside(labels: Tensor, neighbours: int) -> Tensor:
    negative = -labels.double()[None, None]  # (1, 1, height, width)
    if neighbours == 8:
        best = functional.max_pool2d(negative, 3, 1, 1)
    else:
        best = torch.maximum(
            functional.max_pool2d(negative, (3, 1), 1, (1, 0)), functional.max_pool2d(negative, (1, 3), 1, (0, 1))
        )
    return (-best[0, 0]).long()
