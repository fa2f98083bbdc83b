"""Tools for testing: claims as pytest items, conformance suites for other people's objects."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
