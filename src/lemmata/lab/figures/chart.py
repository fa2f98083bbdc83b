"""The axes of an SVG figure and the marks on them: lines, points, bands, bars, matrices and polygons."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from lemmata.figure import Band, Bars, Figure, Heat, Image, Line, Points, Polygons
from lemmata.lab.figures.scale import Scale, number, usable
from lemmata.lab.figures.shapes import cells, clean, marker, shade, shrunk, stroke, text, text_width, wrapped

__all__ = ["charts"]

SEQUENTIAL = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")  # viridis
DIVERGING = ("#0072b2", "#8cbfdd", "#f7f7f7", "#eda878", "#d55e00")
COLOURS = 7  # as many as svg.py gives
MARGIN = 14
NARROW = 300
CROWD = 300  # points of one mark above which all are drawn small
EDGES = 20  # runs of one line above which it is drawn light


def charts(figure: Figure, looks: dict[int, int], width: float, top: float) -> tuple[list[str], float]:
    """All marks but images on one pair of axes; several matrices stand side by side, the other marks on each.

    Where names would leave no room beside each other, matrices stand below each other.
    """
    heats = [mark for mark in figure.marks if isinstance(mark, Heat | Polygons)]
    others = [mark for mark in figure.marks if not isinstance(mark, Heat | Polygons | Image)]
    drawn, height, share = [], 0.0, width / max(1, len(heats))
    if share < NARROW and any(isinstance(heat, Heat) and (heat.rows or heat.columns) for heat in heats):
        for heat in heats:
            part, tall = _draw_chart(dataclasses.replace(figure, marks=[heat, *others]), looks, width, top + height)
            drawn += part
            height += tall + MARGIN
        return drawn, height
    for i, marks in enumerate([[heat, *others] for heat in heats] or [others]):
        if marks:
            part, tall = _draw_chart(dataclasses.replace(figure, marks=marks), looks, share, top)
            drawn += part if i == 0 else [f'<g transform="translate({clean(i * share)} 0)">', *part, "</g>"]
            height = max(height, tall)
    return drawn, height


@dataclass(frozen=True)
class Frame:
    """The rectangle of the data, and where a value lies in it."""

    left: float
    top: float
    right: float
    bottom: float
    x: Scale
    y: Scale
    down: bool  # the rows of a matrix count downwards

    def across(self, value: float) -> float:
        return self.left + self.x(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        place = self.y(value) if self.down else 1 - self.y(value)
        return self.top + place * (self.bottom - self.top)

    def places(self, x: Sequence[Any], y: Sequence[Any]) -> Iterator[tuple[float, float] | None]:
        """Where each point lies; None for one that has no place."""
        for u, v in zip(x, y, strict=True):
            yield (self.across(u), self.up(v)) if usable(u, self.x.log) and usable(v, self.y.log) else None


def _draw_chart(figure: Figure, looks: dict[int, int], width: float, top: float) -> tuple[list[str], float]:
    x, y = _figure_scales(figure)
    ground = figure.marks[0] if isinstance(figure.marks[0], Heat | Polygons) else None
    heat = ground if isinstance(ground, Heat) else None
    bars = [mark for mark in figure.marks if isinstance(mark, Bars)]
    down = heat is not None and heat.y is None
    y_ticks = [] if is_plan(figure) else _whole_ticks(y.ticks(6)) if down else y.ticks(6)
    if heat is not None and heat.rows:
        y_ticks = [(row, _shorten_name(str(name), width / 3)) for row, name in enumerate(heat.rows)]
    left = MARGIN + max([text_width(label, 12) for _, label in y_ticks], default=0) + 8
    right = width - MARGIN - (58 if ground else 0)
    head = top + (24 if figure.y_label or (ground and ground.label) else 6)
    ratio = 0.52 if ground is None else (y.high - y.low) / (x.high - x.low)  # areas keep their shape
    ratio = ratio if heat is None else len(heat.values) / max(map(len, heat.values))
    ratio = ratio if ground is None else min(1.0, max(0.3, ratio))
    bottom = head + max(150, ratio * min(right - left, 520))
    if is_plan(figure):
        x, y = _to_scale(x, y, (bottom - head) / (right - left))
    frame = Frame(left, head, right, bottom, x, y, down)
    names = [str(name) for name in max((bar.names for bar in bars), key=len)] if bars else []
    names = [str(name) for name in heat.columns] if heat is not None and heat.columns else names
    labels, below = (
        ([], 0.0)
        if is_plan(figure)
        else _bar_names(frame, names)
        if names
        else _axis_numbers(frame, whole=heat is not None and heat.x is None)
    )
    drawn = (
        [] if ground else [_zero_rule(frame, frame.up(value), ".35" if value == 0 else ".13") for value, _ in y_ticks]
    )
    drawn += _draw_marks(figure, looks, frame)
    drawn += [text(left - 7, frame.up(value) + 4, label, "soft small", "end") for value, label in y_ticks]
    drawn += labels
    if ground is None and not is_plan(figure):
        drawn.append(
            f'<path d="M{clean(left)} {clean(frame.bottom)}H{clean(right)}" stroke="currentColor" opacity=".6"/>'
        )
    if figure.y_label:
        drawn.append(text(MARGIN, head - 8, figure.y_label))
    if figure.x_label:
        below += 18
        drawn.append(text((left + right) / 2, frame.bottom + below, figure.x_label, "", "middle"))
    return drawn, frame.bottom + below + 10 - top


# --- Scales and ticks ------------------------------------------------------------------------------------------


def _figure_scales(figure: Figure) -> tuple[Scale, Scale]:
    xs, ys, bars = [], [], 0
    for mark in figure.marks:
        if isinstance(mark, Bars):
            bars = max(bars, len(mark.names))
            ys += [value * 1.05 for value in mark.values if usable(value)]  # room for the value above the bar
        elif isinstance(mark, Heat):
            xs += _cell_edges(mark.x, max(map(len, mark.values)), figure.x_log)
            ys += _cell_edges(mark.y, len(mark.values), figure.y_log)
        elif isinstance(mark, Polygons):
            xs += [value for polygon in mark.x for value in polygon]
            ys += [value for polygon in mark.y for value in polygon]
        elif not isinstance(mark, Image):
            xs += mark.x
            ys += [*mark.low, *mark.high] if isinstance(mark, Band) else mark.y
    if any(isinstance(mark, Heat | Polygons) for mark in figure.marks):  # cells reach the frame, without air
        xs, ys = ([v for v in values if usable(v)] for values in (xs, ys))
        return Scale(min(xs), max(xs), figure.x_log), Scale(min(ys), max(ys), figure.y_log)
    x = Scale(-0.6, bars - 0.4) if bars else Scale.around(xs, figure.x_log)
    return x, Scale.around(ys, figure.y_log, zero=bars > 0)


def is_plan(figure: Figure) -> bool:
    """Whether a figure is a drawing in the plane, such as a graph: it measures nothing, and keeps its shape."""
    bare = not (figure.x_label or figure.y_label or figure.x_log or figure.y_log)
    return bare and all(isinstance(mark, Line | Points) for mark in figure.marks)


def _to_scale(x: Scale, y: Scale, ratio: float) -> tuple[Scale, Scale]:
    """Both scales with one length for one unit, in a frame of so many times its width in height."""
    wide, high = x.high - x.low, y.high - y.low
    unit = max(wide, high / ratio)
    middle = (x.low + x.high) / 2, (y.low + y.high) / 2
    return (
        Scale(middle[0] - unit / 2, middle[0] + unit / 2),
        Scale(middle[1] - unit * ratio / 2, middle[1] + unit * ratio / 2),
    )


def _cell_edges(centres: Sequence[float] | None, length: int, log: bool) -> list[float]:
    """The borders of cells with these centres: half-way between them, in the sense of the axis."""
    if centres is None:
        centres = range(length)
        log = False
    places = [math.log(c) if log else float(c) for c in centres]
    half = [(a + b) / 2 for a, b in pairwise(places)]
    first, last = (2 * places[0] - half[0], 2 * places[-1] - half[-1]) if half else (places[0] - 0.5, places[0] + 0.5)
    return [math.exp(edge) if log else edge for edge in (first, *half, last)]


def _whole_ticks(ticks: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Only the ticks that count something: rows, columns."""
    return [(value, str(round(value))) for value, _ in ticks if abs(value - round(value)) < 1e-9]


