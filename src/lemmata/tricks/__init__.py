"""Tricks of the trade: initialisation, weight decay, early stopping, dropout, normalisation, distillation."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
