"""Figures drawn: whole, escaped, the same every time, and honest about values that have no place on an axis."""

import io
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from rich.console import Console

from lemmata.figure import Band, Bars, Figure, Heat, Image, Line, Points, Polygons
from lemmata.lab.figures.matplotlib import axes
from lemmata.lab.figures.raster import as_heat
from lemmata.lab.figures.scale import Scale, number
from lemmata.lab.figures.svg import svg
from lemmata.lab.figures.terminal import draw

SVG = "{http://www.w3.org/2000/svg}"
CURVES = Figure(
    "Errors < 5 % & falling",
    "load s/n",
    "error",
    [
        Line([0.1, 0.2, 0.4], [1e-4, 1e-2, 0.1], "theory"),
        Points([0.1, 0.2, 0.4], [2e-4, 1e-2, 0.09], "measured"),
        Band([0.1, 0.2, 0.4], [1e-5, 1e-3, 0.05], [1e-3, 0.05, 0.2], "theory"),
    ],
    y_log=True,
    note="One <note>.",
)
SQUARE_AND_TRIANGLE = [[0, 1, 1, 0], [1, 2, 1]], [[0, 0, 1, 1], [0, 0, 1]]
EVERYTHING = {
    "curves": CURVES,
    "bars": Figure("Bars", marks=[Bars(["a", "b"], [1, -2], "one"), Bars(["a", "b"], [3, 4.5], "two")]),
    "heat": Figure(
        "Heat", "x", "y", [Heat([[1, -1], [0.5, 0]], [0.1, 10.0], [0, 1], "w"), Points([1], [0.5])], x_log=True
    ),
    "polygons": Figure("Areas", "x", "y", [Polygons(*SQUARE_AND_TRIANGLE, [1.0, -2.0], "w"), Line([0, 2], [0, 1])]),
    "matrices": Figure("Matrices", marks=[Heat([[0, 1]]), Heat([[2], [3]], label="second")]),
    "named": Figure(
        "Named",
        "read",
        "written",
        [Heat([[0, 1, 2]] * 2, columns=["a", "quite long", "c"], rows=["x", "y" * 40], label="w") for _ in range(2)],
    ),
    "images": Figure("Images", marks=[Image([[0, 1], [0.5, math.nan]], f"picture {k}") for k in range(9)]),
    "both": Figure("Both", marks=[Image([[0, 1]]), Bars(["x"], [0.3])]),
    "broken": Figure("Broken", marks=[Line([1, 2, 3, 4], [1, math.nan, math.inf, 2]), Points([1], [-1])], y_log=True),
    "flat": Figure("Flat", marks=[Line([1, 2], [3, 3]), Band([1, 2], [3, 3], [3, 3])]),
    "many": Figure("Many", marks=[Line(range(5000), [i % 7 for i in range(5000)]), Points(range(999), range(999))]),
    "names": Figure("Names", marks=[Bars([f"a rather long name {k}" for k in range(12)], range(12))]),
    "bins": Figure("Bins", marks=[Bars([f"{k / 10}" for k in range(90)], range(90))]),
    "nothing": Figure("Nothing"),
    "empty": Figure("Empty", marks=[Line([], []), Points([], []), Band([], [], [])]),
}


@pytest.mark.parametrize("figure", EVERYTHING.values(), ids=EVERYTHING)
@pytest.mark.parametrize("width", [200, 640])
def test_every_figure_is_well_formed_and_inside_its_box(figure, width):
    root = ET.fromstring(svg(figure, width))
    assert [root.find(f"{SVG}{tag}") is not None for tag in ("title", "desc")] == [True, True]
    assert root.find(f"{SVG}title").text == figure.title
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"<desc.*?</desc>|<title>.*?</title>", "", svg(figure, width)))
    height = float(root.get("height"))
    for text in root.iter(f"{SVG}text"):
        assert -1 <= float(text.get("x")) <= width + 1
        assert 0 <= float(text.get("y")) <= height


@pytest.mark.parametrize("figure", EVERYTHING.values(), ids=EVERYTHING)
def test_the_same_figure_gives_the_same_bytes(figure):
    assert svg(figure) == svg(Figure.from_json(figure.to_json()))


