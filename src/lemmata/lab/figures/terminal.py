"""A figure as text: braille dots and blocks where the terminal has them, plain ASCII where it has not."""

import math
from collections.abc import Sequence
from itertools import pairwise

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from lemmata.figure import Band, Bars, Figure, Heat, Image, Line, Points, Polygons
from lemmata.lab.figures.raster import as_heat
from lemmata.lab.figures.scale import Scale, number, usable
from lemmata.lab.figures.shapes import shrunk

__all__ = ["Drawing", "draw"]

COLOURS = ("blue", "red", "green", "magenta", "cyan", "yellow")
LETTERS, SIGNS = "*+ox#@", "●■▲◆✖✚"
SHADES, ASCII_SHADES = " ░▒▓█", " .:-=+*#%@"
BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # the bit of each dot, by row and column
PLAIN = str.maketrans({"−": "-", "×": "x", "…": "~", "│": "|", "└": "+", "─": "-", "█": "#", "—": "-"})
PLAIN |= {ord(power): f"^{digit}" for power, digit in zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True)}


def draw(figure: Figure, width: int = 72) -> "Drawing":
    """The figure as something rich can print; `str` of it is plain text in ASCII.

    >>> print(draw(Figure("Grades", marks=[Bars(["a", "b"], [1, 2])]), 24))
    Grades
    a | ########           1
    b | #################  2
    """
    if not 24 <= width <= 400:
        raise ValueError(f"width must lie between 24 and 400, got {width}")
    return Drawing(figure, width)


class Drawing:
    """A figure that adapts to the console that prints it."""

    def __init__(self, figure: Figure, width: int) -> None:
        self.figure, self.width = figure, width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(24, min(self.width, options.max_width))
        yield Text("\n").join(_figure_lines(self.figure, width, ascii=options.ascii_only or options.legacy_windows))

    def __str__(self) -> str:
        return "\n".join(line.plain.rstrip() for line in _figure_lines(self.figure, self.width, ascii=True))


