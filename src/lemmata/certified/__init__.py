"""Exact and certified arithmetic: fractions, intervals and rounding bounds, on which proved answers rest."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
