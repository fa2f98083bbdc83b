r"""What all Gaussian distributions have in common, however their covariance is stored: density, entropy, sampling."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = ["GaussianDistribution"]


class GaussianDistribution(ABC):
    r"""A multivariate normal distribution, or a batch of them, with a covariance $\Sigma = FF^\top + \mathrm{diag}(v)$.

    $$ \mathcal N(x;\mu,\Sigma) = \frac1{\sqrt{(2\pi)^d|\Sigma|}}
       \exp\Big(-\tfrac12 (x-\mu)^\top\Sigma^{-1}(x-\mu)\Big) $$

    Subclasses store $\Sigma$ in full, as a diagonal, or as low rank plus diagonal, and say how to solve with it.

    Shapes:
        mean: (..., features)

    Claims: gaussian.density, gaussian.entropy, gaussian.sum
    """

    mean: Tensor

    @property
    @abstractmethod
    def covariance(self) -> Tensor:
        """The covariance as a dense matrix: (..., features, features)."""

    @property
    @abstractmethod
    def logdet(self) -> Tensor:
        """The logarithm of the determinant of the covariance: (...)."""

    @abstractmethod
    def parts(self) -> tuple[Tensor | None, Tensor | None]:
        r"""$F$ (..., features, rank) and $v$ (..., features), either of which may be missing."""

    @abstractmethod
    def squared_lengths(self, columns: Float[Tensor, "*batch features columns"]) -> Float[Tensor, "*batch columns"]:
        r"""$x^\top\Sigma^{-1}x$ of each column."""

    @abstractmethod
    def inverse_diagonal(self) -> Float[Tensor, "*batch features"]:
        r"""The diagonal of $\Sigma^{-1}$."""

    @property
    def dimension(self) -> int:
        """How many features the variable has."""
        return self.mean.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch of distributions: empty for a single one."""
        factor, diagonal = self.parts()
        shapes = [() if factor is None else factor.shape[:-2], () if diagonal is None else diagonal.shape[:-1]]
        # numpy's, because torch's imports the whole of its symbolic machinery
        return torch.Size(numpy.broadcast_shapes(self.mean.shape[:-1], *shapes))

    def mahalanobis(self, x: Float[Tensor, "... features"]) -> Tensor:
        r"""The squared distance $(x-\mu)^\top\Sigma^{-1}(x-\mu)$ of points (..., features); batches broadcast."""
        away = self._checked_points("x", x) - self.mean
        if self.batch_shape:
            return self.squared_lengths(away[..., None])[..., 0]
        return self.squared_lengths(away.reshape(-1, self.dimension).mT).reshape(away.shape[:-1])

    def nll(self, x: Float[Tensor, "... features"]) -> Tensor:
        r"""$-\log\mathcal N(x;\mu,\Sigma)$ in nats: what an observation tells."""
        return (self.dimension * math.log(2 * math.pi) + self.logdet + self.mahalanobis(x)) / 2

    def log_density(self, x: Float[Tensor, "... features"]) -> Tensor:
        r"""$\log\mathcal N(x;\mu,\Sigma)$."""
        return -self.nll(x)

    def density(self, x: Float[Tensor, "... features"]) -> Tensor:
        r"""$\mathcal N(x;\mu,\Sigma)$."""
        return self.log_density(x).exp()

    def entropy(self) -> Tensor:
        r"""The differential entropy $\frac d2\log(2\pi e) + \frac12\log|\Sigma|$ in nats, which may be negative."""
        return (self.dimension * math.log(2 * math.pi * math.e) + self.logdet) / 2

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count ..."]:
        """Independent draws (count, ..., features), with gradients in the parameters."""
        shape = (validate.count("count", count), *self.batch_shape)
        factor, diagonal = self.parts()
        drawn = self.mean.expand(*shape, self.dimension)
        if factor is not None:
            noise = self._normal_sample((*shape, factor.shape[-1]), generator)
            noise = torch.einsum("...ij, ...j -> ...i", factor, noise)
            drawn = drawn + noise
        if diagonal is not None:
            noise = diagonal.sqrt() * self._normal_sample((*shape, self.dimension), generator)
            drawn = drawn + noise
        return drawn

    def _checked_points(self, name: str, x: Tensor) -> Tensor:
        validate.floating(name, x)
        if x.ndim == 0 or x.shape[-1] != self.dimension:
            raise ValueError(f"{name} must be a (..., {self.dimension}) tensor, got shape {tuple(x.shape)}")
        if x.dtype != self.mean.dtype:
            raise TypeError(f"{name} must have the dtype of mean, got {x.dtype}: use {name}.to({self.mean.dtype})")
        return x

    def _kept_indices(self, indices: Sequence[int]) -> list[int]:
        kept = [int(index) for index in indices]
        if not kept or len(set(kept)) != len(kept) or not all(0 <= index < self.dimension for index in kept):
            raise ValueError(f"indices must be different numbers from 0 to {self.dimension - 1}, got {kept}")
        return kept

    def _normal_sample(self, shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)

    def __repr__(self) -> str:
        batch = f", batch={tuple(self.batch_shape)}" if self.batch_shape else ""
        return f"{type(self).__name__}(features={self.dimension}{batch})"
