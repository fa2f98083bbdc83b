"""Inequalities: no instance may break the bound, and where sharpness is claimed one must reach it."""

import math

import pytest
import torch

from lemmata.judge import at_least, at_most


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_every_instance_counts():
    assert at_most([1.0, 2.0, 3.0], 3.5).holds
    evidence = at_most([1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0])
    assert not evidence.holds
    assert (evidence.measured, evidence.predicted) == (4.0, 2.0)
    assert evidence.detail == "2 of 4 instances break the bound"


def test_the_tightest_instance_is_shown():
    evidence = at_most([1.0, 9.0, 3.0], [2.0, 10.5, 8.0])
    assert (evidence.measured, evidence.predicted, evidence.detail) == (
        1.0,
        2.0,
        "3 instances, the worst keeps the bound",
    )
    evidence = at_least([1.0, 9.0], 0.5, detail="norms")
    assert (evidence.measured, evidence.detail) == (1.0, "2 instances, the worst keeps the bound; norms")


def test_a_bound_that_is_true_but_not_sharp_falls_where_sharpness_is_claimed():
    assert at_most([1.0, 2.0], 2.0, attained=True).holds
    evidence = at_most([1.0, 2.0], 2.1, attained=True)
    assert not evidence.holds
    assert evidence.detail == "none of 2 instances reaches the bound"
    assert at_least([1.0, 2.0], 1.0, attained=True).holds
    assert not at_least([1.0, 2.0], 0.9, attained=True).holds


@pytest.mark.parametrize("value", [0.1, 0.3, 1 / 3, 1e-20, 1e20])
def test_a_python_number_is_a_double(value):
    """As a float32 the bound itself would be off by one in ten million: broken, or never attained."""
    for judge in (at_most, at_least):
        assert judge(double(value), value, attained=True).holds
        assert judge([value], double(value), attained=True).holds
    assert not at_most(double(value * (1 + 1e-12)), value).holds
    assert not at_least(double(value), value * (1 + 1e-12)).holds


def test_rounding_is_forgiven_in_the_units_of_the_dtype():
    eps = torch.finfo(torch.float64).eps
    assert at_most(double(1 + 64 * eps), 1.0).holds
    assert not at_most(double(1 + 70 * eps), 1.0).holds
    assert at_most(torch.tensor([1.0 + 1e-6]), 1.0).holds
    assert not at_most(torch.tensor([1.0 + 1e-4]), 1.0).holds
    assert at_most(torch.tensor([1.0]).bfloat16() + 0.01, 1.0).holds
    assert not at_most(torch.tensor([1.0 + 1e-6]), 1.0, ulps=0).holds


def test_an_infinite_value_breaks_every_finite_bound():
    for judge, value in ((at_most, math.inf), (at_least, -math.inf)):
        evidence = judge([0.0, value], 1.0 if judge is at_most else -1.0)
        assert not evidence.holds
        assert evidence.measured == value
        assert judge([-value], 0.0).holds
        assert judge([1.0, value], value).holds, "infinity is at most infinity"


@pytest.mark.parametrize(("measured", "bound"), [([math.nan, 1.0], 2.0), ([1.0], math.nan)])
def test_nan_decides_nothing(measured, bound):
    for judge in (at_most, at_least):
        evidence = judge(measured, bound)
        assert not evidence.holds
        assert evidence.undecided


def test_shapes_broadcast_and_do_not_multiply():
    grid, rows = torch.arange(6.0).reshape(2, 3), torch.tensor([[2.0], [5.0]])
    assert at_most(grid, rows).holds
    assert at_most(grid, rows, attained=True).holds
    assert not at_most(grid, torch.tensor([[2.0], [4.0]])).holds
    assert at_most(torch.tensor([1.0, 5.0]), torch.tensor([[2.0], [6.0]])).holds, (
        "one bound for each, not two times two"
    )
    assert at_most(torch.tensor([[1.0, 5.0]]), torch.tensor([2.0, 6.0])).holds


def test_no_instance_is_no_evidence():
    for measured, bound in (([], 1.0), ([1.0], []), (torch.zeros(0, 3), 1.0)):
        with pytest.raises(ValueError, match="a bound was given no instance: draw at least one"):
            at_most(measured, bound)


@pytest.mark.parametrize(("left", "right"), [((4,), (2,)), ((2, 3), (3, 2)), ((3,), (2, 1)), ((2, 1), (3,))])
def test_bounds_that_do_not_fit_are_refused(left, right):
    with pytest.raises(ValueError, match="give one bound for each"):
        at_least(torch.ones(left), torch.ones(right))


def test_one_value_may_have_several_bounds():
    assert at_most(1.0, [1.0, 2.0], attained=True).holds
    assert not at_most([1.0, 5.0], [[2.0, 6.0], [2.0, 4.0]]).holds
    assert not at_most(torch.tensor([1.5]), torch.tensor([1.0, 2.0])).holds


def test_complex_numbers_have_no_order():
    with pytest.raises(TypeError, match="at_most was given complex numbers, which have no order: compare their"):
        at_most(torch.tensor([1 + 5j]), torch.tensor([2.0]))
    with pytest.raises(TypeError, match="at_least was given complex"):
        at_least(2.0, 1j)


def test_integers_and_gradients_are_welcome():
    assert at_most(torch.tensor([3, 4]), 4, attained=True).holds
    assert at_most(torch.ones(2, requires_grad=True), 1.0).holds
