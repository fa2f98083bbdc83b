"""Figures as small as a stamp: gaps stay gaps, areas are drawn as they are, a circle stays one."""

import math
import re

from lemmata.figure import Figure, Line, Points, Polygons
from lemmata.lab.site.thumbnails import GREY, thumbnail


def pens(line):
    """Where the pen is set down (M), and where it draws (L)."""
    (path,) = re.findall(r'd="([^"]*)"', thumbnail(Figure("", marks=[line])))
    return "".join(re.findall("[ML]", path))


def test_a_gap_in_the_numbers_is_a_gap_in_the_line():
    assert pens(Line([0, 1, math.nan, 2, 3, None], [0, 1, 0, 1, 0, 1])) == "MLML"
    assert pens(Line([math.nan, 0, 1], [0, 0, 1])) == "ML"


def test_areas_are_drawn_as_they_are_and_lines_between_them_are_grey():
    areas = Polygons([[0, 1, 1, 0], [2, 3, 3]], [[0, 0, 1, 1], [0, 0, 1]], [0.0, 1.0])
    drawn = thumbnail(Figure("", marks=[areas, Line([1, 2], [0.5, 0.5])]))
    square, triangle, line = re.findall(r'd="([^"]*)"', drawn)
    assert (square.count("L"), triangle.count("L"), line.count("L")) == (3, 2, 1)
    corners = [[float(c) for c in pair.split()] for pair in square.strip("Mz").split("L")]
    assert corners[1][0] - corners[0][0] == corners[0][1] - corners[2][1]  # as wide as high
    assert drawn.count(GREY) == 1
    assert len(set(re.findall(r'fill="(#\w+)"', drawn))) == 2


def test_an_area_without_a_value_is_left_out():
    areas = Polygons([[0, 1, 1], [2, 3, 3]], [[0, 0, 1], [0, 0, 1]], [math.nan, 1.0])
    assert thumbnail(Figure("", marks=[areas])).count("<path") == 1


def test_points_are_dots_in_the_colour_of_their_series():
    drawn = thumbnail(Figure("", marks=[Points([0, 1, 2], [0, 1, None]), Points([0, 2], [2, 1])]))
    assert drawn.count("<circle") == 4
    assert len(set(re.findall(r'<g fill="(#\w+)"', drawn))) == 2
