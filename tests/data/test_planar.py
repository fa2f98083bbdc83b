"""Moons, rings, spirals and XOR: without noise every point is exactly where the formula says."""

import math

import pytest
import torch
from scipy import stats

from lemmata.data import moons, rings, spirals, xor

ROUNDING = 1e-6


def test_moons_without_noise_lie_on_two_half_circles():
    x, y = moons(noise=0.0).train
    centres = torch.tensor([[0.0, 0.0], [1.0, 0.5]])
    spoke = x - centres[y]
    assert (spoke.norm(dim=1) - 1).abs().max() < ROUNDING
    assert (spoke[:, 1] * (1 - 2 * y) >= -ROUNDING).all()  # the upper half of one, the lower half of the other


def test_moons_are_uniform_in_their_angle():
    x, y = moons(n=4000, noise=0.0).train
    spoke = (x - torch.tensor([[0.0, 0.0], [1.0, 0.5]])[y]) * (1 - 2 * y)[:, None]
    angle = torch.atan2(spoke[:, 1], spoke[:, 0]).abs()
    assert stats.kstest(angle.numpy() / math.pi, "uniform").pvalue > 1e-9


def test_moons_are_the_moons_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    theirs, labels = datasets.make_moons(2000, noise=None)
    for label in (0, 1):
        ours = moons(n=2000, noise=0.0).train
        gap = torch.cdist(torch.from_numpy(theirs[labels == label]).float(), ours.x[ours.y == label])
        assert gap.amin(1).max() < 0.05
        assert gap.amin(0).max() < 0.05


@pytest.mark.parametrize("load", [moons, rings, spirals, xor])
def test_noise_is_gaussian_of_the_given_deviation(load):
    gap = (load(n=5000, noise=0.25).train.x - load(n=5000, noise=0.0).train.x).flatten().double()
    assert stats.kstest(gap.numpy() / 0.25, "norm").pvalue > 1e-9


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_rings_without_noise_have_their_radius(classes):
    x, y = rings(classes=classes, noise=0.0).train
    assert (x.norm(dim=1) - (y + 1) / classes).abs().max() < ROUNDING
    assert set(y.tolist()) == set(range(classes))


@pytest.mark.parametrize(("arms", "turns"), [(1, 0.5), (2, 1.0), (3, 1.75)])
def test_spirals_without_noise_turn_with_their_radius(arms, turns):
    x, y = spirals(arms=arms, turns=turns, noise=0.0).train
    x = x.double()
    radius = x.norm(dim=1)
    angle = 2 * math.pi * (turns * radius + y / arms)
    assert (x - radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1)).abs().max() < ROUNDING * (1 + 7 * turns)
    assert radius.max() <= 1 + ROUNDING
    assert stats.kstest(radius.numpy(), "uniform").pvalue > 1e-9


def test_xor_without_noise_is_the_corners_of_a_square():
    x, y = xor(noise=0.0).train
    assert (x.abs() == 1).all()
    assert torch.equal(y, (x[:, 0] != x[:, 1]).long())
    assert x.unique(dim=0, return_counts=True)[1].tolist() == [250] * 4


def test_no_line_separates_any_of_them():
    linear = pytest.importorskip("sklearn.linear_model")
    for load, best in ((moons, 0.95), (rings, 0.65), (spirals, 0.8), (xor, 0.65)):
        x, y = load(noise=0.05).train
        assert linear.LogisticRegression().fit(x.numpy(), y.numpy()).score(x.numpy(), y.numpy()) < best
