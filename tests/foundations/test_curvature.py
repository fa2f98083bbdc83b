"""Smoothness and strong convexity: bad input, honesty about what is proved, determinism."""

import math

import pytest
import torch

from lemmata.foundations import curvature_between, is_convex, lipschitz, pl_constant, smoothness, strong_convexity

DOUBLE = torch.float64


def squares(x):
    return x.square().sum()


@pytest.mark.parametrize("measure", [smoothness, strong_convexity, lipschitz, is_convex, pl_constant])
def test_regions_are_checked(measure, unchecked):
    with pytest.raises(TypeError, match=r"region must be a pair \(low, high\), got float"):
        measure(squares, 3.0)
    with pytest.raises(ValueError, match="low must be below high"):
        measure(squares, (1.0, 1.0))
    with pytest.raises(ValueError, match="low and high must have the same shape"):
        measure(squares, (torch.zeros(2), torch.ones(3)))
    with pytest.raises(ValueError, match="low must be finite, got -inf"):
        measure(squares, (-math.inf, 0.0))
    with pytest.raises(ValueError, match="points must be >= 1, got 0"):
        measure(squares, (0.0, 1.0), points=0)


@pytest.mark.parametrize("measure", [smoothness, strong_convexity, lipschitz, pl_constant])
def test_without_a_region_only_known_functions_are_measured(measure):
    with pytest.raises(ValueError, match="region must be a pair"):
        measure(squares)


def test_an_estimate_is_never_called_a_proof():
    found = smoothness(lambda x: torch.relu(x).square().sum(), (-1.0, 1.0), points=64)
    assert not found.certified
    assert "an estimate, not a proof" in str(found)
    assert len(found.witness) == 2
    size, _ = curvature_between(lambda x: torch.relu(x).square().sum(), *found.witness)
    assert float(size) == pytest.approx(found.value)


def test_a_bound_too_loose_to_help_is_told_but_not_taken():
    found = strong_convexity(lambda x: torch.exp(x.sum()), (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE)))
    assert not found.certified
    assert "proved is only >=" in str(found)
    assert found.value == pytest.approx(0.0, abs=1e-9)


def test_the_same_seed_gives_the_same_answer():
    once, again = (smoothness(lambda x: torch.relu(x.sin()).sum(), (-3.0, 3.0), points=50) for _ in range(2))
    assert once.value == again.value
    assert torch.equal(once.witness[0], again.witness[0])
