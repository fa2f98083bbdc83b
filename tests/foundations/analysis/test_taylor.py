"""Taylor's formula: bad input, dtypes, shapes."""

import math

import pytest
import torch

from lemmata.foundations import nth_derivative, second_order_model, taylor_polynomial, taylor_remainder


def test_derivatives_of_polynomials_end_in_zero():
    x = torch.tensor([2.0])
    assert nth_derivative(lambda t: t**3, x, 3).item() == pytest.approx(6.0)
    assert nth_derivative(lambda t: t**3, x, 5).item() == 0.0
    assert nth_derivative(lambda t: torch.ones_like(t), x, 2).item() == 0.0
    assert nth_derivative(torch.exp, x, 0).item() == pytest.approx(math.exp(2))


def test_points_broadcast_and_keep_their_dtype():
    at, x = torch.zeros(1, dtype=torch.float32), torch.linspace(-1, 1, 5)
    for function in (taylor_polynomial, taylor_remainder):
        assert function(torch.sin, at, x, 3).shape == (5,)
        assert function(torch.sin, at, x, 3).dtype == torch.float32
    assert second_order_model(lambda t: t.square().sum(), torch.zeros(2), torch.ones(4, 3, 2)).shape == (4, 3)


def test_bad_input_is_named(unchecked):
    with pytest.raises(ValueError, match="degree must be >= 0, got -1"):
        taylor_polynomial(torch.sin, torch.zeros(1), torch.ones(1), -1)
    with pytest.raises(ValueError, match="degree must be >= 0, got -1"):
        taylor_remainder(torch.sin, torch.zeros(1), torch.ones(1), -1)
    with pytest.raises(ValueError, match="x must be finite"):
        nth_derivative(torch.sin, torch.tensor([math.nan]), 1)
    with pytest.raises(ValueError, match="at must be a tensor with one axis"):
        second_order_model(lambda t: t.sum(), torch.zeros(2, 2), torch.ones(2))


def test_many_points_at_once():
    at = torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    both = taylor_polynomial(torch.exp, at, at + 0.5, 2) + taylor_remainder(torch.exp, at, at + 0.5, 2)
    torch.testing.assert_close(both, torch.exp(at + 0.5), rtol=0, atol=1e-12)


def test_high_derivatives_of_a_line_with_a_learnt_slope_are_zero():
    slope = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    assert not nth_derivative(lambda t: slope * t, torch.rand(4, dtype=torch.float64), 3).any()
