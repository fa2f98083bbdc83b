"""Gaussian mixtures: the points follow the parameters that are given with them."""

import pytest
import torch
from scipy import stats
from torch import distributions

from lemmata.data import gaussian_mixture


def density(extra):
    means, covariances = extra["means"], extra["covariances"]
    parts = distributions.MultivariateNormal(means, covariances)
    return distributions.MixtureSameFamily(distributions.Categorical(extra["weights"]), parts)


@pytest.mark.parametrize(("components", "features"), [(1, 1), (3, 2), (6, 5)])
def test_the_parameters_are_those_of_a_mixture(components, features):
    extra = gaussian_mixture(components=components, features=features).extra
    assert extra["weights"].sum() == pytest.approx(1, abs=1e-12)
    assert extra["weights"].min() >= 0.5 / components
    assert extra["means"].shape == (components, features)
    spectrum = torch.linalg.eigvalsh(extra["covariances"])
    assert 0.25 - 1e-9 <= spectrum.min() <= spectrum.max() <= 1 + 1e-9
    assert all(value.dtype is torch.float64 for value in extra.values())


def test_each_component_is_gaussian_after_whitening():
    data = gaussian_mixture(n=6000, components=3, features=2)
    for k in range(3):
        points = data.train.x[data.train.y == k].double() - data.extra["means"][k]
        factor = torch.linalg.cholesky(data.extra["covariances"][k])
        white = torch.linalg.solve_triangular(factor, points.T, upper=False)
        assert stats.kstest(white.flatten().numpy(), "norm").pvalue > 1e-9
        assert stats.chi2.cdf(len(points) * float(white.mean(1).square().sum()), df=2) < 1 - 1e-9


def test_components_are_as_frequent_as_their_weights():
    data = gaussian_mixture(n=5000, components=4)
    for count, weight in zip(data.train.y.bincount(minlength=4).tolist(), data.extra["weights"].tolist(), strict=True):
        assert stats.binomtest(count, 5000, weight).pvalue > 1e-9


def test_the_true_density_fits_the_test_part_better_than_one_gaussian():
    data = gaussian_mixture(components=4, separation=6.0)
    x = data.test.x.double()
    single = distributions.MultivariateNormal(x.mean(0), x.T.cov())
    assert density(data.extra).log_prob(x).mean() > single.log_prob(x).mean() + 0.3
    draws = density(data.extra).sample((2000,))
    entropies = [density(data.extra).log_prob(points).mean() for points in (x, draws)]
    assert entropies[0] == pytest.approx(float(entropies[1]), abs=0.3)  # both estimate the same mean
