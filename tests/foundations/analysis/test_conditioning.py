"""Condition numbers: singular matrices, and when they are certified."""

import math

import pytest
import torch

from lemmata.foundations import QuadraticFunction, condition_number, function_condition, smoothness

DOUBLE = torch.float64


def test_a_condition_number_is_certified_only_where_both_constants_are():
    square = (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE))

    def valley(x):
        return torch.exp(x.sum()) + x.square().sum() / 10

    assert smoothness(valley, square, points=64).certified
    found = function_condition(valley, square, points=64)
    assert not found.certified
    assert found.seen == pytest.approx(10 * math.exp(2) + 1, rel=1e-3)


def test_condition_numbers_of_singular_and_zero_matrices():
    assert condition_number(torch.diag(torch.tensor([1.0, 0.0]))).isinf()
    assert condition_number(torch.eye(2).expand(3, 2, 2)).shape == (3,)
    with pytest.raises(ValueError, match="matrix must not be zero"):
        condition_number(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="f must be strongly convex, but its curvature falls to -"):
        function_condition(QuadraticFunction(torch.diag(torch.tensor([1.0, -1.0]))))


def test_the_condition_of_a_function_is_the_ratio_of_its_curvatures():
    curved = function_condition(lambda t: torch.exp(t).sum(), (1.0, 2.0), points=64)
    kinked = function_condition(lambda t: torch.exp(t).sum() + torch.relu(t).sum(), (0.5, 1.5), points=64)
    assert curved.certified
    assert not kinked.certified
    assert curved.value >= math.e
    assert len(curved.witness) == 4
    assert [curved.value, curved.seen, kinked.value] == pytest.approx([math.e] * 3, abs=0.06)


def test_a_rectangular_matrix_has_a_condition_number():
    tall = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    torch.testing.assert_close(condition_number(tall), torch.linalg.cond(tall))
