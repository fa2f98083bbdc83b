"""Kernels: tangent kernels of any network, networks of infinite width, Gaussian processes that are exact."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
