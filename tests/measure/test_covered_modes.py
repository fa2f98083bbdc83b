"""Modes that are hit, outliers, and two samples told apart by their nearest neighbours."""

import math

import pytest
import torch

from lemmata.measure.covered_modes import mode_coverage
from lemmata.measure.nearest_neighbours import neighbour_accuracy
from lemmata.measure.sample_distances import ROWS


def ring(modes=8):
    turn = 2 * math.pi * torch.arange(modes) / modes
    return torch.stack([turn.cos(), turn.sin()], 1)


def test_samples_of_all_modes_and_of_one_are_told_apart():
    noise = 0.02 * torch.randn(800, 2, generator=torch.Generator().manual_seed(0))
    whole = mode_coverage(ring().repeat(100, 1) + noise, ring(), radius=0.1)
    assert whole.modes == 8
    assert whole.outliers < 0.01
    one = mode_coverage(ring()[:1] + noise, ring(), radius=0.1)
    assert one.modes == 1
    assert int(one.counts[0]) > 790
    assert mode_coverage(torch.zeros(5, 2), ring(), radius=0.1)[:2] == (0, 1.0)


def test_a_mode_may_ask_for_more_than_one_sample():
    samples = torch.cat([ring()[:1].expand(5, 2), ring()[1:2]])
    assert mode_coverage(samples, ring(), radius=0.1).modes == 2
    assert mode_coverage(samples, ring(), radius=0.1, fewest=2).modes == 1


def test_neighbours_tell_apart_what_differs_and_nothing_else():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, ROWS, 2, generator=generator)
    assert neighbour_accuracy(x, y) == pytest.approx(0.5, abs=0.05)
    assert neighbour_accuracy(x, y + 9) == 1.0
    assert neighbour_accuracy(x, x + 1e-6) < 0.01  # each is next to its copy
    assert neighbour_accuracy(x[:100], y) == neighbour_accuracy(x[:100], y[:100])


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_refused():
    with pytest.raises(ValueError, match="radius must be > 0, got 0"):
        mode_coverage(ring(), ring(), radius=0.0)
    with pytest.raises(ValueError, match="fewest must be >= 1, got 0"):
        mode_coverage(ring(), ring(), radius=1.0, fewest=0)
