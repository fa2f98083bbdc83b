"""A figure as matplotlib axes, for notebooks and papers."""

import math
from typing import TYPE_CHECKING, Any

from lemmata.figure import Band, Bars, Figure, Heat, Image, Line, Mark, Points, Polygons
from lemmata.lab.figures.chart import is_plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#1f2328", "#e69f00", "#56b4e9")  # Okabe and Ito
DASHES = ("-", "--", ":", "-.", (0, (7, 2)))
MARKERS = "os^DXP"


def axes(figure: Figure, ax: "Axes | None" = None) -> "Axes | list[Axes]":
    """The figure on `ax`, or on new axes; several images stand on a row of new axes."""
    pyplot = _import_pyplot()
    images = [mark for mark in figure.marks if isinstance(mark, Image)]
    if len(images) > 1 and ax is None:
        return _image_gallery(pyplot, figure.title, images)
    return _single_axes(figure, ax or pyplot.subplots(layout="constrained")[1])


def _single_axes(figure: Figure, ax: Any) -> Any:
    series: dict[object, int] = {}
    for mark in figure.marks:
        _add_mark(ax, mark, series.setdefault(mark.label or id(mark), len(series)))
    ax.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
    for axis, log in (("x", figure.x_log), ("y", figure.y_log)):
        if log:
            ax.set(**{f"{axis}scale": "log"})
    if is_plan(figure):
        ax.set_aspect("equal")
        ax.axis("off")
    if ax.get_legend_handles_labels()[1]:
        ax.legend(loc="best", frameon=False)
    if figure.note:
        ax.figure.text(0.01, -0.01, figure.note, ha="left", va="top", fontsize="small", wrap=True)
    return ax


def _import_pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("axes needs matplotlib: pip install 'lemmata[lab]'") from None
    return pyplot


def _image_gallery(pyplot: Any, title: str, images: list[Image]) -> "list[Axes]":
    sheet, row = pyplot.subplots(1, len(images), layout="constrained", squeeze=False)
    sheet.suptitle(title)
    for ax, image in zip(row[0], images, strict=True):
        _add_mark(ax, image, 0)
        ax.set(title=image.label, xticks=[], yticks=[])
    return list(row[0])


def _add_mark(ax: Any, mark: Mark, look: int) -> None:
    colour, label = COLOURS[look % len(COLOURS)], mark.label or None
    if isinstance(mark, Line):
        ax.plot(
            _real_values(mark.x), _real_values(mark.y), color=colour, linestyle=DASHES[look % len(DASHES)], label=label
        )
    elif isinstance(mark, Points):
        sign = MARKERS[look % len(MARKERS)]
        ax.plot(_real_values(mark.x), _real_values(mark.y), sign, color=colour, markersize=5, label=label)
    elif isinstance(mark, Band):
        sides = map(_real_values, (mark.x, mark.low, mark.high))
        ax.fill_between(*sides, color=colour, alpha=0.22, linewidth=0, label=label)
    elif isinstance(mark, Bars):
        ax.bar([str(name) for name in mark.names], _real_values(mark.values), color=colour, alpha=0.9, label=label)
    elif isinstance(mark, Image):
        ax.imshow(list(map(_real_values, mark.pixels)), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    elif isinstance(mark, Polygons):
        _add_areas(ax, mark)
    else:
        _add_matrix(ax, mark)


def _add_areas(ax: Any, mark: Polygons) -> None:
    from matplotlib.collections import PolyCollection

    corners = [list(zip(x, y, strict=True)) for x, y in zip(mark.x, mark.y, strict=True)]
    areas = ax.add_collection(
        PolyCollection(corners, array=_real_values(mark.values), edgecolors="white", linewidths=0.5)
    )
    ax.autoscale_view()
    ax.set_aspect("equal")
    ax.figure.colorbar(areas, ax=ax, label=mark.label)


def _add_matrix(ax: Any, heat: Heat) -> None:
    x = range(len(heat.values[0])) if heat.x is None else heat.x
    y = range(len(heat.values)) if heat.y is None else heat.y
    mesh = ax.pcolormesh(x, y, list(map(_real_values, heat.values)), shading="nearest", cmap="viridis")
    ax.figure.colorbar(mesh, ax=ax, label=heat.label)
    if heat.y is None:
        ax.invert_yaxis()
    if heat.columns:
        ax.set_xticks(x, heat.columns, rotation=60, ha="right")
    if heat.rows:
        ax.set_yticks(y, heat.rows)


def _real_values(values: Any) -> list[float]:
    """What is no number, and so None in a figure, is NaN to matplotlib."""
    return [math.nan if value is None else value for value in values]
