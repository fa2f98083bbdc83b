r"""Gaussians whose covariance is a diagonal, or a diagonal plus a matrix of low rank: linear cost in the features."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.foundations.probability.gaussian_distribution import GaussianDistribution
from lemmata.foundations.probability.parameters import above_zero, checked_mean
from lemmata.marks import system

__all__ = ["DiagonalGaussian", "LowRankGaussian"]


@system("diagonal_gaussian", title="Gaussian with a diagonal covariance", kind="sampler")
class DiagonalGaussian(GaussianDistribution):
    r"""A Gaussian whose features are independent.

    $$ x \sim \mathcal N(\mu, \mathrm{diag}(v)) $$

    Shapes:
        mean: (..., features), variance: (..., features)

    Claims: gaussian.density, gaussian.entropy, gaussian.kl, gaussian.kl_diagonal

    >>> DiagonalGaussian(torch.zeros(3), torch.ones(3)).entropy()
    tensor(4.2568)
    """

    def __init__(self, mean: Float[Tensor, "*_ features"], variance: Float[Tensor, "*_ features"]) -> None:
        self.mean = checked_mean(mean, variance=(variance, "features"))
        self.variance = above_zero("variance", variance)

    @property
    def covariance(self) -> Tensor:
        return self.variance.diag_embed()

    @property
    def logdet(self) -> Tensor:
        return self.variance.log().sum(-1)

    def parts(self) -> tuple[None, Tensor]:
        return None, self.variance

    def squared_lengths(self, columns: Tensor) -> Tensor:
        return (columns.square() / self.variance[..., None]).sum(-2)

    def inverse_diagonal(self) -> Tensor:
        return 1 / self.variance

    def marginal(self, indices: Sequence[int]) -> "DiagonalGaussian":
        """The distribution of some of the features."""
        kept = self._kept_indices(indices)
        return DiagonalGaussian(self.mean[..., kept], self.variance[..., kept])

    def full(self) -> Gaussian:
        """The same distribution with a dense covariance."""
        return Gaussian(self.mean, self.covariance)


@system("low_rank_gaussian", title="Gaussian with a low-rank plus diagonal covariance", kind="sampler")
class LowRankGaussian(GaussianDistribution):
    r"""A Gaussian of few directions and independent noise, solved with by Woodbury's identity.

    $$ x \sim \mathcal N(\mu, FF^\top + \mathrm{diag}(v)), \qquad
       \Sigma^{-1} = V^{-1} - V^{-1}F\,(I + F^\top V^{-1}F)^{-1}F^\top V^{-1}, \quad V = \mathrm{diag}(v) $$

    Distances are computed as $x^\top\Sigma^{-1}x = (x-Fh)^\top V^{-1}(x-Fh) + h^\top h$ with
    $h = (I + F^\top V^{-1}F)^{-1}F^\top V^{-1}x$, which keeps its digits where the noise is small.

    Shapes:
        mean: (..., features), factor: (..., features, rank), variance: (..., features)

    Claims: gaussian.density, gaussian.entropy, gaussian.kl
    Differs: float32 and float64 only, as the Cholesky factorisation of the small matrix.

    >>> law = LowRankGaussian(torch.zeros(3), torch.ones(3, 1), torch.ones(3))
    >>> law.logdet, law.covariance
    (tensor(1.3863), tensor([[2., 1., 1.],
            [1., 2., 1.],
            [1., 1., 2.]]))
    """

    def __init__(
        self,
        mean: Float[Tensor, "*_ features"],
        factor: Float[Tensor, "*_ features rank"],
        variance: Float[Tensor, "*_ features"],
    ) -> None:
        self.mean = checked_mean(mean, factor=(factor, "features rank"), variance=(variance, "features"))
        self.factor, self.variance = factor, above_zero("variance", variance)
        # One factorisation of the small matrix I + F' V^-1 F serves everything.
        identity = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        self._capacitance = torch.linalg.cholesky(identity + factor.mT @ (factor / variance[..., None]))

    @property
    def covariance(self) -> Tensor:
        return self.factor @ self.factor.mT + self.variance.diag_embed()

    @property
    def logdet(self) -> Tensor:
        return 2 * self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.variance.log().sum(-1)

    def parts(self) -> tuple[Tensor, Tensor]:
        return self.factor, self.variance

    def squared_lengths(self, columns: Tensor) -> Tensor:
        # As two sums of squares, what the likeliest directions h leave over and their own length: the difference that
        # Woodbury's identity gives would cancel to nothing where the noise is small.
        variance = self.variance[..., None]
        hidden = torch.cholesky_solve(self.factor.mT @ (columns / variance), self._capacitance)  # (..., rank, columns)
        left = columns - self.factor @ hidden
        return (left.square() / variance).sum(-2) + hidden.square().sum(-2)

    def inverse_diagonal(self) -> Tensor:
        scaled = (self.factor / self.variance[..., None]).mT
        return 1 / self.variance - torch.linalg.solve_triangular(self._capacitance, scaled, upper=False).square().sum(
            -2
        )

    def marginal(self, indices: Sequence[int]) -> "LowRankGaussian":
        """The distribution of some of the features."""
        kept = self._kept_indices(indices)
        return LowRankGaussian(self.mean[..., kept], self.factor[..., kept, :], self.variance[..., kept])

    def full(self) -> Gaussian:
        """The same distribution with a dense covariance."""
        return Gaussian(self.mean, self.covariance)