def _axis_numbers(frame: Frame, whole: bool) -> tuple[list[str], float]:
    ticks = frame.x.ticks(max(3, int((frame.right - frame.left) / 75)))
    drawn = []
    for value, label in _whole_ticks(ticks) if whole else ticks:
        place = frame.across(value)
        drawn.append(f'<path d="M{clean(place)} {clean(frame.bottom)}v4" stroke="currentColor" opacity=".6"/>')
        inside = min(place, frame.right + MARGIN - 2 - text_width(label, 12) / 2)
        drawn.append(text(inside, frame.bottom + 17, label, "soft small", "middle"))
    return drawn, 17.0


def _bar_names(frame: Frame, names: list[str]) -> tuple[list[str], float]:
    """The names below their bars: in lines if they fit, slanted if they do not, thinned out if they are many."""
    slot = (frame.right - frame.left) / max(1, len(names))
    lines = [wrapped(name, slot - 4, 12) for name in names]
    bottom = frame.bottom + 17
    if max((text_width(line, 12) for words in lines for line in words), default=0) <= slot and max(map(len, lines)) < 4:
        drawn = [
            text(frame.across(i), bottom + 14 * k, line, "soft small", "middle")
            for i, words in enumerate(lines)
            for k, line in enumerate(words)
        ]
        return drawn, 17.0 + 14 * (max(map(len, lines)) - 1)
    if len(names) > 24:
        stride = math.ceil((max(text_width(name, 12) for name in names) + 8) / slot)
        shown = range(0, len(names), stride)
        return [text(frame.across(i), bottom, names[i], "soft small", "middle") for i in shown], 17.0
    short = [_shorten_name(name, 1.2 * frame.across(i)) for i, name in enumerate(names)]  # 1.2 = 1 / cos 35°
    drawn = [text(frame.across(i) + 4, bottom - 3, name, "soft small", "end", -35) for i, name in enumerate(short)]
    return drawn, 18.0 + 0.574 * max(text_width(name, 12) for name in short)  # 0.574 = sin 35°


