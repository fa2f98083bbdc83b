"""Analysis: convexity, smoothness and Lipschitz constants of functions, certified where that is possible."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
