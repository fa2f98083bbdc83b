"""Linear algebra: exact ranks, general position, and matrices that are a diagonal plus a product of low rank."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
