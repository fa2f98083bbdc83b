"""Feedforward networks: the multilayer perceptron and what is known of it."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
