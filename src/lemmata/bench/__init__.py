"""Ours and the peers side by side, in one run: time, memory, ratio to the peer and to the limit. `lemmata bench`."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
