"""Measures that several chapters share: how good a translation is, and what a dictionary alone would reach."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