def _shorten_name(name: str, room: float) -> str:
    kept = next((k for k in range(len(name), 0, -1) if text_width(name[:k], 12) <= min(room, 150)), 1)
    return name if kept == len(name) else name[: kept - 1] + "…"


def _zero_rule(frame: Frame, height: float, opacity: str) -> str:
    path = f"M{clean(frame.left)} {clean(height)}H{clean(frame.right)}"
    return f'<path d="{path}" stroke="currentColor" opacity="{opacity}"/>'


# --- Marks -----------------------------------------------------------------------------------------------------


def _draw_marks(figure: Figure, looks: dict[int, int], frame: Frame) -> list[str]:
    """From the ground up: matrices and areas first, measurements on top."""
    drawn: list[str] = []
    bars = [mark for mark in figure.marks if isinstance(mark, Bars)]
    coloured = any(isinstance(mark, Heat | Polygons) for mark in figure.marks)
    crowded = any(isinstance(mark, Points) and len(mark.x) > CROWD for mark in figure.marks)
    for kind in (Heat, Polygons, Band, Bars, Line, Points):
        for mark in figure.marks:
            if not isinstance(mark, kind):
                continue
            if isinstance(mark, Heat):
                drawn += _draw_heat(mark, frame)
                continue
            if isinstance(mark, Polygons):
                drawn += _draw_polygons(mark, frame)
                continue
            look = looks[id(mark)]
            drawn.append(f'<g class="s{look % COLOURS}">')
            if isinstance(mark, Band):
                drawn.append(_draw_band(mark, frame))
            elif isinstance(mark, Bars):
                drawn += _draw_bars(mark, frame, bars.index(mark), len(bars))
            elif isinstance(mark, Line):
                paths = list(_curve_runs(frame, mark))
                if coloured:  # a light seam, or a curve would sink into a ground of its own colour
                    drawn += [f'<path d="{path}" fill="none" stroke="#fff" stroke-width="5"/>' for path in paths]
                if len(paths) > EDGES:  # of a graph: one light path, on which the nodes are seen
                    drawn.append(stroke("".join(paths), look, width=1, opacity=0.5))
                else:
                    drawn += [stroke(path, look) for path in paths]
            elif isinstance(mark, Points):
                drawn += _draw_points(mark, frame, look, crowded)
            drawn.append("</g>")
    return drawn


