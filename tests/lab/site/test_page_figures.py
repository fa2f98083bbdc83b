"""A figure on a page: its description, its table, its files."""

from lemmata.figure import Band, Bars, Figure, Heat, Image, Line
from lemmata.lab.figures.svg import STYLE
from lemmata.lab.site import figures, pages

ALL_MARKS = Figure(
    "<All> marks",
    "x",
    "y",
    [
        Line([0, 1], [0, None], "line"),
        Band([0], [0], [1], "band"),
        Bars(["a,b"], [3], "bars"),
        Heat([[1, 2]], [0.5, 1.5], [7]),
        Image([[0.0, 1.0]], "image"),
    ],
)


def test_a_figure_has_title_description_table_csv_and_svg():
    for at in ("", "/claim/x/figure"):
        text = str(figures.draw(ALL_MARKS, at))
        for part in ("<title", "<desc", "<table", 'download="all--marks.csv"', 'download="all--marks.svg"'):
            assert part in text
        assert "<All>" not in text
        assert "<style" not in text
    assert 'href="/claim/x/figure.csv"' in text


def test_the_csv_of_a_figure_has_every_value():
    lines = figures.figure_csv(ALL_MARKS).splitlines()
    assert lines[0] == "series,x,y,low,high,name,value"
    assert len(lines) == 1 + 2 + 1 + 1 + 2 + 2
    assert 'bars,,,,,"a,b",3' in lines
    assert "heat,1.5,7,,,,2" in lines


def test_a_long_table_is_cut_and_says_so():
    text = figures.draw(Figure("", marks=[Line(range(5000), range(5000))]))
    assert text.count("<tr>") == 1 + figures.SHOWN
    assert "5,000 rows" in text


def test_the_style_sheet_of_figures_is_that_of_the_drawing():
    assert (pages.HERE / "static" / "figures.css").read_text(encoding="utf-8").strip() == STYLE
