r"""How well two sets of pixels agree, and the threshold that splits brightness best."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["dice", "intersection_over_union", "otsu_threshold"]


@system("intersection_over_union", title="Intersection over union", kind="function")
def intersection_over_union(
    found: Bool[Tensor, "*batch height width"], truth: Bool[Tensor, "*batch height width"]
) -> Float[Tensor, "*batch"]:
    r"""How well two sets of pixels agree, $|A \cap B| \,/\, |A \cup B|$, image by image; 1 where both are empty.

    Shapes:
        found, truth: (..., height, width) bool    returns: (...) float64

    Claims: vision.segmentation
    Source: P. Jaccard, Étude comparative de la distribution florale dans une portion des Alpes et des Jura (1901).

    >>> intersection_over_union(torch.tensor([[[True, True]]]), torch.tensor([[[True, False]]]))
    tensor([0.5000], dtype=torch.float64)
    """
    _mask_pair(found, truth)
    shared, either = (found & truth).sum((-2, -1)), (found | truth).sum((-2, -1))
    return torch.where(either > 0, shared.double() / either.clamp(min=1), 1.0)


@system("dice", title="Dice coefficient", kind="function")
def dice(
    found: Bool[Tensor, "*batch height width"], truth: Bool[Tensor, "*batch height width"]
) -> Float[Tensor, "*batch"]:
    r"""$2|A \cap B| \,/\, (|A| + |B|)$, image by image, which is $2J/(1+J)$ for the intersection over union $J$.

    Shapes:
        found, truth: (..., height, width) bool    returns: (...) float64

    Claims: vision.segmentation
    Source: L. Dice, Measures of the amount of ecologic association between species (1945); F1 in other fields.

    >>> dice(torch.tensor([[[True, True]]]), torch.tensor([[[True, False]]]))
    tensor([0.6667], dtype=torch.float64)
    """
    _mask_pair(found, truth)
    shared, sizes = (found & truth).sum((-2, -1)), found.sum((-2, -1)) + truth.sum((-2, -1))
    return torch.where(sizes > 0, 2 * shared.double() / sizes.clamp(min=1), 1.0)


def _mask_pair(found: Tensor, truth: Tensor) -> None:
    for name, value in (("found", found), ("truth", truth)):
        if validate.tensor(name, value).dtype is not torch.bool or value.ndim < 2:
            shape = tuple(value.shape)
            raise ValueError(f"{name} must be (..., height, width) bool, got {value.dtype} of shape {shape}")
    if found.shape != truth.shape:
        raise ValueError(f"found and truth must have one shape, got {tuple(found.shape)} and {tuple(truth.shape)}")


@system("otsu_threshold", title="Otsu's threshold", kind="function")
def otsu_threshold(images: Float[Tensor, "*batch height width"], levels: int = 64) -> Float[Tensor, "*batch"]:
    r"""The brightness that splits the pixels of each image into two groups with the most distant means.

    $$ \arg\max_T\; w_0(T)\, w_1(T)\, \big(\mu_0(T) - \mu_1(T)\big)^2 $$

    The groups are $I < T$ and $I \ge T$, the candidates $T = k/\text{levels}$ inside $(0, 1)$, the means those of the
    pixels themselves; of several best thresholds the lowest is taken.

    Shapes:
        images: (..., height, width) in $[0, 1]$    returns: (...)

    Claims: vision.thresholding
    Source: N. Otsu, A threshold selection method from gray-level histograms (1979).
    Differs: bins are those of $[0, 1]$, not of the range of each image as in scikit-image.

    >>> otsu_threshold(torch.tensor([[0.1, 0.1, 0.7], [0.1, 0.7, 0.7]])).item()
    0.109375
    """
    if validate.floating("images", images).ndim < 2:
        raise ValueError(f"images must be (..., height, width), got shape {tuple(images.shape)}")
    validate.count("levels", levels, least=2)
    pixels = images.reshape(-1, images.shape[-2] * images.shape[-1]).double()  # (images, pixels)
    bins = (pixels * levels).floor().long().clamp(0, levels - 1)
    counts, sums = (
        pixels.new_zeros(len(pixels), levels).scatter_add_(1, bins, v) for v in (torch.ones_like(pixels), pixels)
    )
    above, bright = (part.flip(1).cumsum(1).flip(1)[:, 1:] / pixels.shape[1] for part in (counts, sums))
    # w0 w1 (mu0 - mu1)^2, whose divisor is 0 only where all pixels are on one side, and then so is the rest
    spread = (bright - above * pixels.mean(1, keepdim=True)).square() / (above * (1 - above)).clamp(
        min=1 / pixels.shape[1] ** 2
    )
    # Equal but for rounding is equal: the lowest of them.
    best = spread >= spread.amax(1, keepdim=True) * (1 - 1e-12)
    return ((best.int().argmax(1) + 1) / levels).to(images).reshape(images.shape[:-2])
