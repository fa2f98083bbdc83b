"""A figure as small as a stamp: its marks alone, without axes or words, in colours that show on light and on dark."""

from collections.abc import Iterator
from itertools import chain

from lemmata.figure import Bars, Figure, Heat, Image, Line, Points, Polygons
from lemmata.lab.figures.scale import Scale, usable
from lemmata.lab.figures.shapes import cells, clean, shade

__all__ = ["thumbnail"]

WIDE, HIGH, EDGE = 160, 120, 8
COLOURS = ("#2f8fc4", "#d9730d", "#0f9d77", "#b8558c")
GREY = "#8d9398"  # lines between areas, which have the colours
PALE = ("#3b8fc0", "#9db9c6", "#c9c0b4", "#dfb28b", "#d9730d")


def thumbnail(figure: Figure) -> str:
    """The figure as an SVG of 160 by 120, for the list of labs.

    >>> thumbnail(Figure("Error", "load", "rate", [Line([0, 1], [0.0, 0.5])])).startswith("<svg ")
    True
    """
    images = [mark for mark in figure.marks if isinstance(mark, Image)]
    bars = [mark for mark in figure.marks if isinstance(mark, Bars)]
    body = _image_thumbnail(images) if images else _bar_thumbnail(bars[0]) if bars else list(_mark_thumbnail(figure))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}">'
    return "".join([head, *body, "</svg>"])


def _image_thumbnail(images: list[Image]) -> list[str]:
    room = (WIDE - EDGE * (len(images) + 1)) / len(images)
    drawn: list[str] = []
    for k, image in enumerate(images):
        across, down = len(image.pixels[0]), len(image.pixels)
        cell = min(room / across, (HIGH - 2 * EDGE) / down)
        left, top = EDGE + k * (room + EDGE) + (room - cell * across) / 2, (HIGH - cell * down) / 2
        xs, ys = ([start + cell * i for i in range(n + 1)] for start, n in ((left, across), (top, down)))
        drawn += cells(image.pixels, xs, ys, Scale(0, 1), ("#5b6770", "#d8d2c6"))
    return drawn


def _bar_thumbnail(bars: Bars) -> list[str]:
    step, most = (WIDE - 2.0 * EDGE) / len(bars.values), max(max(bars.values), 0.0) or 1.0
    drawn = []
    for k, value in enumerate(bars.values):
        left, high = clean(EDGE + k * step), clean((HIGH - 2.0 * EDGE) * max(value, 0.0) / most)
        drawn.append(f'<path d="M{left} {HIGH - EDGE}v-{high}h{clean(0.8 * step)}v{high}z" fill="{COLOURS[0]}"/>')
    return drawn


def _mark_thumbnail(figure: Figure) -> Iterator[str]:
    curves = [mark for mark in figure.marks if isinstance(mark, Line | Points)]
    heats = [mark for mark in figure.marks if isinstance(mark, Heat) and mark.x and mark.y]
    areas = [mark for mark in figure.marks if isinstance(mark, Polygons)]
    corners = [Points([*chain(*mark.x)], [*chain(*mark.y)]) for mark in areas]
    points = [mark for mark in curves if isinstance(mark, Points) and len(mark.x) > 1]
    shown = [*points, *heats, *corners] or curves  # a line between points may leave the picture
    xs = [x for mark in shown for x in mark.x or () if usable(x, figure.x_log)]
    ys = [y for mark in shown for y in mark.y or () if usable(y, figure.y_log)]
    x, y = Scale.around(xs, figure.x_log), Scale.around(ys, figure.y_log)
    wide, high = WIDE - 2.0 * EDGE, HIGH - 2.0 * EDGE
    geometry = any(isinstance(mark, Points | Polygons) for mark in figure.marks)
    if geometry and not (figure.x_log or figure.y_log):  # a circle is one
        unit = min(wide / (x.high - x.low), high / (y.high - y.low))
        wide, high = unit * (x.high - x.low), unit * (y.high - y.low)
    first, last = (WIDE - wide) / 2, (HIGH + high) / 2

    def across(value: float) -> float:
        return first + x(value) * wide

    def down(value: float) -> float:
        return last - y(value) * high

    for heat in heats:
        left = [first + wide * i / len(heat.x or ()) for i in range(len(heat.x or ()) + 1)]
        top = [last - high * i / len(heat.values) for i in range(len(heat.values) + 1)]
        found = [value for row in heat.values for value in row if usable(value)]
        yield from cells(heat.values, left, top, Scale.around(found), PALE)
    for mark in areas:
        values = Scale.around([value for value in mark.values if usable(value)])
        known = [each for each in zip(mark.x, mark.y, mark.values, strict=True) if usable(each[2])]
        for x_sides, y_sides, value in known:
            path = "L".join(f"{clean(across(u))} {clean(down(v))}" for u, v in zip(x_sides, y_sides, strict=True))
            yield f'<path fill="{shade(min(max(values(value), 0), 1), PALE)}" d="M{path}z"/>'
    for k, mark in enumerate(curves):
        colour = COLOURS[k % len(COLOURS)]
        fits = [usable(u, figure.x_log) and usable(v, figure.y_log) for u, v in zip(mark.x, mark.y, strict=True)]
        places = [(across(u), down(v)) for u, v, fit in zip(mark.x, mark.y, fits, strict=True) if fit]
        if isinstance(mark, Points):
            dots = "".join(f'<circle cx="{clean(u)}" cy="{clean(v)}" r="3"/>' for u, v in places)
            yield f'<g fill="{colour}" stroke="#fffdf8" stroke-width=".8">{dots}</g>'
        elif places:
            # A gap in the numbers is a gap in the line.
            pens = ["L" if before else "M" for before, fit in zip([False, *fits], fits, strict=False) if fit]
            path = "".join(f"{pen}{clean(u)} {clean(v)}" for pen, (u, v) in zip(pens, places, strict=True))
            look = f'stroke="{GREY}"' if areas else f'stroke="{colour}" stroke-width="2"'
            yield f'<path d="{path}" fill="none" {look} stroke-linejoin="round"/>'
