"""Generative models: autoencoders, flows, autoregression, adversaries, diffusion."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
