"""Convolution: the operator and its theorems, the classic networks built of it, and embeddings."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
