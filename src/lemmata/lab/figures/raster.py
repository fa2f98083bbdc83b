"""Polygons as a matrix of values, for places where nothing finer can be drawn."""

import math
from itertools import pairwise

from lemmata.figure import Heat, Polygons

__all__ = ["as_heat"]


def as_heat(mark: Polygons, across: int = 40, down: int = 20) -> Heat:
    """The value at the middle of every cell, rows upwards; cells in no polygon are gaps."""
    xs, ys = ([value for polygon in side for value in polygon] for side in (mark.x, mark.y))
    left, bottom = min(xs), min(ys)
    wide, high = (max(xs) - left) / across or 1.0, (max(ys) - bottom) / down or 1.0
    rows = [[math.nan] * across for _ in range(down)]
    for x, y, value in zip(mark.x, mark.y, mark.values, strict=True):
        for row, height in enumerate(bottom + high * (k + 0.5) for k in range(down)):
            cuts = [
                a + (b - a) * (height - c) / (d - c)
                for (a, c), (b, d) in pairwise([*zip(x, y, strict=True), (x[0], y[0])])
                if (c <= height) != (d <= height)
            ]
            if cuts:
                first, last = ((end - left) / wide - 0.5 for end in (min(cuts), max(cuts)))
                for column in range(max(0, math.ceil(first)), min(across - 1, math.floor(last)) + 1):
                    rows[row][column] = value
    places = [left + wide * (k + 0.5) for k in range(across)], [bottom + high * (k + 0.5) for k in range(down)]
    return Heat(rows, *places, label=mark.label)
