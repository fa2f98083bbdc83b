"""Activations: one table of functions with derivatives, inverses, ranges and Lipschitz constants."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