def test_text_is_escaped_and_read_aloud():
    drawn = svg(CURVES)
    assert "Errors &lt; 5 % &amp; falling" in drawn
    assert "<note>" not in drawn
    description = ET.fromstring(drawn).find(f"{SVG}desc").text
    assert description.startswith("x: load s/n. y: error. Line “theory”: 3 points, from 0.0001 to 0.1.")


def test_both_colour_schemes_and_the_pages_own_colours_are_served():
    drawn = svg(CURVES)
    assert "prefers-color-scheme:dark" in drawn
    assert "var(--figure-ink,#1f2328)" in drawn
    assert "currentColor" in drawn
    assert "http" not in drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_marks_with_one_label_are_one_series_with_one_legend_entry():
    labels = [text.text for text in ET.fromstring(svg(CURVES)).iter(f"{SVG}text")]
    assert labels.count("theory") == 1
    assert labels.count("measured") == 1
    groups = re.findall(r'<g class="s(\d)">', svg(CURVES))
    assert groups == ["0", "1", "0", "0", "1"]  # two keys; then band, line and points


def test_series_differ_by_more_than_colour():
    lines = [Line([0, 1], [k, k + 1], f"series {k}") for k in range(35)]
    drawn = svg(Figure("Many", marks=lines))
    looks = re.findall(r'<g class="s(\d)">\n<path d="M[^"]*" fill="none"[^>]*?(stroke-dasharray="[^"]*")?/>', drawn)
    assert len(set(looks[35:])) == 35


def test_a_gap_breaks_the_line():
    drawn = svg(Figure("Gap", marks=[Line([1, 2, 3, 4, 5], [1, 2, math.nan, 4, 5])]))
    assert drawn.count('stroke-linejoin="round"') == 2


def test_long_curves_are_thinned_without_losing_their_extremes():
    y = [0.0] * 9_000
    y[1_234] = 9.0
    spike, flat = (svg(Figure("Spike", marks=[Line(range(9_000), v)])) for v in (y, [0.0] * 8_999 + [9.0]))
    assert len(spike) < 40_000
    top = min(float(v) for v in re.findall(r"L[\d.]+ ([\d.]+)", spike))
    assert top == min(float(v) for v in re.findall(r"L[\d.]+ ([\d.]+)", flat))


def test_pixels_are_crisp_cells_of_their_grey():
    drawn = svg(Figure("Pixels", marks=[Image([[0, 1], [1, 0]], "check")]))
    assert drawn.count('shape-rendering="crispEdges"') == 1
    assert re.findall(r'<path fill="(#\w+)" d="(?:M[^M"]*){2}"', drawn) == ["#000000", "#ffffff"]


@pytest.mark.parametrize("width", [199, 4001])
def test_an_impossible_width_is_refused(width):
    with pytest.raises(ValueError, match=f"width must lie between 200 and 4000, got {width}"):
        svg(CURVES, width)


@pytest.mark.parametrize("figure", EVERYTHING.values(), ids=EVERYTHING)
@pytest.mark.parametrize("width", [24, 72])
def test_text_stays_within_its_width_and_plain_text_is_ascii(figure, width):
    plain = str(draw(figure, width))
    assert plain.isascii()
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(draw(figure, width))
    for line in [*plain.splitlines(), *console.file.getvalue().splitlines()]:
        assert len(line) <= max(width, 60)


def test_a_terminal_with_unicode_gets_braille_and_one_without_does_not():
    rich, poor = (Console(file=io.TextIOWrapper(io.BytesIO(), encoding=e), width=80) for e in ("utf-8", "ascii"))
    for console in (rich, poor):
        console.print(draw(CURVES))
        console.file.seek(0)
    assert re.search("[\u2801-\u28ff]", rich.file.read())
    assert poor.file.read().isascii()


def test_an_impossible_terminal_width_is_refused():
    with pytest.raises(ValueError, match="width must lie between 24 and 400, got 10"):
        draw(CURVES, 10)


@pytest.mark.parametrize("figure", EVERYTHING.values(), ids=EVERYTHING)
def test_matplotlib_draws_every_figure(figure):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn = axes(figure)
    if isinstance(drawn, list):
        assert [ax.get_title() for ax in drawn] == [mark.label for mark in figure.marks if isinstance(mark, Image)]
    else:
        assert drawn.get_title() == figure.title
        assert axes(figure, drawn) is drawn
    pyplot.close("all")


def test_without_matplotlib_the_error_names_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"axes needs matplotlib: pip install 'lemmata\[lab\]'"):
        axes(CURVES)


