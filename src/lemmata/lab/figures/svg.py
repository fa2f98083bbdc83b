"""A figure as one self-contained SVG: light and dark, for every kind of colour vision, without a dependency.

A page may set `--figure-ink`, `--figure-paper` and `--figure-0` to `--figure-6`; otherwise the reader's colour
scheme decides. The same figure gives the same bytes.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from html import escape

from lemmata.figure import Band, Bars, Figure, Heat, Image, Line, Mark, Points, Polygons
from lemmata.lab.figures.chart import charts
from lemmata.lab.figures.scale import Scale, number, usable
from lemmata.lab.figures.shapes import cells, clean, marker, shrunk, stroke, text, text_width, wrapped

__all__ = ["svg"]

# Okabe and Ito's colours, told apart by every kind of colour vision; those that are faint on the paper come last.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#1f2328", "#e69f00", "#56b4e9")
DARK = ("#56b4e9", "#e69f00", "#00b583", "#d98cb8", "#e6edf3", "#d55e00", "#f0e442")
MARGIN = 14


def svg(figure: Figure, width: int = 640) -> str:
    """The figure as SVG text, `width` units wide and as high as it needs.

    >>> svg(Figure("Error & load", "load", "error", [Line([0, 1], [0.0, 0.5])])).startswith("<svg ")
    True
    """
    if not 200 <= width <= 4000:
        raise ValueError(f"width must lie between 200 and 4000, got {width}")
    name = hashlib.sha256(json.dumps([figure.to_json(), width]).encode()).hexdigest()[:12]
    looks = _series_looks(figure)
    body, bottom = [], 6.0
    for block in (_draw_heading, _draw_images, _draw_legend, charts, _draw_note):
        drawn, height = block(figure, looks, width, bottom)
        body += drawn
        bottom += height
    height = clean(bottom + 10)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="lemmata-figure" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-labelledby="t{name} d{name}">',
            f'<title id="t{name}">{escape(figure.title)}</title>',
            f'<desc id="d{name}">{escape(_figure_description(figure))}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{width}" height="{height}"/>',
            *body,
            "</svg>",
        ]
    )


def _colour_scheme(ink: str, paper: str, colours: Sequence[str]) -> str:
    series = "".join(f".lemmata-figure .s{i}{{color:var(--figure-{i},{c})}}" for i, c in enumerate(colours))
    return (
        f".lemmata-figure,.lemmata-figure .ink{{color:var(--figure-ink,{ink})}}"
        f".lemmata-figure .paper{{fill:var(--figure-paper,{paper})}}"
        f".lemmata-figure .mark{{fill:currentColor;stroke:var(--figure-paper,{paper})}}{series}"
    )


STYLE = (
    ".lemmata-figure{max-width:100%;height:auto;font:12px/1.3 var(--figure-font,system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif)}"
    ".lemmata-figure text{fill:currentColor}.lemmata-figure .soft{opacity:.75}"
    ".lemmata-figure .small{font-size:12px}.lemmata-figure .head{font-size:15px;font-weight:600}"
    + _colour_scheme("#1f2328", "#ffffff", LIGHT)
    + f"@media (prefers-color-scheme:dark){{{_colour_scheme('#e6edf3', '#0d1117', DARK)}}}"
)


# --- Blocks, from top to bottom: each returns what it draws and the height it takes ----------------------------


def _draw_heading(figure: Figure, looks: dict[int, int], width: int, top: float) -> tuple[list[str], float]:
    lines = wrapped(figure.title, width - 2 * MARGIN, 16.5)  # 15, and bold is wider
    return [text(MARGIN, top + 20 * i + 19, line, "head") for i, line in enumerate(lines)], 20.0 * len(lines) + 9


def _draw_note(figure: Figure, looks: dict[int, int], width: int, top: float) -> tuple[list[str], float]:
    lines = wrapped(figure.note, width - 2 * MARGIN)
    return [text(MARGIN, top + 16 * i + 16, line, "soft") for i, line in enumerate(lines)], 16.0 * len(lines)


def _draw_images(figure: Figure, looks: dict[int, int], width: int, top: float) -> tuple[list[str], float]:
    """Images side by side at one scale, in as many rows as they need."""
    marks = [mark for mark in figure.marks if isinstance(mark, Image)]
    if not marks:
        return [], 0.0
    alone = len(marks) == 1  # such as a grid of samples, which holds many
    images = [(shrunk(mark.pixels, 320 if alone else 160, even=True), mark.label) for mark in marks]
    wide = max(len(row) for pixels, _ in images for row in pixels)
    high = max(len(pixels) for pixels, _ in images)
    across = min(len(images), max(1, (width - 2 * MARGIN + 16) // 112))
    room = (width - 2 * MARGIN + 16) / across - 16
    cell = min(room / wide, (560 if alone and high > 64 else 200) / high)
    cell = math.floor(cell) if cell >= 3 else cell  # whole units keep every pixel square
    room = min(room, max(cell * wide, 96.0))
    drawn, bottom = [], top + 2
    for first in range(0, len(images), across):
        lines = 0
        for i, (pixels, label) in enumerate(images[first : first + across]):
            left, words = MARGIN + i * (room + 16), wrapped(label, room)
            drawn += _draw_image(pixels, left, bottom, cell)
            drawn += [text(left, bottom + cell * high + 15 * k + 17, line) for k, line in enumerate(words)]
            lines = max(lines, len(words))
        bottom += cell * high + 15 * lines + 14
    return drawn, bottom - top


def _draw_image(pixels: Sequence[Sequence[float]], left: float, top: float, cell: float) -> list[str]:
    xs = [left + cell * i for i in range(max(map(len, pixels)) + 1)]
    ys = [top + cell * i for i in range(len(pixels) + 1)]
    box = f'x="{clean(left)}" y="{clean(top)}" width="{clean(xs[-1] - left)}" height="{clean(ys[-1] - top)}"'
    frame = f'<rect {box} fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    return [*cells(pixels, xs, ys, Scale(0, 1)), frame]


def _draw_legend(figure: Figure, looks: dict[int, int], width: int, top: float) -> tuple[list[str], float]:
    """One entry for each label, in rows above the data, so that it never covers any."""
    entries: dict[str, list[Line | Points | Band | Bars]] = {}
    for mark in figure.marks:
        if mark.label and not isinstance(mark, Heat | Image | Polygons):
            entries.setdefault(mark.label, []).append(mark)
    drawn, left, row = [], float(MARGIN), 0
    for label, marks in entries.items():
        taken = 32 + text_width(label) + 16
        if left > MARGIN and left + taken > width:
            left, row = float(MARGIN), row + 1
        middle, look = top + 19 * row + 10, looks[id(marks[0])]
        drawn.append(f'<g class="s{look % len(LIGHT)}">')
        drawn += [_legend_key(mark, look, left, middle) for mark in marks]
        drawn += ["</g>", text(left + 32, middle + 4, label)]
        left += taken
    return drawn, 19.0 * (row + 1) + 5 if entries else 0.0


def _legend_key(mark: Line | Points | Band | Bars, look: int, left: float, middle: float) -> str:
    if isinstance(mark, Line):
        return stroke(f"M{clean(left)} {clean(middle)}h26", look)
    if isinstance(mark, Points):
        return f'<path class="mark" d="{marker(left + 13, middle, look)}"/>'
    tall, opacity = (14, ".22") if isinstance(mark, Band) else (10, ".9")
    box = f'x="{clean(left)}" y="{clean(middle - tall / 2)}" width="26" height="{tall}"'
    return f'<rect {box} fill="currentColor" opacity="{opacity}"/>'


# --- What every block needs to know ----------------------------------------------------------------------------


def _series_looks(figure: Figure) -> dict[int, int]:
    """The series of each mark, which fixes its colour, dash and marker: marks with one label are one series."""
    series: dict[object, int] = {}
    return {
        id(mark): series.setdefault(mark.label or id(mark), len(series))
        for mark in figure.marks
        if not isinstance(mark, Heat | Image | Polygons)
    }


def _figure_description(figure: Figure) -> str:
    """The figure in words, for those who hear it."""
    axes = [f"{axis}: {label}." for axis, label in (("x", figure.x_label), ("y", figure.y_label)) if label]
    return " ".join([*axes, *map(_in_words, figure.marks), figure.note]).strip()


def _in_words(mark: Mark) -> str:
    kind = f"{type(mark).__name__}{f' “{mark.label}”' if mark.label else ''}"
    if isinstance(mark, Bars):
        values = [number(value) if usable(value) else "nothing" for value in mark.values]
        return f"{kind}: {', '.join(f'{n} {v}' for n, v in zip(mark.names, values, strict=True))}."
    if isinstance(mark, Heat | Image):
        rows = mark.values if isinstance(mark, Heat) else mark.pixels
        return f"{kind}: {len(rows)} by {max(map(len, rows), default=0)} values."
    if isinstance(mark, Polygons):
        return f"{kind}: {len(mark.values)} areas."
    heights = [*mark.low, *mark.high] if isinstance(mark, Band) else mark.y
    found = [value for value in heights if usable(value)]
    reach = f", from {number(min(found))} to {number(max(found))}" if found else ""
    return f"{kind}: {len(mark.x)} points{reach}."
