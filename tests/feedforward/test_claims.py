"""What the claims of this chapter notice: functions and methods that lack a property, each refused by its check."""

import math

import pytest
import torch

from lemmata.feedforward.claims import approximation, linear_regression, piecewise_linear, random_features, risk
from lemmata.judge.draw import Draw


def test_no_polynomial_is_universal_on_the_line():
    check = random_features.units_that_are_no_polynomials_reach_every_function_of_one_variable
    assert not check(Draw("approx.leshno"), phi=lambda z: (z / 8) ** 12 + z / 8).holds


@pytest.mark.parametrize("count", [3, 8, 24])
def test_finitely_many_directions_do_not_suffice(count):
    def snapped(weight):
        if weight.shape[1] != 2:
            return weight
        angle = (torch.atan2(weight[:, 1], weight[:, 0]) * count / math.pi).round() * math.pi / count
        return weight.norm(dim=1, keepdim=True) * torch.stack([angle.cos(), angle.sin()], 1)

    check = random_features.ridge_functions_lift_what_holds_on_the_line_to_more_variables
    assert not check(Draw("approx.lifting"), directions=snapped).holds


def test_another_universal_class_is_accepted_and_one_of_a_single_interval_is_not():
    def cosines(x, size, radius):
        return torch.cos(math.pi * x[:, None] / (2 * radius) * torch.arange(size + 1))

    check = approximation.a_universal_class_is_at_distance_zero_on_every_compact_set
    assert check(Draw("approx.universal"), family=cosines).holds
    assert not check(Draw("approx.universal"), family=approximation._cosine_waves).holds


def test_units_that_add_nothing_do_not_come_nearer(monkeypatch):
    """An error below the limit that more units do not lower."""
    monkeypatch.setattr(piecewise_linear, "_ridge_error", lambda draw, units: 0.04)
    assert not piecewise_linear.one_layer_of_relus_comes_as_near_as_one_likes(Draw("relu.universality")).holds


def test_the_law_of_new_examples_counts():
    check = risk.the_training_error_is_too_small
    assert not check(Draw("risk.validation"), moments=lambda covariance: covariance.diag().diag() / 2).holds


def test_a_method_that_never_moves_is_no_descent():
    def still(x, y, order, lr, weight=None):
        start = torch.zeros(x.shape[1], dtype=x.dtype) if weight is None else weight
        return start.expand(len(order) + 1, -1)

    check = linear_regression.a_step_on_one_example_is_unbiased
    assert not check(Draw("regression.sgd"), learn=still).holds
