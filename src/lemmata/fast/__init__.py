"""Inner loops worth a kernel: a readable reference first, quicker paths beside it that agree with it."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
