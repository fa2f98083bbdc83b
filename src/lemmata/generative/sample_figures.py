"""Figures of what a generative model makes up: images in a grid, points beside the data, a density on the plane."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lemmata.figure import Figure, Heat, Image, Points

__all__ = ["density_map", "image_grid", "point_cloud"]

CELLS = 80  # of the map, along each axis
SHOWN = 1000  # points of each cloud
SIDE = 24  # pixels along a side to which small images that stand alone are enlarged


def image_grid(
    images: Tensor, title: str = "Samples", columns: int = 8, note: str = "", labels: Sequence[str] = ()
) -> Figure:
    """Grey images (n, side, side), with or without a channel axis: rows of one tile, or each by itself under its label.

    >>> figure = image_grid(torch.zeros(6, 1, 8, 8), columns=3)
    >>> len(figure.marks), len(figure.marks[0].pixels), len(figure.marks[0].pixels[0])
    (1, 20, 30)
    """
    images = images.detach().cpu().double()
    images = images[:, 0] if images.ndim == 4 else images  # (n, height, width)
    if images.ndim != 3 or not len(images):
        raise ValueError(f"images must be (n, height, width) or (n, 1, height, width), got {tuple(images.shape)}")
    pixels = images.clamp(0, 1)
    if labels:
        times = max(1, SIDE // max(images.shape[1:]))
        pixels = pixels.repeat_interleave(times, 1).repeat_interleave(times, 2)
        marks = [Image(_rounded_values(each), label) for each, label in zip(pixels, labels, strict=True)]
        return Figure(title, marks=marks, note=note)
    return Figure(title, marks=[Image(_rounded_values(_tile_images(pixels, columns)))], note=note)


def _tile_images(images: Tensor, columns: int) -> Tensor:
    """Images (n, height, width) in rows of as many columns, one grey pixel apart."""
    columns = min(columns, len(images))
    rows = math.ceil(len(images) / columns)
    framed = torch.nn.functional.pad(images, (1, 1, 1, 1), value=0.5)
    blank = framed.new_full((rows * columns - len(images), *framed.shape[1:]), 0.5)
    height, width = framed.shape[1:]
    tiles = torch.cat([framed, blank]).reshape(rows, columns, height, width)
    return tiles.permute(0, 2, 1, 3).reshape(rows * height, columns * width)  # (rows * height, columns * width)


def _rounded_values(values: Tensor) -> Tensor:
    return values.mul(1000).round().div(1000)  # what an eye can tell apart, in few characters


def point_cloud(samples: Tensor, data: Tensor, title: str = "Samples beside the data", note: str = "") -> Figure:
    """Samples and data in the plane, both (n, 2).

    >>> [mark.label for mark in point_cloud(torch.zeros(5, 2), torch.ones(3, 2)).marks]
    ['data', 'samples']
    """
    return Figure(title, "x₁", "x₂", [_point_marks(data, "data"), _point_marks(samples, "samples")], note=note)


def _point_marks(x: Tensor, label: str) -> Points:
    x = x.detach().cpu().double()
    if x.ndim != 2 or x.shape[1] != 2:
        raise ValueError(f"{label} must be points in the plane, (n, 2), got {tuple(x.shape)}")
    return Points(_rounded_values(x[:SHOWN, 0]), _rounded_values(x[:SHOWN, 1]), label)


@torch.no_grad()
def density_map(
    log_prob: Callable[[Tensor], Tensor], data: Tensor, title: str = "Density", note: str = "", shown: int = 300
) -> Figure:
    """The density exp(log_prob(x)) all over the plane of the data (n, 2), some of which lie on top.

    >>> figure = density_map(lambda x: -x.square().sum(1), torch.randn(9, 2))
    >>> [type(mark).__name__ for mark in figure.marks], len(figure.marks[0].values)
    (['Heat', 'Points'], 80)
    """
    points = data.detach().cpu().double()
    low, high = points.amin(0), points.amax(0)
    margin = 0.15 * (high - low).clamp(min=1e-6)
    across, up = (torch.linspace(float(a), float(b), CELLS) for a, b in zip(low - margin, high + margin, strict=True))
    plane = torch.cartesian_prod(up, across).flip(1)  # rows of the map are values of the second coordinate
    density = log_prob(plane.to(data)).detach().cpu().double().exp().reshape(CELLS, CELLS)
    heat = Heat(_rounded_values(density), x=across.tolist(), y=up.tolist(), label="density")
    return Figure(title, "x₁", "x₂", [heat, _point_marks(data[:shown], "data")], note=note)
