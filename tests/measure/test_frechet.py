"""Fréchet distance: its closed form, few points in many dimensions, and what is refused."""

import pytest
import torch
from scipy import linalg

from lemmata.measure import frechet_distance
from lemmata.measure.frechet import _between_moments


def samples(n, features, seed=0):
    return torch.randn(n, features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_value_is_that_of_the_matrix_square_root():
    x, y = samples(60, 4), 1 + samples(50, 4, 1) @ samples(4, 4, 2)
    roots = linalg.sqrtm((x.mT.cov() @ y.mT.cov()).numpy()).real
    spread = x.mT.cov().trace() + y.mT.cov().trace() - 2 * roots.trace()
    expected = (x.mean(0) - y.mean(0)).square().sum() + spread
    assert _between_moments(x, y) == pytest.approx(expected.item(), rel=1e-8)
    assert _between_moments(x, x) == pytest.approx(0, abs=1e-9)
    assert _between_moments(x + 2, x) == pytest.approx(16)


def test_fewer_points_than_features_give_a_real_number():
    x, y = samples(5, 30), samples(7, 30, 1)
    assert 0 < _between_moments(x, y) < 100


def test_it_comes_with_what_real_halves_have_between_them():
    data = samples(4000, 3)
    same = frechet_distance(samples(3000, 3, 1).float(), data.float(), generator=torch.Generator().manual_seed(0))
    wide = frechet_distance(2 * samples(1000, 3, 1), data, generator=torch.Generator().manual_seed(0))
    assert same.count == 2000
    assert wide.count == 1000
    assert max(same[:2]) < 0.05
    assert wide.distance == pytest.approx(3, rel=0.2)
    again = frechet_distance(2 * samples(1000, 3, 1), data, generator=torch.Generator().manual_seed(0))
    assert again == wide


@pytest.mark.usefixtures("unchecked")
def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="data must have at least 4 points, got 3"):
        frechet_distance(samples(9, 2), samples(3, 2))
    with pytest.raises(ValueError, match="x must have at least 2 points, got 1"):
        frechet_distance(samples(1, 2), samples(9, 2))
