"""Generating functions: bad input, infinite values, gradients, dtypes, several variables."""

import math

import pytest
import torch

from lemmata.foundations import (
    bernoulli_mgf,
    binomial_mgf,
    gamma_mgf,
    mgf_of_sum,
    moments_from_mgf,
    normal_mgf,
    poisson_mgf,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_generating_functions_keep_the_dtype_and_have_gradients(dtype):
    t = torch.tensor([0.1, -0.2], dtype=dtype)
    functions = [
        lambda t: bernoulli_mgf(t, 0.3),
        lambda t: binomial_mgf(t, 3, 0.3),
        lambda t: normal_mgf(t, 1, 2),
        lambda t: gamma_mgf(t, 2, 0.5),
        lambda t: poisson_mgf(t, 2),
    ]
    for function in functions:
        assert function(t).dtype is dtype
        if dtype is torch.float64:
            assert torch.autograd.gradcheck(function, t.clone().requires_grad_())


def test_an_infinite_generating_function_spoils_no_gradient():
    t = torch.tensor([0.1, 5.0], requires_grad=True)
    value = gamma_mgf(t, 2.0, 0.5)
    assert value[1] == math.inf
    value[0].backward()
    assert t.grad is not None
    assert t.grad.isfinite().all()


def test_moments_can_be_taken_without_gradients_switched_on():
    with torch.no_grad():
        torch.testing.assert_close(
            moments_from_mgf(lambda t: poisson_mgf(t, 1.0), 3), torch.tensor([1, 1, 2, 5.0]).double()
        )
    assert moments_from_mgf(lambda t: t * 0 + 1, 2).tolist() == [1, 0, 0]


def test_plain_numbers_are_taken():
    assert float(bernoulli_mgf(1.5, 0.25)) == pytest.approx(0.25 * math.exp(1.5) + 0.75)
    assert float(gamma_mgf(0.3, 2.5, 0.7)) == pytest.approx(0.79**-2.5)
    assert float(poisson_mgf(0.3, 1.7)) == pytest.approx(math.exp(1.7 * (math.exp(0.3) - 1)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: bernoulli_mgf(0.0, 1.5), ValueError, "probability must lie between 0 and 1, got 1.5"),
        (lambda: bernoulli_mgf(math.inf, 0.5), ValueError, "t must be finite"),
        (lambda: binomial_mgf(0.0, -1, 0.5), ValueError, "trials must be >= 0, got -1"),
        (lambda: binomial_mgf(0.0, 1.5, 0.5), TypeError, "trials must be an integer"),
        (lambda: normal_mgf(0.0, 0.0, -1.0), ValueError, "variance must be >= 0, got -1"),
        (lambda: gamma_mgf(0.0, 0.0, 1.0), ValueError, "shape must be > 0, got 0"),
        (lambda: gamma_mgf(0.0, 1.0, -1.0), ValueError, "scale must be > 0, got -1"),
        (lambda: poisson_mgf(0.0, -1.0), ValueError, "rate must be >= 0, got -1"),
        (lambda: mgf_of_sum([torch.exp], [1.0, 2.0]), ValueError, "one number for each of 1 functions"),
        (lambda: mgf_of_sum([], []), ValueError, "one number for each of 0 functions"),
        (lambda: moments_from_mgf(torch.exp, -1), ValueError, "order must be >= 0, got -1"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()
