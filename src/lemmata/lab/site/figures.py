"""A figure on a page: drawing, description, data table, CSV and SVG."""

import base64
import csv
import io
from typing import Any

from markupsafe import Markup, escape

from lemmata.figure import Band, Bars, Figure, Heat, Image, Mark, Polygons
from lemmata.lab.figures.svg import STYLE, svg
from lemmata.lab.words import number

__all__ = ["draw", "drawing", "figure_csv", "figure_svg", "sketch"]

WIDTHS = {"wide": 640, "narrow": 360}
SHOWN = 200  # rows of the table; the CSV has all

Row = dict[str, Any]


def draw(data: dict[str, Any] | Figure, at: str = "") -> Markup:
    """The whole figure. `at` is where its files are served (`at`.csv, `at`.svg); without it they travel in the page.

    >>> from lemmata.figure import Line
    >>> "<figcaption" in draw(Figure("Error", "load", "rate", [Line([0, 1], [0.0, 0.5], "theory")]))
    True
    """
    drawn = data if isinstance(data, Figure) else Figure.from_json(data)
    # A phone gets a drawing of its own, since the letters of a wide one would shrink with it.
    picture = "".join(drawing(drawn, name) for name in WIDTHS)
    files = {
        "CSV": f"{at}.csv" if at else _data_address("text/csv", figure_csv(drawn)),
        "SVG": f"{at}.svg" if at else _data_address("image/svg+xml", svg(drawn)),
    }
    return _figure_markup(drawn, picture, files)


def sketch(data: dict[str, Any], narrow: bool, at: str, state: str) -> Markup:
    """The same for a reader who drags: drawn once, its files made when they are asked for, at `at`.csv?`state`.

    >>> sketch(Figure("Error", marks=[Bars(["a"], [1])]).to_json(), False, "/claim/x/figure", "lie=0").count("<svg")
    1
    """
    drawn = Figure.from_json(data)
    picture = svg(drawn, WIDTHS["narrow" if narrow else "wide"]).replace(f"<style>{STYLE}</style>", "", 1)
    files = {"CSV": f"{at}.csv?{state}", "SVG": f"{at}.svg?{state}"}
    return _figure_markup(drawn, picture, files)


def _figure_markup(drawn: Figure, picture: str, files: dict[str, str]) -> Markup:
    name = "".join(c if c.isalnum() else "-" for c in drawn.title.lower()).strip("-") or "figure"
    links = " ".join(
        f'<a href="{escape(place)}" download="{escape(name)}.{kind.lower()}">{kind}</a>'
        for kind, place in files.items()
    )
    return Markup(
        f'<figure class="figure">{picture}<figcaption><details><summary>Data of “{escape(drawn.title)}”</summary>'
        f'{_figure_table(drawn, _figure_rows(drawn))}</details><span class="files">{links}</span></figcaption></figure>'
    )


def drawing(figure: Figure, size: str) -> str:
    """The picture alone, "wide" or "narrow".

    The page's policy forbids a style inside the drawing: static/figures.css has the same rules.
    """
    plain = svg(figure, WIDTHS[size]).replace(f"<style>{STYLE}</style>", "", 1)
    return plain.replace('"lemmata-figure"', f'"lemmata-figure {size}"', 1)


def figure_csv(data: dict[str, Any] | Figure) -> str:
    """Every value of a figure, one row each, with the names of its axes as heads."""
    drawn = data if isinstance(data, Figure) else Figure.from_json(data)
    rows = _figure_rows(drawn)
    text = io.StringIO()
    heads = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, heads, restval="", lineterminator="\n")
    writer.writerow({key: _column_head(drawn, key) for key in heads})
    writer.writerows(rows)
    return text.getvalue()


def figure_svg(data: dict[str, Any]) -> str:
    """The drawing as a file of its own, with its style."""
    return svg(Figure.from_json(data))


def _figure_rows(drawn: Figure) -> list[Row]:
    return [
        {"series": mark.label or type(mark).__name__.lower(), **row}
        for mark in drawn.marks
        for row in _mark_values(mark)
    ]


def _mark_values(mark: Mark) -> list[Row]:
    if isinstance(mark, Bars):
        return [{"name": name, "value": value} for name, value in zip(mark.names, mark.values, strict=True)]
    if isinstance(mark, Band):
        return [{"x": x, "low": a, "high": b} for x, a, b in zip(mark.x, mark.low, mark.high, strict=True)]
    if isinstance(mark, Polygons):
        middles = ((sum(x) / len(x), sum(y) / len(y)) for x, y in zip(mark.x, mark.y, strict=True))
        return [{"x": x, "y": y, "value": value} for (x, y), value in zip(middles, mark.values, strict=True)]
    if isinstance(mark, Heat | Image):
        cells = mark.values if isinstance(mark, Heat) else mark.pixels
        xs, ys = (mark.x, mark.y) if isinstance(mark, Heat) else (None, None)
        return [
            {"x": xs[j] if xs else j, "y": ys[i] if ys else i, "value": value}
            for i, row in enumerate(cells)
            for j, value in enumerate(row)
        ]
    return [{"x": x, "y": y} for x, y in zip(mark.x, mark.y, strict=True)]


def _column_head(drawn: Figure, key: str) -> str:
    return {"x": drawn.x_label, "y": drawn.y_label}.get(key) or key


def _figure_table(drawn: Figure, rows: list[Row]) -> str:
    heads = list(dict.fromkeys(key for row in rows for key in row))
    head = "".join(f'<th scope="col">{escape(_column_head(drawn, key))}</th>' for key in heads)
    body = "".join("<tr>" + "".join(_table_cell(row.get(key)) for key in heads) + "</tr>" for row in rows[:SHOWN])
    cut = f"<p>The first {SHOWN} of {len(rows):,} rows; the CSV has all.</p>" if len(rows) > SHOWN else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>{cut}'


def _table_cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{escape(number(value))}</td>'
    return f"<td>{escape('' if value is None else value)}</td>"


def _data_address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
