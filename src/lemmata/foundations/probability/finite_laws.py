r"""Distributions with finitely many atoms: expectations are finite sums, so every rule about them can be seen."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.probability import parameters
from lemmata.marks import system

__all__ = ["FiniteDistribution", "convolve_masses"]


@system("finite_distribution", title="Distribution with finitely many atoms", kind="sampler")
class FiniteDistribution:
    r"""A random vector that takes finitely many values; with equal weights, the empirical distribution of a sample.

    $$ \mathbb E[g(X)] = \sum_a w_a\,g(x_a), \qquad
       \mathrm{Cov}(X) = \mathbb E\big[(X - \mathbb EX)(X - \mathbb EX)^\top\big] $$

    A scalar variable has one feature. Leading axes are a batch; gradients pass through points and weights.

    Shapes:
        points: (..., atoms, features), weights: (..., atoms), equal if left out

    Claims: probability.covariance, probability.variance_identity, probability.uncorrelated, probability.gram_psd,
        probability.cauchy_schwarz, probability.variance_affine, probability.variance_sum, mgf.definition,
        mgf.linear_combination, probability.chebyshev, probability.markov

    >>> coin = FiniteDistribution(torch.tensor([[0.0], [1.0]]), torch.tensor([0.25, 0.75]))
    >>> coin.mean, coin.variance
    (tensor([0.7500]), tensor([0.1875]))
    >>> coin.plus(coin).probability(lambda x: x[..., 0] == 1)
    tensor(0.3750)
    """

    def __init__(
        self, points: Float[Tensor, "*batch atoms features"], weights: Float[Tensor, "*batch atoms"] | None = None
    ) -> None:
        validate.floating("points", points)
        if points.ndim < 2:
            raise ValueError(f"points must be a (..., atoms, features) tensor, got shape {tuple(points.shape)}")
        atoms = points.shape[-2]
        if weights is None:
            weights = points.new_full((atoms,), 1 / atoms)
        weights = parameters.masses("weights", weights)
        if weights.shape[-1] != atoms:
            raise ValueError(f"weights must hold one number for each of {atoms} atoms, got {tuple(weights.shape)}")
        self.points, self.weights = points, weights

    @classmethod
    def on_grid(cls, table: Float[Tensor, "..."], *values: Float[Tensor, "_"]) -> "FiniteDistribution":
        """Of numbers whose joint probabilities stand in a table: one axis of the table for each of them."""
        grid = torch.cartesian_prod(*(validate.vector("values", each) for each in values)).reshape(-1, len(values))
        if table.shape != tuple(len(each) for each in values):
            raise ValueError(f"table must have one axis for each of the values, got shape {tuple(table.shape)}")
        return cls(grid, table.flatten())

    def expectation(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        r"""$\mathbb E[g(X)]$ of a function from points (..., atoms, features) to (..., atoms) or (..., atoms, n)."""
        values = function(self.points)
        scalar = values.ndim < self.points.ndim
        return (self.weights * values).sum(-1) if scalar else (self.weights[..., None] * values).sum(-2)

    def probability(self, event: Callable[[Tensor], Tensor]) -> Tensor:
        """The weight of the atoms where a function from points to booleans (..., atoms) or (..., atoms, n) is true."""
        return self.expectation(lambda points: event(points).to(points.dtype))

    @property
    def mean(self) -> Tensor:
        r"""$\mathbb E[X]$: (..., features)."""
        return self.expectation(lambda points: points)

    @property
    def second_moment(self) -> Tensor:
        r"""$\mathbb E[XX^\top]$: (..., features, features)."""
        return self.points.mT @ (self.weights[..., None] * self.points)

    @property
    def covariance(self) -> Tensor:
        r"""$\mathbb E[(X-\mathbb EX)(X-\mathbb EX)^\top]$: (..., features, features), by centring first."""
        centred = self.points - self.mean[..., None, :]
        return FiniteDistribution(centred, self.weights).second_moment

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance: (..., features)."""
        return self.covariance.diagonal(dim1=-2, dim2=-1)

    def mgf(self, t: Float[Tensor, "... features"]) -> Tensor:
        r"""The moment generating function $\mathbb E[e^{t^\top X}]$ at points (..., features); batches broadcast."""
        validate.floating("t", t)
        if t.ndim == 0 or t.shape[-1] != self.points.shape[-1]:
            raise ValueError(f"t must be a (..., {self.points.shape[-1]}) tensor, got shape {tuple(t.shape)}")
        return (self.weights * (self.points @ t[..., None])[..., 0].exp()).sum(-1)

    def affine(
        self, matrix: Float[Tensor, "*batch out features"], offset: parameters.Real = 0.0
    ) -> "FiniteDistribution":
        """The distribution of A X + b."""
        validate.floating("matrix", matrix)
        if matrix.ndim < 2 or matrix.shape[-1] != self.points.shape[-1]:
            features = self.points.shape[-1]
            raise ValueError(f"matrix must be a (..., out, {features}) tensor, got shape {tuple(matrix.shape)}")
        return FiniteDistribution(self.points @ matrix.mT + parameters.real("offset", offset, matrix), self.weights)

    def plus(self, other: "FiniteDistribution") -> "FiniteDistribution":
        """The distribution of X + Y for independent X and Y: every pair of atoms."""
        if other.points.shape[-1] != self.points.shape[-1]:
            raise ValueError(f"other must have {self.points.shape[-1]} features, got {other.points.shape[-1]}")
        points = self.points[..., :, None, :] + other.points[..., None, :, :]
        weights = self.weights[..., :, None] * other.weights[..., None, :]
        return FiniteDistribution(points.flatten(-3, -2), weights.flatten(-2))

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count features"]:
        """Independent draws of a single distribution."""
        validate.count("count", count)
        if self.points.ndim > 2 or self.weights.ndim > 1:
            raise ValueError(
                f"sample needs a single distribution, got a batch of shape {tuple(self.points.shape[:-2])}"
            )
        chosen = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        return self.points[chosen]

    def __repr__(self) -> str:
        return f"FiniteDistribution(atoms={self.points.shape[-2]}, features={self.points.shape[-1]})"


@system("convolve_masses", title="Sum of independent whole numbers", kind="function")
def convolve_masses(
    first: Float[Tensor, "*batch m"], second: Float[Tensor, "*batch n"]
) -> Float[Tensor, "*batch total"]:
    r"""The distribution of a sum of two independent whole numbers: the convolution of their probabilities.

    $$ P(X+Y=z) = \sum_t P(X=t)\,P(Y=z-t) $$

    Entry k is the probability of the least value plus k; the least value of the sum is the sum of the least values.

    Shapes:
        first: (..., m), second: (..., n)    returns: (..., m + n - 1)

    Claims: probability.sum_convolution

    >>> tetrahedron = torch.full((4,), 1 / 4)
    >>> convolve_masses(tetrahedron, tetrahedron) * 16  # of the sums 2 to 8
    tensor([1., 2., 3., 4., 3., 2., 1.])
    """
    for name, value in (("first", first), ("second", second)):
        if bool((validate.floating(name, value) < 0).any()) or value.ndim == 0:
            raise ValueError(f"{name} must hold probabilities along its last axis, got {value.detach()}")
    size = first.shape[-1] + second.shape[-1] - 1
    # Row t of the table is `second` moved by t: padded rows laid end to end are off by one place each.
    padded = torch.nn.functional.pad(first[..., :, None] * second[..., None, :], (0, first.shape[-1]))
    return padded.flatten(-2)[..., : first.shape[-1] * size].unflatten(-1, (first.shape[-1], size)).sum(-2)
