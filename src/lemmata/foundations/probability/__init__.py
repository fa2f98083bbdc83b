"""Probability: Gaussians with full, diagonal and low-rank covariances, and the laws of finite distributions."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
