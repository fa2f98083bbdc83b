"""Generalisation: bounds that hold on new data, and say when they say nothing."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
