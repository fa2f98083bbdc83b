"""Robustness: attacks on any classifier, verified, and training that withstands them."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
