"""Separable points: the margin is attained, no other line does better, and the points fill their ball."""

import numpy as np
import pytest
import torch
from scipy import stats

from lemmata.data import separable

CASES = [(0.1, 1.0, 2), (0.5, 2.0, 3), (3.0, 3.0, 4), (0.2, 1.0, 1), (0.3, 1.0, 50), (0.9, 1.0, 1000)]


@pytest.mark.parametrize(("margin", "radius", "features"), CASES)
def test_margin_and_radius_are_attained(margin, radius, features):
    data = separable(n=200, test=50, margin=margin, radius=radius, features=features)
    w = data.extra["weight"]
    assert w.norm() == pytest.approx(1, abs=1e-12)
    for part in data.parts.values():
        x = part.x.double()
        assert ((2 * part.y - 1) * (x @ w)).min() == pytest.approx(margin, abs=2e-7 * radius)
        assert x.norm(dim=1).max() == pytest.approx(radius, abs=2e-7 * radius)
        assert part.x.isfinite().all()


def test_no_line_has_a_larger_margin_with_or_without_a_bias():
    data = separable(n=300, margin=0.2, features=3)
    x, sign = data.train.x.double(), 2 * data.train.y - 1
    others = torch.randn(2000, 3, dtype=torch.float64)
    others = torch.cat([others, data.extra["weight"] + 0.02 * others[:200]])
    others /= others.norm(dim=1, keepdim=True)
    scores = x @ others.T
    above, below = scores[sign > 0].amin(0), scores[sign < 0].amax(0)
    assert torch.minimum(above, -below).max() <= 0.2 + 1e-7
    assert ((above - below) / 2).max() <= 0.2 + 1e-7  # with the best bias


def test_the_points_nearest_to_the_line_are_the_planted_ones():
    data = separable(n=100, margin=0.25, features=4)
    w = data.extra["weight"]
    gaps = [torch.linalg.vector_norm(data.train.x.double() - end, dim=1).min() for end in (0.25 * w, -0.25 * w)]
    assert max(gaps) < 1e-6


def test_points_are_uniform_in_the_ball_outside_the_slab():
    data = separable(n=3000, margin=0.3, features=3)
    x, w = data.train.x.double(), data.extra["weight"]
    along = (x @ w).abs().numpy()
    whole = np.random.default_rng(1).standard_normal((60_000, 3))
    whole *= np.random.default_rng(2).uniform(size=(60_000, 1)) ** (1 / 3) / np.linalg.norm(whole, axis=1)[:, None]
    kept = np.abs(whole @ w.numpy()) >= 0.3  # what rejection would have drawn
    assert stats.ks_2samp(along, np.abs(whole[kept] @ w.numpy())).pvalue > 1e-9
    assert stats.ks_2samp(x.norm(dim=1).numpy(), np.linalg.norm(whole[kept], axis=1)).pvalue > 1e-9
