r"""Fréchet distance of samples from data, never without what the data's own halves have between them."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.marks import system
from lemmata.measure.sample_distances import sample_pair

__all__ = ["FrechetDistance", "frechet_distance"]


class FrechetDistance(NamedTuple):
    """The distance of samples from data, and that of as many other data from the same: what a perfect model has."""

    distance: float
    between_halves: float
    count: int  # of points on each side


@system("frechet_distance", title="Fréchet distance", kind="function")
def frechet_distance(
    samples: Float[Tensor, "samples features"],
    data: Float[Tensor, "points features"],
    *,
    generator: torch.Generator | None = None,
) -> FrechetDistance:
    r"""The squared 2-Wasserstein distance of the Gaussians with the moments of two samples, beside that of real halves.

    $$ \|\mu_1-\mu_2\|^2 + \mathrm{tr}\big(\Sigma_1 + \Sigma_2 - 2(\Sigma_1^{1/2}\Sigma_2\Sigma_1^{1/2})^{1/2}\big) $$

    The estimate is too large, the more so the fewer points there are, so that two of them compare only at equal counts
    and in the same features. Data are therefore halved at random: samples are held against one half, and so is the
    other half, with as many points. A model whose `distance` is near `between_halves` differs by nothing that means
    and covariances show. All is computed with real symmetric matrices, in float64.

    Shapes:
        samples: (samples, features), data: (points, features), at least 4

    Source: M. Heusel et al., GANs trained by a two time-scale update rule (2017).
    Differs: pytorch-fid and others take a root of the product of two covariances, which can be complex.

    >>> data = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0))
    >>> found = frechet_distance(data[:1000] + 2.0, data[1000:], generator=torch.Generator().manual_seed(1))
    >>> found.distance > 100 * found.between_halves, found.count
    (True, 500)
    """
    samples, data = sample_pair(samples, data, least=2)
    count = min(len(samples), len(data) // 2)
    if count < 2:
        raise ValueError(f"data must have at least 4 points, got {len(data)}: halves need a covariance")
    first, second = _shuffled_rows(data, generator)[: 2 * count].split(count)
    drawn = _shuffled_rows(samples, generator)[:count]
    return FrechetDistance(_between_moments(drawn, first), _between_moments(second, first), count)


def _shuffled_rows(points: Tensor, generator: torch.Generator | None) -> Tensor:
    place = points.device if generator is None else generator.device
    return points[torch.randperm(len(points), generator=generator, device=place).to(points.device)]


def _between_moments(x: Tensor, y: Tensor) -> float:
    (mean_x, root_x), (mean_y, root_y) = _mean_and_root(x), _mean_and_root(y)
    # The trace of the root of RᵀΣR is the sum of the singular values of RᵀS, where Σ = SSᵀ.
    shared = torch.linalg.svdvals(root_x.mT @ root_y).sum()
    spread = root_x.square().sum() + root_y.square().sum() - 2 * shared
    return float((mean_x - mean_y).square().sum() + spread.clamp(min=0))


def _mean_and_root(x: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and a factor of the covariance, (features, rank)."""
    x = x.detach().double()
    mean = x.mean(0)
    _, values, axes = torch.linalg.svd(x - mean, full_matrices=False)
    return mean, axes.mT * (values / (len(x) - 1) ** 0.5)
