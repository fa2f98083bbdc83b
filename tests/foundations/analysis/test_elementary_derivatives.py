"""Absolute values, quotients and integrals by parts: sizes, corners, symbols, dtypes, bad input."""

import pytest
import sympy
import torch

from lemmata.foundations.analysis.elementary_derivatives import (
    abs_subdifferential,
    integrate_by_parts,
    quotient_derivative,
)
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    assert {end.dtype for end in abs_subdifferential(torch.tensor([0.1, 0.0], dtype=dtype))} == {dtype}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: quotient_derivative(1.0, 0.0, torch.tensor([1.0, 0.0]), 1.0), ValueError, "g must not be 0"),
        (lambda: abs_subdifferential(torch.tensor([float("inf")])), ValueError, "x must be finite"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
