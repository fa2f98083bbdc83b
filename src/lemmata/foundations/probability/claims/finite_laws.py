"""Distributions with finitely many atoms, with which claims measure: every expectation is a finite sum."""

import torch


class FiniteDistribution:
    r"""A random vector that takes finitely many values, equally likely unless weights are given; leading axes a batch.

    $$ \mathbb E[g(X)] = \sum_a w_a\,g(x_a), \qquad
       \mathrm{Cov}(X) = \mathbb E\big[(X - \mathbb EX)(X - \mathbb EX)^\top\big] $$

    Shapes:
        points: (..., atoms, features), weights: (..., atoms)

    >>> coin = FiniteDistribution(torch.tensor([[0.0], [1.0]]), torch.tensor([0.25, 0.75]))
    >>> coin.mean, coin.variance
    (tensor([0.7500]), tensor([0.1875]))
    >>> coin.plus(coin).probability(lambda x: x[..., 0] == 1)
    tensor(0.3750)
    """

    def __init__(self, points, weights=None):
        self.points = points
        self.weights = points.new_full(points.shape[:-1], 1 / points.shape[-2]) if weights is None else weights
        if self.weights.shape[-1] != points.shape[-2]:
            raise ValueError(f"weights must fit {points.shape[-2]} atoms, got shape {tuple(self.weights.shape)}")
        # A law normalised in its own dtype is so up to a few rounding units: half of the digits leave room for many.
        gap = (self.weights.detach().sum(-1) - 1).abs().max()
        if bool((self.weights < 0).any()) or gap > torch.finfo(points.dtype).eps ** 0.5:
            raise ValueError("weights must be probabilities that sum to 1")

    def expectation(self, function):
        r"""$\mathbb E[g(X)]$ of a function from points (..., atoms, features) to (..., atoms) or (..., atoms, n)."""
        values = function(self.points)
        scalar = values.ndim < self.points.ndim
        return (self.weights * values).sum(-1) if scalar else (self.weights[..., None] * values).sum(-2)

    def probability(self, event):
        """The weight of the atoms where a function from points to booleans (..., atoms) or (..., atoms, n) is true."""
        return self.expectation(lambda points: event(points).to(points.dtype))

    @property
    def mean(self):
        r"""$\mathbb E[X]$: (..., features)."""
        return self.expectation(lambda points: points)

    @property
    def second_moment(self):
        r"""$\mathbb E[XX^\top]$: (..., features, features)."""
        return self.points.mT @ (self.weights[..., None] * self.points)

    @property
    def covariance(self):
        r"""$\mathbb E[(X-\mathbb EX)(X-\mathbb EX)^\top]$: (..., features, features), by centring first."""
        return FiniteDistribution(self.points - self.mean[..., None, :], self.weights).second_moment

    @property
    def variance(self):
        """The diagonal of the covariance: (..., features)."""
        return self.covariance.diagonal(dim1=-2, dim2=-1)

    def mgf(self, t):
        r"""The moment generating function $\mathbb E[e^{t^\top X}]$ at points (..., features); batches broadcast."""
        return (self.weights * (self.points @ t[..., None])[..., 0].exp()).sum(-1)

    def affine(self, matrix, offset=0.0):
        """The distribution of A X + b."""
        return FiniteDistribution(self.points @ matrix.mT + offset, self.weights)

    def plus(self, other):
        """The distribution of X + Y for independent X and Y: every pair of atoms."""
        points = self.points[..., :, None, :] + other.points[..., None, :, :]
        weights = self.weights[..., :, None] * other.weights[..., None, :]
        return FiniteDistribution(points.flatten(-3, -2), weights.flatten(-2))

    def sample(self, count, generator=None):
        """Independent draws (count, features) of a single distribution."""
        return self.points[torch.multinomial(self.weights, count, replacement=True, generator=generator)]
