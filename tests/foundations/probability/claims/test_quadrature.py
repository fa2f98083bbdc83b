"""The integrals with which claims measure: kinks, singular and infinite ends, divergence, gradients, densities."""

import math

import pytest
import torch

from lemmata.foundations.probability.claims.quadrature import Density, absolute_integral

EXPONENTIAL = Density(lambda t: torch.exp(-t), low=0.0)
UNIFORM = Density(torch.ones_like, 0.0, 1.0)
CAUCHY = Density(lambda t: 1 / (math.pi * (1 + t * t)))


def test_singular_ends_are_integrated_if_they_can_be():
    assert float(absolute_integral(lambda t: t**-0.9, 0, 1)) == pytest.approx(10, rel=1e-5)
    with pytest.raises(ValueError, match="diverges towards 0"):
        absolute_integral(lambda t: 1 / t, 0, 1)


def test_ends_may_be_tensors_and_change_places():
    ends = torch.tensor([0.0, 1.0, -2.0])
    torch.testing.assert_close(absolute_integral(torch.ones_like, 0.0, ends), ends.double())
    torch.testing.assert_close(absolute_integral(torch.ones_like, ends, 0.0), -ends.double())


@pytest.mark.parametrize(
    ("function", "ends", "centre", "value"),
    [
        # E max(X - a, 0) of the exponential distribution has a kink at a, which is where the panels are told to meet.
        (lambda t: (t - 1).clamp(min=0) * torch.exp(-t), (0.0, math.inf), 1.0, math.exp(-1)),
        (lambda t: t**-0.5, (0.0, 1.0), None, 2.0),
        (lambda t: torch.exp(-t.abs()), (-math.inf, math.inf), None, 2.0),
        (lambda t: torch.exp(t), (-math.inf, 1.0), None, math.e),
    ],
)
def test_kinks_and_ends_cost_no_digits(function, ends, centre, value):
    assert float(absolute_integral(function, *ends, centre=centre)) == pytest.approx(value, abs=1e-10)


def test_where_floating_point_ends_nodes_are_left_out():
    """Singular at 1, some nodes are so near to it that they round to it: what is lost there is a root of rounding."""
    assert float(absolute_integral(lambda t: 1 / (t * (1 - t)).sqrt(), 0, 1)) == pytest.approx(math.pi, abs=1e-7)
    assert float(absolute_integral(lambda t: (t - 1).abs() ** -0.5, 0, 2, centre=1)) == pytest.approx(4.0, abs=2e-7)


@pytest.mark.parametrize("function", [lambda t: torch.where(t > 0.5, torch.inf, 1.0), lambda t: t * math.nan])
def test_what_is_infinite_or_nothing_inside_is_refused(function):
    with pytest.raises(ValueError, match="function must be finite inside"):
        absolute_integral(function, 0, 1)


def test_the_cauchy_law_has_a_density_and_no_mean():
    assert float(CAUCHY.cdf(1.0)) == pytest.approx(0.75)
    with pytest.raises(ValueError, match="diverges towards inf, or converges too slowly to tell"):
        CAUCHY.mean


def test_what_does_not_integrate_to_one_is_no_density():
    with pytest.raises(ValueError, match=r"function must integrate to 1, got 0\.5"):
        Density(lambda t: torch.exp(-t) / 2, low=0.0)


def test_integrals_have_gradients_in_parameters_and_ends():
    rate = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    law = Density(lambda t: rate * torch.exp(-rate * t), low=0.0)
    assert float(torch.autograd.grad(law.mean, rate)[0]) == pytest.approx(-0.25)
    assert float(torch.autograd.grad(law.entropy(), rate)[0]) == pytest.approx(-0.5)
    end = torch.tensor([0.3, 1.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda b: absolute_integral(torch.cos, 0.0, b), end)
    assert torch.autograd.gradcheck(EXPONENTIAL.cdf, end)
    assert torch.autograd.gradcheck(EXPONENTIAL.mgf, torch.tensor(0.3, dtype=torch.float64, requires_grad=True))


def test_a_density_is_zero_outside_and_includes_its_ends():
    assert UNIFORM(torch.tensor([-0.1, 0.0, 1.0, 1.1])).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert UNIFORM.cdf(torch.tensor([-1e3, 1e3])).tolist() == pytest.approx([0.0, 1.0], abs=1e-9)
    assert EXPONENTIAL.cdf(torch.tensor([-1.0, 0.5]))[0] == 0


def test_expectations_are_those_of_torch_distributions():
    shape, scale = torch.tensor([2.5, 0.8], dtype=torch.float64)
    peer = torch.distributions.Gamma(shape, 1 / scale)
    law = Density(lambda t: peer.log_prob(t.clamp(min=1e-300)).exp(), low=0.0)
    assert float(law.mean) == pytest.approx(float(peer.mean), abs=1e-10)
    assert float(law.expectation(lambda t: (t - peer.mean) ** 2)) == pytest.approx(float(peer.variance), abs=1e-10)
    assert float(law.entropy()) == pytest.approx(float(peer.entropy()), abs=1e-10)
    t = torch.tensor([-1.0, 0.4], dtype=torch.float64)
    torch.testing.assert_close(law.mgf(t), (1 - scale * t) ** -shape, rtol=1e-10, atol=0)