def _figure_lines(figure: Figure, width: int, ascii: bool) -> list[Text]:
    curves = [mark for kind in (Band, Line, Points) for mark in figure.marks if isinstance(mark, kind)]
    shown = [as_heat(mark, min(40, width // 2), 20) if isinstance(mark, Polygons) else mark for mark in figure.marks]
    pictures = [_image_lines(mark, width, ascii) for mark in shown if isinstance(mark, Heat | Image)]
    lines = _fold_text(Text(figure.title, style="bold"), width)
    lines += _side_by_side(pictures, width)
    lines += _plot_curves(figure, curves, width, ascii) if curves else []
    for mark in figure.marks:
        lines += _bar_lines(mark, width) if isinstance(mark, Bars) else []
    lines += _fold_text(Text(figure.note, style="dim"), width)
    return [_plain_line(line) for line in lines] if ascii else lines


def _fold_text(text: Text, width: int) -> list[Text]:
    return list(text.wrap(Console(width=width), width)) if text else []


# --- Curves ----------------------------------------------------------------------------------------------------


def _plot_curves(figure: Figure, curves: Sequence[Line | Points | Band], width: int, ascii: bool) -> list[Text]:
    heights = [v for m in curves for v in ([*m.low, *m.high] if isinstance(m, Band) else m.y)]
    x = Scale.around([v for mark in curves for v in mark.x], figure.x_log)
    y = Scale.around(heights, figure.y_log)
    rows = max(8, min(20, width // 5))
    ticks = y.ticks(rows // 3)
    margin = max([len(label) for _, label in ticks], default=0) + 1
    canvas = _Canvas(width - margin - 1, rows, ascii)
    series: dict[str, int] = {}
    for mark in curves:
        canvas.add(mark, series.setdefault(mark.label or f"#{id(mark)}", len(series)), x, y)
    labels = {rows - 1 - round(y(value) * (rows - 1)): label for value, label in ticks}
    body = [Text(labels.get(r, "").rjust(margin)) + Text("│") + line for r, line in enumerate(canvas.lines())]
    legend = [
        [Text(f"{canvas.letter(look)} {label}", style=COLOURS[look % len(COLOURS)])]
        for label, look in series.items()
        if not label.startswith("#")
    ]
    head = [Text(figure.y_label, style="dim")] if figure.y_label else []
    foot = [Text(" " * margin + "└" + "─" * canvas.width), _axis_line(x, margin + 1, canvas.width)]
    foot += [Text(figure.x_label.center(canvas.width + margin).rstrip(), style="dim")] if figure.x_label else []
    return [*head, *body, *foot, *_side_by_side(legend, width)]


def _axis_line(x: Scale, margin: int, width: int) -> Text:
    """The ticks below their places, left out where they would touch."""
    line = " " * (margin + width)
    end = 0
    for value, label in x.ticks(max(2, width // 12)):
        start = min(max(margin + round(x(value) * (width - 1)) - len(label) // 2, 0), len(line) - len(label))
        if start >= end:
            line = line[:start] + label + line[start + len(label) :]
            end = start + len(label) + 1
    return Text(line.rstrip())


class _Canvas:
    """A grid of characters: each holds 2 by 4 braille dots, or one letter."""

    def __init__(self, width: int, rows: int, ascii: bool) -> None:
        self.width, self.rows, self.ascii = width, rows, ascii
        self.fine = (1, 1) if ascii else (2, 4)
        self.dots: dict[tuple[int, int], int] = {}
        self.looks: dict[tuple[int, int], int] = {}
        self.signs: dict[tuple[int, int], str] = {}

    def add(self, mark: Line | Points | Band, look: int, x: Scale, y: Scale) -> None:
        for height in (mark.low, mark.high) if isinstance(mark, Band) else (mark.y,):
            known = [
                (x(u), y(v)) if usable(u, x.log) and usable(v, y.log) else None
                for u, v in zip(mark.x, height, strict=True)
            ]
            for place in filter(None, known):
                self.dot(place, look, sign=isinstance(mark, Points))
            for a, b in pairwise(known) if not isinstance(mark, Points) else ():
                if a and b:
                    self.join(a, b, look)

    def join(self, a: tuple[float, float], b: tuple[float, float], look: int) -> None:
        steps = 1 + int(max(abs(a[0] - b[0]) * self.width * self.fine[0], abs(a[1] - b[1]) * self.rows * self.fine[1]))
        for k in range(1, steps):
            self.dot((a[0] + (b[0] - a[0]) * k / steps, a[1] + (b[1] - a[1]) * k / steps), look)

    def dot(self, place: tuple[float, float], look: int, sign: bool = False) -> None:
        column = round(place[0] * (self.width * self.fine[0] - 1))
        row = round((1 - place[1]) * (self.rows * self.fine[1] - 1))
        cell = (row // self.fine[1], column // self.fine[0])
        self.dots[cell] = self.dots.get(cell, 0) | BRAILLE[row % self.fine[1]][column % self.fine[0]]
        self.looks[cell] = look
        if sign or self.ascii:
            self.signs[cell] = self.letter(look)

    def letter(self, look: int) -> str:
        return (LETTERS if self.ascii else SIGNS)[look % len(LETTERS)]

    def lines(self) -> list[Text]:
        lines = []
        for row in range(self.rows):
            line = Text()
            for column in range(self.width):
                cell = (row, column)
                if cell in self.looks:
                    sign = self.signs.get(cell) or chr(0x2800 + self.dots[cell])
                    line.append(sign, style=COLOURS[self.looks[cell] % len(COLOURS)])
                else:
                    line.append(" ")
            lines.append(line)
        return lines


# --- Bars and pictures -----------------------------------------------------------------------------------------


def _bar_lines(bars: Bars, width: int) -> list[Text]:
    """One line for each bar, from zero; negative ones are marked by their number."""
    names = [str(name) for name in bars.names]
    left = min(max(map(len, names), default=0), width // 3)
    values = [number(value) if usable(value) else "-" for value in bars.values]
    room = width - left - 3 - max(map(len, values), default=0) - 2
    longest = max([abs(value) for value in bars.values if usable(value)], default=0) or 1.0
    lines = [Text(bars.label, style="bold")] if bars.label else []
    for name, value, label in zip(names, bars.values, values, strict=True):
        length = round(room * abs(value) / longest) if usable(value) else 0
        lines.append(Text(f"{name[:left].ljust(left)} │ ") + Text("█" * length, style=COLOURS[0]))
        lines[-1] += Text(" " * (width - len(lines[-1]) - len(label)) + label)
    return lines


def _image_lines(mark: Heat | Image, width: int, ascii: bool) -> list[Text]:
    """Two characters for each cell, which makes it about square, shaded from the least to the greatest."""
    rows = shrunk(mark.pixels, width // 2, even=True) if isinstance(mark, Image) else shrunk(mark.values, width // 2)
    found = [value for row in rows for value in row if usable(value)]
    low, high = (0.0, 1.0) if isinstance(mark, Image) or not found else (min(found), max(found))
    shades = ASCII_SHADES if ascii else SHADES
    scale = Scale(low, high if high > low else low + 1)
    caption = mark.label if isinstance(mark, Image) else f"{mark.label} from {number(low)} to {number(high)}".strip()
    lines = [Text(caption, style="bold")] if caption else []
    for row in rows:
        places = [math.floor(len(shades) * min(max(scale(v), 0), 0.999)) if usable(v) else 0 for v in row]
        lines.append(Text("".join(2 * shades[place] for place in places)))
    return lines


def _side_by_side(pictures: list[list[Text]], width: int) -> list[Text]:
    """Blocks of lines, as many beside each other as fit."""
    lines: list[Text] = []
    while pictures:
        row, pictures = pictures[:1], pictures[1:]
        while pictures and sum(_image_breadth(picture) + 2 for picture in [*row, pictures[0]]) <= width + 2:
            row.append(pictures.pop(0))
        for k in range(max(map(len, row))):
            line = Text()
            for picture in row:
                part = picture[k] if k < len(picture) else Text()
                line += part + Text(" " * (_image_breadth(picture) + 2 - len(part)))
            line.rstrip()
            lines.append(line)
    return lines


def _image_breadth(picture: list[Text]) -> int:
    return max(map(len, picture))


def _plain_line(line: Text) -> Text:
    text = line.plain.translate(PLAIN)
    return Text(text.encode("ascii", "replace").decode("ascii"))
