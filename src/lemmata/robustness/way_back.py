"""Shorter perturbations by going back from an example that fools the classifier towards where it began."""

import dataclasses
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata.robustness.attacked_model import AttackedModel
from lemmata.robustness.norm_ball import per_example

__all__ = []


def halved_back(
    attacked: AttackedModel, examples: Float[Tensor, "rows ..."], rows: Int[Tensor, "rows"], halvings: int
) -> Float[Tensor, "rows ..."]:
    """Each example, which fools the classifier, moved back along its segment to x by bisection; it still fools it.

    The box is convex, so that the whole segment lies in it, and each halving costs one answer and no gradient.
    """
    if not len(rows):
        return examples
    x = attacked.x[rows]
    least, most = torch.zeros(len(rows), dtype=x.dtype, device=x.device), torch.ones_like(x.flatten(1)[:, 0])
    for _ in range(halvings):
        middle = (least + most) / 2
        tried = possible(attacked, x + per_example(middle, x) * (examples - x), rows)
        wrong = attacked.wrong(attacked.logits(tried, rows), rows)
        least, most = torch.where(wrong, least, middle), torch.where(wrong, middle, most)
    back = possible(attacked, x + per_example(most, x) * (examples - x), rows)
    return torch.where(per_example(most < 1, x), back, examples)


def possible(attacked: AttackedModel, images: Float[Tensor, "rows ..."], rows: Int[Tensor, "rows"]) -> Tensor:
    """Into the box and onto the grid, so that success is judged where an image can be; the ball waits for the end."""
    if attacked.threat.levels is None:
        return images.clamp(*attacked.threat.bounds)
    return dataclasses.replace(attacked.threat, eps=math.inf).inside(attacked.x[rows], images)
