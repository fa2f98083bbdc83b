"""Continual learning: new tasks without losing the old ones."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
