"""Connectionism: the McCulloch-Pitts neuron, the perceptron, Cover's count, and associative memories."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
