"""The audit: what theory says about a network of your own. `audit(model, data)` asks every probe and tells."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
