"""Computer vision: from photons to restored images, by filters that are exact."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
