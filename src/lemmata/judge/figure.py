"""Figures under the judge's roof, so that a claims file needs one import."""

from lemmata.figure import Band, Bars, Figure, Heat, Image, Line, Points, Polygons

__all__ = ["Band", "Bars", "Figure", "Heat", "Image", "Line", "Points", "Polygons"]
