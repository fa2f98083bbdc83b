"""Densities: bad input, divergence, gradients, ends and images."""

import math

import pytest
import torch

from lemmata.foundations import Density, absolute_integral, scaled_density, sum_density

EXPONENTIAL = Density(lambda t: torch.exp(-t), low=0.0)
CAUCHY = Density(lambda t: 1 / (math.pi * (1 + t * t)))


def test_the_cauchy_law_has_a_density_and_no_mean():
    assert float(CAUCHY.cdf(1.0)) == pytest.approx(0.75)
    with pytest.raises(ValueError, match="diverges towards inf, or converges too slowly to tell"):
        CAUCHY.mean
    assert repr(CAUCHY) == "Density(low=-inf, high=inf)"


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
        (lambda: scaled_density(EXPONENTIAL, 0.0), ValueError, "scale must not be 0"),
        (lambda: scaled_density(EXPONENTIAL, math.inf), ValueError, "scale must be finite"),
        (lambda: sum_density(EXPONENTIAL, EXPONENTIAL)(torch.tensor([math.nan])), ValueError, "z must be finite"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()


def gamma(shape, scale=1.0):
    log_constant = math.lgamma(shape) + shape * math.log(scale)
    return Density(lambda t: torch.exp((shape - 1) * t.log() - t / scale - log_constant), low=0.0)


def test_the_variance_is_integrated():
    assert float(gamma(2.5, 0.8).variance) == pytest.approx(2.5 * 0.8**2, abs=1e-10)


@pytest.mark.parametrize("scale", [2.5, -0.4, 1e6, -1e-6])
def test_an_image_has_its_mean_and_integrates_to_one(scale):
    image = scaled_density(gamma(1.7), scale)
    assert float(image.mean) == pytest.approx(1.7 * scale, rel=1e-10)
    assert float(absolute_integral(image, image.low, image.high)) == pytest.approx(1.0, abs=1e-10)


def test_a_density_includes_its_ends():
    uniform = Density(torch.ones_like, 0.0, 1.0)
    assert uniform(torch.tensor([-0.1, 0.0, 1.0, 1.1])).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert uniform.cdf(torch.tensor([-1e3, 1e3])).tolist() == pytest.approx([0.0, 1.0], abs=1e-9)