def test_drawing_needs_neither_torch_nor_matplotlib():
    code = (
        "import sys, lemmata.lab.figures.svg, lemmata.lab.figures.terminal, lemmata.lab.figures.matplotlib\n"
        "assert not {'torch', 'matplotlib', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("scale", "labels"),
    [
        (Scale(0, 1), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (Scale(-3, 7), ["−2", "0", "2", "4", "6"]),
        (Scale(1e-9, 1, log=True), ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]),
        (Scale(1, 30, log=True), ["1", "2", "5", "10", "20"]),
        (Scale(10, 20, log=True), ["10", "12", "14", "16", "18", "20"]),
    ],
)
def test_ticks_are_round(scale, labels):
    assert [label for _, label in scale.ticks()] == labels


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[3.0], [1e-12, 1e12], [7.0, 7.0], [1.0, 1.0000001], [5e-324, 1e308]])
def test_every_usable_value_lies_on_its_scale(values, log):
    scale = Scale.around(values, log)
    places = [scale(value) for value in values if 1e-300 < value < 1e300]
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    assert all(-1e-9 <= scale(value) <= 1 + 1e-9 for value, _ in scale.ticks())


def test_numbers_are_short():
    assert [number(v) for v in (0, 1, 1234.5678, 0.00012, 1e6, -2.5e-9)] == [
        "0",
        "1",
        "1,235",
        "0.00012",
        "10⁶",
        "−2.5×10⁻⁹",
    ]


def test_areas_have_the_colour_and_the_number_of_their_value():
    drawn = svg(EVERYTHING["polygons"])
    assert drawn.count('<path fill="#') >= 2
    assert "<title>1</title>" in drawn
    assert "<title>−2</title>" in drawn
    assert "Polygons “w”: 2 areas." in drawn


def test_areas_become_cells_where_nothing_finer_can_be_drawn():
    heat = as_heat(Polygons(*SQUARE_AND_TRIANGLE, [1.0, -2.0]), across=8, down=4)
    assert heat.x[0] == 0.125
    assert heat.y == [0.125, 0.375, 0.625, 0.875]
    assert [row[:4] for row in heat.values] == [[1.0] * 4] * 4
    assert heat.values[0][4:] == [-2.0, -2.0, -2.0, -2.0]
    assert heat.values[3][4:] == [-2.0, None, None, None]


@pytest.mark.parametrize("ground", [Heat([[0, 1], [1, 0]]), Polygons([[0, 1, 0]], [[0, 0, 1]], [0.5])])
def test_a_curve_on_a_coloured_ground_has_a_light_seam(ground):
    curve = Line([0, 1], [0, 1], "path")
    seams = [svg(Figure("Seam", marks=marks)).count('stroke="#fff"') for marks in ([curve], [ground, curve])]
    assert seams == [0, 1]


def test_edges_of_a_graph_are_one_light_path():
    ends = [value for k in range(30) for value in (k, k + 1, None)]
    for count, drawn in ((60, 20), (63, 1)):  # runs of two points and a gap
        picture = svg(Figure("Edges", marks=[Line(ends[:count], ends[:count])]))
        assert picture.count('stroke-linejoin="round"') == drawn
        assert ('stroke-opacity="0.5"' in picture) is (drawn == 1)


def test_points_of_a_crowded_figure_are_all_small():
    few, many = Points([0, 1], [1, 0], "few"), Points(range(301), range(301), "many")
    assert svg(Figure("Points", marks=[few])).count("<title>few: ") == 2
    crowded = svg(Figure("Points", marks=[few, many]))
    assert crowded.count('stroke-width=".3"') == 2
    assert "<title>few: " not in crowded


def test_a_drawing_in_the_plane_keeps_its_shape_and_has_no_axes():
    square = Line([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], "edges")
    for width in (360, 640):
        drawn = svg(Figure("A square", marks=[square]), width)
        (path,) = re.findall(r'd="(M[^"]*L[^"]*)"', drawn)
        xs, ys = zip(*[map(float, pair.split()) for pair in path[1:].split("L")], strict=True)
        assert max(xs) - min(xs) == pytest.approx(max(ys) - min(ys), abs=0.2)
        assert re.findall(r">(-?[\d.]+)</text>", drawn) == []
    assert re.findall(r">([\d.]+)</text>", svg(Figure("A curve", "x", "y", [square])))
