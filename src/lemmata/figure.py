"""Figures as data: what was measured, with its labels. The lab draws them; nothing here knows how."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Band", "Bars", "Figure", "Heat", "Image", "Line", "Points", "Polygons"]

Numbers = Any  # a list, a range, an array or a tensor, nested as the mark wants it


def _plain_lists(values: Any) -> Any:
    """Tensors and arrays become nested lists of numbers, which is all JSON knows; NaN and infinity become gaps."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, list | tuple | range):
        return [_plain_lists(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


class _Mark:
    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, _plain_lists(value))

    def to_json(self) -> dict[str, Any]:
        return {"mark": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class Line(_Mark):
    """A curve through the points (x, y)."""

    x: Numbers
    y: Numbers
    label: str = ""


@dataclass(frozen=True)
class Points(_Mark):
    """Separate points (x, y): measurements."""

    x: Numbers
    y: Numbers
    label: str = ""


@dataclass(frozen=True)
class Band(_Mark):
    """The region between two curves: an interval of confidence or a range."""

    x: Numbers
    low: Numbers
    high: Numbers
    label: str = ""


@dataclass(frozen=True)
class Bars(_Mark):
    """One bar for each name."""

    names: Sequence[str]
    values: Numbers
    label: str = ""


@dataclass(frozen=True)
class Heat(_Mark):
    """A matrix of values, rows downwards, shown by colour; columns and rows may have places x and y, or names."""

    values: Numbers
    x: Numbers | None = None
    y: Numbers | None = None
    label: str = ""
    columns: Sequence[str] | None = None
    rows: Sequence[str] | None = None


@dataclass(frozen=True)
class Image(_Mark):
    """A grey picture with values in [0, 1], rows downwards; several in one figure stand side by side."""

    pixels: Numbers
    label: str = ""


@dataclass(frozen=True)
class Polygons(_Mark):
    """Areas of the plane, polygon k with the corners (x[k], y[k]) in order, each shown by the colour of its value."""

    x: Numbers
    y: Numbers
    values: Numbers
    label: str = ""


Mark = Line | Points | Band | Bars | Heat | Image | Polygons
MARKS = {mark.__name__: mark for mark in (Line, Points, Band, Bars, Heat, Image, Polygons)}


@dataclass(frozen=True)
class Figure:
    """A picture of the evidence: marks on one pair of axes, or a row of images.

    >>> figure = Figure("Error", "load", "probability", [Line([0, 1], [0.0, 0.5], "theory")])
    >>> Figure.from_json(figure.to_json()) == figure
    True
    """

    title: str
    x_label: str = ""
    y_label: str = ""
    marks: Sequence[Mark] = field(default_factory=list)
    x_log: bool = False
    y_log: bool = False
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "marks": [mark.to_json() for mark in self.marks]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Figure":
        marks = [MARKS[m["mark"]](**{key: value for key, value in m.items() if key != "mark"}) for m in data["marks"]]
        return cls(**{**data, "marks": marks})
