"""Smoothness and strong convexity: bad input, honesty about what is proved, determinism."""

import math

import pytest
import torch

from lemmata.foundations import (
    QuadraticFunction,
    curvature_between,
    is_convex,
    lipschitz,
    pl_constant,
    quadratic_bound_gap,
    smoothness,
    strong_convexity,
)
from lemmata.foundations.analysis.claims.functions import tangent_gap

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


def bowl():
    """A quadratic function with the eigenvalues 0.7, 1.5 and 4."""
    q = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=DOUBLE))[0]
    matrix = (q * torch.tensor([0.7, 1.5, 4.0], dtype=DOUBLE)) @ q.T
    return QuadraticFunction((matrix + matrix.T) / 2, torch.ones(3, dtype=DOUBLE))


def test_constants_of_a_quadratic_are_certified_by_its_eigenvalues():
    top, bottom = smoothness(bowl()), strong_convexity(bowl())
    assert top.certified
    assert bottom.certified
    assert "largest |eigenvalue|" in top.reason
    assert "least eigenvalue" in bottom.reason
    assert "certified" in str(top)
    assert (top.value, top.seen) == pytest.approx((4.0, 4.0), rel=1e-12)
    assert (bottom.value, bottom.seen) == pytest.approx((0.7, 0.7), rel=1e-12)


def test_curvatures_between_points_lie_between_the_constants():
    x, y = torch.randn(2, 500, 3, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    size, along = curvature_between(bowl(), x, y)
    assert (along >= 0.7 - 1e-12).all()
    assert (size >= along - 1e-12).all()
    assert (size <= 4 + 1e-12).all()


def test_the_change_of_slope_is_that_of_both_tangent_gaps():
    x, y = torch.randn(2, 50, 3, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    f = lambda t: torch.nn.functional.softplus(t).sum()  # noqa: E731
    gaps = tangent_gap(f, x, y) + tangent_gap(f, y, x)
    torch.testing.assert_close(curvature_between(f, x, y)[1], gaps / (x - y).square().sum(1), rtol=1e-9, atol=0)


def test_the_gap_to_a_parabola_keeps_batch_axes():
    x, y = torch.randn(2, 4, 5, 3, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    torch.testing.assert_close(quadratic_bound_gap(squares, x, y, 3.0), (x - y).square().sum(-1) / 2)


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_a_concave_quartic_is_as_smooth_as_its_ends_are_bent(radius):
    found = smoothness(lambda t: -(t**4).sum(), (-radius, radius), points=64)
    exact = 12 * radius**2
    assert found.certified
    assert exact <= found.value <= 1.02 * exact
    assert 0.99 * exact <= found.seen <= exact


def test_the_least_curvature_of_the_exponential_is_proved():
    found = strong_convexity(lambda t: torch.exp(t).sum(), (-1.0, 2.0), points=64)
    assert found.certified
    assert 0.98 * math.exp(-1) <= found.value <= math.exp(-1)


def test_what_intervals_do_not_know_is_searched_and_shown():
    def kinked(t):
        return torch.exp(t).sum() + torch.relu(t).sum()

    found = strong_convexity(kinked, (-1.0, 2.0), points=64)
    assert not found.certified
    assert found.value == pytest.approx(math.exp(-1), abs=1e-3)
    assert float(curvature_between(kinked, *found.witness)[1]) == pytest.approx(found.value, rel=1e-6)
    box = (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE))
    plane = smoothness(lambda t: torch.relu(t).sum() - t[0] ** 4 + t[1] ** 2 / 10, box, points=64)
    assert not plane.certified
    assert plane.value == pytest.approx(12.0, abs=0.1)
    assert smoothness(lambda t: torch.relu(t).sum() - 2 * (t**2).sum(), (-1.0, 1.0), points=64).value == pytest.approx(
        4
    )
