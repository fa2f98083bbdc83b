"""Probability: Gaussians with full, diagonal and low-rank covariances, and the divergence between them."""

from lemmata.lazy import lazy

__getattr__, __dir__ = lazy(__name__, __file__)
