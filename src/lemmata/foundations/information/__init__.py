"""Information: entropies and divergences of discrete distributions, in nats."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
