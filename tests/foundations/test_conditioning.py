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