def _curve_runs(frame: Frame, line: Line) -> Iterator[str]:
    """The curve in unbroken runs, without points that no pixel could show."""
    run: list[tuple[float, float]] = []
    for place in [*frame.places(line.x, line.y), None]:
        if place is not None:
            run.append(place)
        elif run:
            kept = _thin_run(run)
            kept = kept if len(kept) > 1 else [(kept[0][0] - 3, kept[0][1]), (kept[0][0] + 3, kept[0][1])]
            yield "M" + "L".join(f"{clean(u)} {clean(v)}" for u, v in kept)
            run = []


def _thin_run(run: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of the points that share a pixel column, the first, the lowest, the highest and the last."""
    if len(run) < 2000 or any(a[0] > b[0] for a, b in pairwise(run)):
        return run
    columns: dict[int, list[int]] = {}
    for i, (u, _) in enumerate(run):
        columns.setdefault(int(u), []).append(i)
    kept = []
    for members in columns.values():
        ends = (members[0], members[-1], min(members, key=lambda i: run[i][1]), max(members, key=lambda i: run[i][1]))
        kept += sorted(set(ends))
    return [run[i] for i in kept]


def _draw_points(points: Points, frame: Frame, look: int, crowded: bool) -> Iterator[str]:
    """A marker for each point, with its numbers on hover while there are few enough to aim at; small in a crowd."""
    seen: dict[tuple[float, float], tuple[float, float]] = {}
    for place, u, v in zip(frame.places(points.x, points.y), points.x, points.y, strict=True):
        if place is not None:
            seen.setdefault((round(place[0], 1), round(place[1], 1)), (u, v))
    if crowded:
        small = "".join(marker(left, top, look, size=0.5) for left, top in seen)
        yield f'<path class="mark" stroke-width=".3" d="{small}"/>'
        return
    name = escape(f"{points.label}: " if points.label else "")
    for (left, top), (u, v) in seen.items():
        yield f'<path class="mark" d="{marker(left, top, look)}"><title>{name}{number(u)}, {number(v)}</title></path>'


def _draw_band(band: Band, frame: Frame) -> str:
    pairs = zip(frame.places(band.x, band.low), frame.places(band.x, band.high), strict=True)
    sides = [(low, high) for low, high in pairs if low and high]
    around = [low for low, _ in sides] + [high for _, high in reversed(sides)]
    path = "L".join(f"{clean(u)} {clean(v)}" for u, v in around)
    return f'<path d="M{path}z" fill="currentColor" opacity=".22"/>' if around else ""


def _draw_bars(bars: Bars, frame: Frame, place: int, of: int) -> Iterator[str]:
    """One group of bars; their values stand on them where there is room."""
    wide = 0.76 / of
    ground = frame.bottom if frame.y.log else frame.up(0.0)
    widest = max([text_width(number(value), 12) for value in bars.values if usable(value)], default=0.0)
    roomy = widest <= frame.across(wide) - frame.across(0)
    for i, (name, value) in enumerate(zip(bars.names, bars.values, strict=True)):
        if not usable(value, frame.y.log):
            continue
        left, right = (frame.across(i - 0.38 + wide * (place + k)) for k in (0, 1))
        end, right = frame.up(value), right - (1.5 if of > 1 else 0)
        path = f"M{clean(left)} {clean(ground)}V{clean(end)}H{clean(right)}V{clean(ground)}z"
        label = escape(f"{bars.label}, {name}" if bars.label else str(name))
        yield f'<path d="{path}" fill="currentColor" opacity=".9"><title>{label}: {number(value)}</title></path>'
        if roomy:
            above = end - 4 if value >= 0 else end + 13
            yield text((left + right) / 2, above, number(value), "ink small", "middle")


def _draw_heat(heat: Heat, frame: Frame) -> list[str]:
    """The matrix and the bar that explains its colours."""
    scale, ramp = _colour_scale([value for row in heat.values for value in row])
    rows = shrunk(heat.values)
    xs = _spread_edges([frame.across(e) for e in _cell_edges(heat.x, len(heat.values[0]), frame.x.log)], len(rows[0]))
    ys = _spread_edges([frame.up(e) for e in _cell_edges(heat.y, len(heat.values), frame.y.log)], len(rows))
    return cells(rows, xs, ys, scale, ramp) + _colour_ladder(scale, ramp, frame, heat.label)


def _draw_polygons(mark: Polygons, frame: Frame) -> list[str]:
    """The areas with thin borders, and the bar that explains their colours."""
    scale, ramp = _colour_scale(mark.values)
    border = "1" if len(mark.values) < 500 else ".3"
    drawn = [f'<g stroke="#ffffff" stroke-width="{border}" stroke-linejoin="round">']
    for x, y, value in zip(mark.x, mark.y, mark.values, strict=True):
        path = "L".join(f"{clean(u)} {clean(v)}" for u, v in filter(None, frame.places(x, y)))
        drawn.append(f'<path fill="{shade(scale(value), ramp)}" d="M{path}z"><title>{number(value)}</title></path>')
    return [*drawn, "</g>", *_colour_ladder(scale, ramp, frame, mark.label)]


def _colour_scale(values: Sequence[Any]) -> tuple[Scale, Sequence[str]]:
    """A scale and its ramp: two-sided, and as far both ways, where the values have both signs."""
    found = [value for value in values if usable(value)]
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if low < 0 < high:
        return Scale(-max(-low, high), max(-low, high)), DIVERGING
    return (Scale(low, high) if low < high else Scale(low - 0.5, low + 0.5)), SEQUENTIAL


def _colour_ladder(scale: Scale, ramp: Sequence[str], frame: Frame, label: str) -> list[str]:
    left, reach = frame.right + 12, scale.high - scale.low
    steps = [frame.bottom + (frame.top - frame.bottom) * k / 48 for k in range(49)]
    ladder = [[scale.low + reach * (k + 0.5) / 48] for k in range(48)]
    drawn = cells(ladder, [left, left + 10], steps, scale, ramp)
    for value, words in scale.ticks(5):
        place = frame.bottom - scale(value) * (frame.bottom - frame.top)
        drawn.append(text(left + 14, place + 4, words, "soft small"))
    return [*drawn, text(left + 46, frame.top - 8, label, "", "end")] if label else drawn


def _spread_edges(edges: list[float], length: int) -> list[float]:
    """The edges of as many blocks, when cells were averaged together."""
    stride = math.ceil((len(edges) - 1) / length)
    return [*edges[:-1:stride], edges[-1]]
