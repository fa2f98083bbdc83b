"""The instruments of the claims about convexity and smoothness: a wrong one would give wrong verdicts."""

import pytest
import torch

from lemmata.foundations.analysis.claims.functions import (
    chord_gap,
    curvature_between,
    gradient_monotony,
    least_curvature,
    quadratic_bound_gap,
    squares,
    tangent_gap,
)
from lemmata.foundations.analysis.claims.smoothness import condition_number, nth_derivative, stretching

DOUBLE = torch.float64


@pytest.fixture
def pairs():
    return torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)


def test_gaps_of_the_square_are_those_of_the_binomial_formula(pairs):
    x, y = pairs
    distance = (x - y).square().sum(-1)
    torch.testing.assert_close(tangent_gap(squares, x, y), distance)
    torch.testing.assert_close(gradient_monotony(squares, x, y), 2 * distance)
    torch.testing.assert_close(chord_gap(squares, x, y, torch.full((3, 5), 0.25, dtype=DOUBLE)), 3 / 16 * distance)
    torch.testing.assert_close(quadratic_bound_gap(squares, x, y, 3.0), distance / 2)
    torch.testing.assert_close(least_curvature(squares, x), torch.full((3, 5), 2.0, dtype=DOUBLE))


def test_the_change_of_slope_is_that_of_both_tangent_gaps(pairs):
    x, y = pairs

    def f(t):
        return torch.nn.functional.softplus(t).sum() - 3 * t[0] ** 2

    size, along = curvature_between(f, x, y)
    gaps = tangent_gap(f, x, y) + tangent_gap(f, y, x)
    torch.testing.assert_close(along, gaps / (x - y).square().sum(-1), rtol=1e-9, atol=0)
    assert (size >= along.abs() - 1e-12).all()


def test_derivatives_of_a_polynomial_and_the_stretching_of_a_map():
    x = torch.tensor([2.0, -1.0], dtype=DOUBLE)
    assert nth_derivative(lambda t: t**4, x, 3).tolist() == pytest.approx([48.0, -24.0])
    assert nth_derivative(torch.exp, x, 0).tolist() == torch.exp(x).tolist()
    assert stretching(lambda t: -7 * t, x, x + 0.5).tolist() == pytest.approx([7.0, 7.0], rel=1e-12)


def test_singular_matrices_have_an_infinite_condition_number():
    assert condition_number(torch.diag(torch.tensor([1.0, 0.0]))).isinf()
    assert condition_number(torch.diag(torch.tensor([1.0, -50.0]))) == pytest.approx(50.0)
