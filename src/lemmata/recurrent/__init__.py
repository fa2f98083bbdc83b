"""Recurrent networks: state carried through time, from Elman's network to linear recurrences and attention."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
