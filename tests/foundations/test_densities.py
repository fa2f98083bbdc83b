"""What the claims about densities and generating functions do not say: bad input, divergence, gradients, dtypes."""

import math

import pytest
import torch

from lemmata.foundations import (
    Density,
    absolute_integral,
    bernoulli_mgf,
    binomial_mgf,
    gamma_mgf,
    mgf_of_sum,
    moments_from_mgf,
    normal_mgf,
    poisson_mgf,
    scaled_density,
    sum_density,
)

EXPONENTIAL = Density(lambda t: torch.exp(-t), low=0.0)
CAUCHY = Density(lambda t: 1 / (math.pi * (1 + t * t)))


def test_the_cauchy_law_has_a_density_and_no_mean():
    assert float(CAUCHY.cdf(1.0)) == pytest.approx(0.75)
    with pytest.raises(ValueError, match="diverges towards inf, or converges too slowly to tell"):
        CAUCHY.mean
    assert repr(CAUCHY) == "Density(low=-inf, high=inf)"


def test_singular_ends_are_integrated_if_they_can_be():
    assert float(absolute_integral(lambda t: t**-0.9, 0, 1)) == pytest.approx(10, rel=1e-5)
    with pytest.raises(ValueError, match="diverges towards 0"):
        absolute_integral(lambda t: 1 / t, 0, 1)


def test_ends_may_be_tensors_and_change_places():
    ends = torch.tensor([0.0, 1.0, -2.0])
    torch.testing.assert_close(absolute_integral(torch.ones_like, 0.0, ends), ends.double())
    torch.testing.assert_close(absolute_integral(torch.ones_like, ends, 0.0), -ends.double())


def test_expectations_have_gradients_in_the_parameters():
    rate = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    law = Density(lambda t: rate * torch.exp(-rate * t), low=0.0)
    (slope,) = torch.autograd.grad(law.mean, rate)
    assert float(slope) == pytest.approx(-0.25)
    (slope,) = torch.autograd.grad(law.entropy(), rate)
    assert float(slope) == pytest.approx(-0.5)


def test_integration_has_gradients_in_its_ends():
    end = torch.tensor([0.3, 1.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda b: absolute_integral(torch.cos, 0.0, b), end)
    assert torch.autograd.gradcheck(EXPONENTIAL.cdf, end)
    assert torch.autograd.gradcheck(EXPONENTIAL.mgf, torch.tensor(0.3, dtype=torch.float64, requires_grad=True))


def test_a_density_is_zero_outside_and_its_distribution_function_flat():
    t = torch.tensor([-1.0, 0.5])
    assert EXPONENTIAL(t)[0] == 0
    assert EXPONENTIAL.cdf(t)[0] == 0
    assert float(EXPONENTIAL.cdf(1e9)) == pytest.approx(1)


def test_sums_far_from_both_laws_have_no_density():
    uniform = Density(torch.ones_like, 0.0, 1.0)
    assert sum_density(uniform, uniform)(torch.tensor([-3.0, 5.0])).equal(torch.zeros(2).double())


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


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Density(lambda t: torch.exp(-t) / 2, low=0.0), ValueError, "function must integrate to 1, got 0.5"),
        (lambda: Density(torch.ones_like, 1.0, 0.0), ValueError, "low must be < high, got 1.0 and 0.0"),
        (
            lambda: Density(torch.ones_like, 0.0, 1.0, centre=2.0),
            ValueError,
            "centre must lie from 0.0 to 1.0, got 2.0",
        ),
        (lambda: Density(torch.ones_like, math.nan, 1.0), ValueError, "low must be < high"),
        (lambda: absolute_integral(torch.exp, math.nan), ValueError, "low must be a number or infinite, got nan"),
        (lambda: absolute_integral(torch.exp, math.inf), ValueError, "low must be < inf and high > -inf"),
        (lambda: absolute_integral(torch.exp, torch.tensor([0.0, -math.inf])), ValueError, "infinite everywhere"),
        (lambda: absolute_integral(lambda t: t * math.nan, 0, 1), ValueError, "function must be finite inside"),
        (lambda: absolute_integral(lambda t: t[:3], 0, 1), ValueError, "function must return one value for each point"),
        (lambda: scaled_density(EXPONENTIAL, 0.0), ValueError, "scale must not be 0"),
        (lambda: scaled_density(EXPONENTIAL, math.inf), ValueError, "scale must be finite"),
        (lambda: sum_density(EXPONENTIAL, EXPONENTIAL)(torch.tensor([math.nan])), ValueError, "z must be finite"),
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
