"""Measures that several chapters share: proved bounds on eigenvalues and norms, and how good a translation is."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
