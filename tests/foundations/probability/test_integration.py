"""Integrals: kinks, singular and infinite ends, tensors of ends, bad input."""

import math

import pytest
import torch

from lemmata.foundations import absolute_integral


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
    ],
)
def test_kinks_and_ends_cost_no_digits(function, ends, centre, value):
    assert float(absolute_integral(function, *ends, centre=centre)) == pytest.approx(value, abs=1e-10)


def test_where_floating_point_ends_nodes_are_left_out():
    """Singular at 1, some nodes are so near to it that they round to it: what is lost there is a root of rounding."""
    assert float(absolute_integral(lambda t: 1 / (t * (1 - t)).sqrt(), 0, 1)) == pytest.approx(math.pi, abs=1e-7)
    assert float(absolute_integral(lambda t: (t - 1).abs() ** -0.5, 0, 2, centre=1)) == pytest.approx(4.0, abs=2e-7)


def test_what_is_infinite_inside_is_refused():
    with pytest.raises(ValueError, match="function must be finite inside"):
        absolute_integral(lambda t: torch.where(t > 0.5, torch.inf, 1.0), 0, 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: absolute_integral(torch.exp, math.nan), ValueError, "low must be a number or infinite, got nan"),
        (lambda: absolute_integral(torch.exp, math.inf), ValueError, "low must be < inf and high > -inf"),
        (lambda: absolute_integral(torch.exp, torch.tensor([0.0, -math.inf])), ValueError, "infinite everywhere"),
        (lambda: absolute_integral(lambda t: t * math.nan, 0, 1), ValueError, "function must be finite inside"),
        (lambda: absolute_integral(lambda t: t[:3], 0, 1), ValueError, "function must return one value for each point"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()
