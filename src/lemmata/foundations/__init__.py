"""Foundations: linear algebra, calculus, convexity, probability and information, as tools with their laws checked."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
