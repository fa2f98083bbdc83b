"""Images moved at random by a few pixels: what recipes vary while a network learns."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.data.examples import Examples

__all__ = []  # for recipes


def shifted(shift: int) -> Callable[[Examples], Examples]:
    """Batches whose pictures are moved at random."""
    return lambda batch: Examples(**{**batch.columns, "x": moved(batch.x, shift)})


def moved(pictures: Tensor, shift: int) -> Tensor:
    """Each picture at a random place up to `shift` pixels away; what comes in at the border is black."""
    if shift == 0:
        return pictures
    (count, height, width), place = pictures.shape, pictures.device
    down, right = torch.randint(2 * shift + 1, (2, count, 1), device=place)
    rows, columns = down + torch.arange(height, device=place), right + torch.arange(width, device=place)
    wide = functional.pad(pictures, (shift,) * 4)
    return wide[torch.arange(count, device=place)[:, None, None], rows[:, :, None], columns[:, None, :]]
