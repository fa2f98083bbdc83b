"""Bayesian learning: samplers that leave their target alone, and networks that know what they do not know."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
