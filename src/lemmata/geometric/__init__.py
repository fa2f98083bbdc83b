"""Geometric deep learning: sets, point clouds and graphs, and networks that respect their symmetries."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
