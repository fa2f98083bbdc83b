"""The few shapes of which an SVG figure is made: text, strokes, markers and grids of coloured cells."""

import functools
import math
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Any

from lemmata.lab.figures.scale import Scale, usable

__all__ = ["cells", "clean", "marker", "shade", "shrunk", "stroke", "text", "text_width", "wrapped"]

# Five dashes and six markers against seven colours: no two of the first 35 lines look alike.
DASHES = ("none", "8 4", "2 4", "10 4 2 4", "14 5")
NARROW, WIDE = "iljtfr.,:;'|!()[]/ ", "mwMW@%—"
# Circle, square, triangle, diamond, cross, plus; numbers stand apart so that they can be scaled.
SHAPES = (
    "m -4 0 c 0 -5.33 8 -5.33 8 0 c 0 5.33 -8 5.33 -8 0 z",
    "m -3.6 -3.6 h 7.2 v 7.2 h -7.2 z",
    "m 0 -4.8 l 4.6 8 h -9.2 z",
    "m 0 -5 l 5 5 l -5 5 l -5 -5 z",
    "m -4.4 -2.4 l 2 -2 2.4 2.4 2.4 -2.4 2 2 -2.4 2.4 2.4 2.4 -2 2 -2.4 -2.4 -2.4 2.4 -2 -2 2.4 -2.4 z",
    "m -1.4 -4.6 h 2.8 v 3.2 h 3.2 v 2.8 h -3.2 v 3.2 h -2.8 v -3.2 h -3.2 v -2.8 h 3.2 z",
)
GREY = ("#000000", "#ffffff")
LEVELS = 48  # shades of a matrix; neighbours differ by less than the eye resolves


def clean(value: float) -> str:
    """A coordinate with two decimals at most: short, and the same on every machine."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0", "0" if abs(value) < 0.005 else "-0")


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", turn: float = 0) -> str:
    """One line of text, escaped; `turn` rotates it about its anchor."""
    look = f' class="{kind}"' if kind else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    turned = f' transform="rotate({clean(turn)} {clean(x)} {clean(y)})"' if turn else ""
    return f'<text x="{clean(x)}" y="{clean(y)}"{look}{side}{turned}>{escape(words)}</text>'


def text_width(words: str, size: float = 12) -> float:
    """A generous guess: no font is at hand to measure with, and a wide one must fit too."""
    return size * sum(0.36 if c in NARROW else 0.85 if c in WIDE else 0.7 if c.isupper() else 0.6 for c in words)


def wrapped(words: str, width: float, size: float = 12) -> list[str]:
    """The words in lines that fit a width; a word that is too long has a line to itself."""
    lines: list[str] = []
    for word in words.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def stroke(path: str, look: int, width: float = 2, opacity: float = 1) -> str:
    """A curve in the dash of its series."""
    dash = DASHES[look % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash != "none" else ""
    faint = f' stroke-opacity="{clean(opacity)}"' if opacity != 1 else ""
    ends = f'stroke-width="{clean(width)}"{faint} stroke-linejoin="round" stroke-linecap="butt"'
    return f'<path d="{path}" fill="none" stroke="currentColor" {ends}{dashed}/>'


def marker(x: float, y: float, look: int, size: float = 1.0) -> str:
    """The path of one marker in the shape of its series, all of about the same weight."""
    return f"M{clean(x)} {clean(y)}{_marker_path(look % len(SHAPES), size)}"


@functools.cache
def _marker_path(look: int, size: float) -> str:
    return " ".join(clean(size * float(w)) if w[-1].isdigit() else w for w in SHAPES[look].split())


def cells(
    rows: Sequence[Sequence[Any]], xs: Sequence[float], ys: Sequence[float], scale: Scale, ramp: Sequence[str] = GREY
) -> list[str]:
    """A matrix between the edges `xs` and `ys`: one path for each shade, equal neighbours joined."""
    paths: dict[int, list[str]] = {}
    for r, row in enumerate(rows):
        shades = [round((LEVELS - 1) * min(max(scale(v), 0), 1)) if usable(v) else -1 for v in row]
        for level, run in groupby(range(len(row)), key=shades.__getitem__):
            span = list(run)
            left, right, top, bottom = xs[span[0]], xs[span[-1] + 1], ys[r], ys[r + 1]
            box = f"M{clean(left)} {clean(top)}H{clean(right)}V{clean(bottom)}H{clean(left)}z"
            paths.setdefault(level, []).append(box)
    paths.pop(-1, None)  # what is not a number stays paper
    inks = {level: shade(level / (LEVELS - 1), ramp) for level in sorted(paths)}
    drawn = [f'<path fill="{ink}" d="{"".join(paths[level])}"/>' for level, ink in inks.items()]
    return ['<g shape-rendering="crispEdges">', *drawn, "</g>"]


def shrunk(rows: Sequence[Sequence[Any]], most: int = 160, even: bool = False) -> list[list[float]]:
    """A matrix with at most so many rows and columns, by the means of blocks; `even` keeps the shape of an image."""
    across = max(map(len, rows), default=0)
    tall, wide = math.ceil(len(rows) / most), math.ceil(across / most)
    tall, wide = (max(tall, wide),) * 2 if even else (tall, wide)
    blocks = []
    for top in range(0, len(rows), tall):
        band = [
            [v for row in rows[top : top + tall] for v in row[left : left + wide] if usable(v)]
            for left in range(0, across, wide)
        ]
        blocks.append([sum(block) / len(block) if block else math.nan for block in band])
    return blocks


def shade(place: float, ramp: Sequence[str]) -> str:
    """The colour at a place between 0 and 1 along a ramp of colours."""
    position = place * (len(ramp) - 1)
    first = min(int(position), len(ramp) - 2)
    mixed = []
    for channel in (1, 3, 5):
        low, high = (int(ramp[first + k][channel : channel + 2], 16) for k in (0, 1))
        mixed.append(round(low + (high - low) * (position - first)))
    return "#{:02x}{:02x}{:02x}".format(*mixed)
