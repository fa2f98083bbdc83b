"""Gradient-based learning: backpropagation written out, the optimisers, and how fast each of them gets where."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
