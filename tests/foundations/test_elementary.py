"""Elementary calculus: series, bounds, maximisers, quotients and integrals by parts; bad input and dtypes."""

import pytest
import sympy
import torch

from lemmata.foundations.elementary_bounds import log1p_bounds, power_bound
from lemmata.foundations.elementary_derivatives import abs_subdifferential, integrate_by_parts, quotient_derivative
from lemmata.foundations.geometric_series import geometric_remainder, geometric_sum
from lemmata.foundations.matrix_derivatives import derivative_of
from lemmata.foundations.maximisers import argmax_set


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    x = torch.tensor([0.1, 0.5], dtype=dtype)
    for found in (
        geometric_sum(1.0, x),
        geometric_sum(1.0, x, terms=3),
        geometric_remainder(2, x, terms=3),
        power_bound(x, 4),
        *log1p_bounds(x),
        *abs_subdifferential(x),
    ):
        assert found.dtype == dtype


def test_gradients_flow_through_a_series_at_ratio_one():
    ratio = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    geometric_sum(1.0, ratio, terms=3).sum().backward()
    assert ratio.grad is not None
    assert torch.isfinite(ratio.grad).all()


def test_maximisers_are_found_in_each_row():
    values = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    assert argmax_set(values).tolist() == [[True, True], [False, True]]
    assert argmax_set(torch.tensor([-5.0])).tolist() == [True]


def test_autograd_at_the_corner_gives_a_slope_of_the_subdifferential():
    x = torch.zeros(1, requires_grad=True)
    (slope,) = torch.autograd.grad(x.abs().sum(), x)
    low, high = abs_subdifferential(x.detach())
    assert low <= slope <= high


def test_slopes_of_the_absolute_value_are_signs_at_every_size():
    x = torch.tensor([-1e150, -1.0, -1e-150, 1e-150, 1.0, 1e150], dtype=torch.float64)
    assert derivative_of("|x|").derivative(x).equal(torch.sign(x))
    low, high = abs_subdifferential(x)
    assert low.equal(torch.sign(x))
    assert high.equal(torch.sign(x))


def test_a_quotient_is_a_quotient():
    row = derivative_of("f(x) / g(x)")
    assert row.function(torch.tensor(2.0), torch.square, torch.exp) == torch.tensor(2.0) ** 2 / torch.tensor(2.0).exp()


def test_parts_may_have_symbols_as_ends():
    t, b = sympy.symbols("t b", positive=True)
    found = integrate_by_parts(t, sympy.exp(t), t, 0, b)
    assert sympy.simplify(found.value - (b * sympy.exp(b) - sympy.exp(b) + 1)) == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: geometric_sum(1.0, torch.tensor([0.5, -1.0])),
            ValueError,
            r"ratio must be in \(-1, 1\).*got -1: give",
        ),
        (lambda: geometric_remainder(1.0, torch.tensor(2.0), 3), ValueError, "ratio must be in"),
        (lambda: geometric_sum(1.0, torch.tensor(0.5), terms=-1), ValueError, "terms must be >= 0"),
        (lambda: log1p_bounds(torch.tensor([0.0, -1.0])), ValueError, "x must be > -1.*got -1"),
        (lambda: power_bound(torch.tensor([0.5, 3.0]), 2), ValueError, "epsilon must be <= 1.*got 3"),
        (lambda: power_bound(torch.tensor(0.5), -1), ValueError, "n must be >= 0, got -1"),
        (lambda: quotient_derivative(1.0, 0.0, torch.tensor([1.0, 0.0]), 1.0), ValueError, "g must not be 0"),
        (lambda: argmax_set(torch.tensor(1.0)), ValueError, "values must be .* got one number"),
        (lambda: argmax_set(torch.tensor([1.0, float("nan")])), ValueError, "values must be finite"),
        (lambda: abs_subdifferential(torch.tensor([float("inf")])), ValueError, "x must be finite"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
