"""Augmentation of 10,000 small pictures, each changed in its own way: ours, kornia, and a loop over pictures.

Whole pixels need no interpolation, so that a shift of ours copies a window of each picture; kornia moves and turns
pictures by one resampling of the batch. The loop is what many write: one picture after another, with torch's own
functions. All draw their own random numbers; what they must share is the number of pictures and, nearly, how bright
they are.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.tricks.augmentation import Augment, Cutout, Flip, Rotate, Shift

COUNT, SIDE, PIXELS, DEGREES, HOLE = 10_000, 28, 2, 15, 6


class Pictures(NamedTuple):
    """What is changed, and how."""

    x: Tensor
    case: str


@entry(
    "augmentation",
    title="Augmenting a batch of pictures against kornia",
    measures="10,000 pictures of 28 by 28 pixels, changed at random",
    cases={
        "moved": "turned over, and moved by up to 2 pixels",
        "turned": "turned over, moved by up to 2 pixels, rotated by up to 15 degrees",
        "cut": "turned over, and a square of 6 by 6 pixels cut out",
    },
    targets={"kornia": 1.0, "a loop": 0.5},
)
def blobs(case: str, device: str) -> Pictures:
    """Bright squares on black, smoothed: their border is black, as that of clothes is."""
    generator = torch.Generator().manual_seed(0)
    x = torch.zeros(COUNT, 1, SIDE, SIDE)
    x[..., 7:21, 7:21] = torch.rand(COUNT, 1, 14, 14, generator=generator)
    return Pictures(functional.avg_pool2d(x, 3, 1, 1).to(device), case)


@ours("lemmata")
def at_once(pictures: Pictures) -> Callable[[], Tensor]:
    """Our transformations, one after another."""
    parts = {
        "moved": [Flip(), Shift(PIXELS)],
        "turned": [Flip(), Shift(PIXELS), Rotate(DEGREES)],
        "cut": [Flip(), Cutout(HOLE)],
    }
    augment = Augment(*parts[pictures.case])
    return lambda: augment(pictures.x)


@peer("kornia", needs="kornia")
def by_kornia(pictures: Pictures) -> Callable[[], Tensor]:
    """Kornia's transformations, as its own examples put them together."""
    from kornia import augmentation

    moves = augmentation.RandomAffine(
        degrees=DEGREES if pictures.case == "turned" else 0.0, translate=(PIXELS / SIDE, PIXELS / SIDE), p=1.0
    )
    hole = (HOLE / SIDE) ** 2
    cut = augmentation.RandomErasing(scale=(hole, hole), ratio=(1.0, 1.0), p=1.0)
    flip = augmentation.RandomHorizontalFlip(p=0.5)
    augment = torch.nn.Sequential(flip, cut if pictures.case == "cut" else moves)
    return lambda: augment(pictures.x)


@peer("a loop")
def one_by_one(pictures: Pictures) -> Callable[[], Tensor]:
    """One picture after another."""

    def change(x: Tensor) -> Tensor:
        x = x.flip(-1) if torch.rand(()) < 0.5 else x
        if pictures.case == "cut":
            top, left = torch.randint(SIDE - HOLE + 1, (2,)).tolist()
            x = x.clone()
            x[..., top : top + HOLE, left : left + HOLE] = 0
            return x
        down, right = torch.randint(2 * PIXELS + 1, (2,)).tolist()
        x = functional.pad(x, (PIXELS,) * 4)[..., down : down + SIDE, right : right + SIDE]
        if pictures.case == "turned":
            angle = math.radians(DEGREES) * (2 * float(torch.rand(())) - 1)
            rows = [[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]]
            grid = functional.affine_grid(
                torch.tensor([rows], device=x.device), [1, 1, SIDE, SIDE], align_corners=False
            )
            x = functional.grid_sample(x[None], grid, align_corners=False)[0]
        return x

    return lambda: torch.stack([change(x) for x in pictures.x])


@limit("copying the pictures once")
def copying(pictures: Pictures) -> Callable[[], Tensor]:
    """New pictures have to be written."""
    return pictures.x.clone


@agreement(within=0.05)
def in_numbers(x: Tensor) -> dict[str, float]:
    """How many pictures there are, and how bright they are where nothing was cut out."""
    bright = x[x > 0].double().mean()
    return {"pictures": float(len(x)), "brightness": float(bright)}
