"""Equality up to rounding: how much is allowed is counted in units of the coarser dtype, and no more."""

import math
from fractions import Fraction

import numpy
import pytest
import torch

from lemmata.judge import at_least, at_most, close, exactly, mean_is, reaches, slope_is

EPS = torch.finfo(torch.float64).eps


def double(*values):
    return torch.tensor(values if len(values) > 1 else values[0], dtype=torch.float64)


@pytest.mark.parametrize("ulps", [0, 1, 64, 1000])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_tolerance_is_as_many_units_as_asked(ulps, sign):
    assert close(double(1.0 + sign * ulps * EPS), 1.0, ulps=ulps, scale=1.0).holds
    assert not close(double(1.0 + sign * (ulps + 2) * EPS), 1.0, ulps=ulps, scale=1.0).holds


@pytest.mark.parametrize(
    "predicted", [0.3, [0.3], (0.3,), double(0.3), numpy.array(0.3), numpy.float64(0.3), Fraction(3, 10)]
)
def test_a_double_against_any_number_is_judged_as_a_double(predicted):
    """A Python number is a double: turned into float32 it would forgive errors of one in a million."""
    assert close(double(0.3), predicted).holds
    assert not close(double(0.3 + 1e-12), predicted).holds
    assert not close(predicted, double(0.3 + 1e-12)).holds


def test_python_numbers_are_doubles():
    assert close(0.1 + 0.2, 0.3).holds
    assert not close(0.1 + 1e-13, 0.1).holds
    assert close(2**70, float(2**70)).holds


def test_python_numbers_take_the_dtype_of_the_other_side():
    third = torch.tensor(1 / 3)
    assert close(third, 1 / 3).holds
    assert close([1 / 3], third[None]).holds
    assert close(third, numpy.float64(1 / 3)).holds, "one of Python's floats"
    assert not close(third + 1e-4, 1 / 3).holds
    assert close(third.bfloat16(), 1 / 3).holds
    assert not close(third.double(), 1 / 3).holds


COARSE = [torch.float32, torch.bfloat16, torch.float16, torch.complex64]
JUDGES = {
    "close": close,
    "at_most": at_most,
    "at_least": at_least,
    "exactly": exactly,
    "reaches": lambda one, other: reaches(one[0], other[0]) if one.dtype.is_floating_point else close(one, other),
    "slope_is": lambda one, other: slope_is(one.repeat(3), other.repeat(3), 1.0, within=0.1),
    "mean_is": lambda one, other: mean_is(lambda x: x, lambda n: one.repeat(n), other[0].real, effect=0.1),
}


@pytest.mark.parametrize("dtype", COARSE)
@pytest.mark.parametrize("judge", JUDGES)
def test_two_precisions_side_by_side_are_refused(judge, dtype):
    """A literal torch.ones(3) gave a float64 result the tolerance of float32, 5e8 times too wide, without a word."""
    coarse, fine = torch.ones(1, dtype=dtype), double([1.0])
    for one, other in ((coarse, fine), (fine, coarse)):
        with pytest.raises(TypeError, match=r"in \w+ beside .* compute both in float64 \(dtype=torch.float64, .double"):
            JUDGES[judge](one, other)


def test_the_refusal_names_the_sides_and_the_fix():
    with pytest.raises(TypeError) as error:
        close(double([1.0]), torch.ones(1))
    assert str(error.value) == (
        "close was given measured in float64 beside predicted in float32: compute both in float64 "
        "(dtype=torch.float64, .double()); to judge a system in float32, cast its reference to that"
    )
    with pytest.raises(TypeError, match=r"compute both in float32 .*system in bfloat16, cast its reference"):
        close(torch.ones(1), torch.ones(1).bfloat16())
    with pytest.raises(TypeError, match="measured in float32 and float64: compute both"):
        close([torch.ones(()), double(1.0)], 1.0)
    with pytest.raises(TypeError, match="measured in float32 beside predicted in float64"):
        close(numpy.ones(2, dtype=numpy.float32), numpy.ones(2))


def test_a_cast_in_the_claim_says_which_precision_is_meant():
    single, reference = torch.tensor([1 / 3]), double([1 / 3])
    assert close(single, reference.float()).holds
    assert not close(single.double(), reference).holds
    assert close(torch.ones(2, dtype=torch.complex64), torch.ones(2)).holds, "the same rounding unit"
    assert close(torch.ones(2), torch.ones(2, dtype=torch.int64)).holds, "integers are exact"


def test_integers_are_exact():
    assert close(torch.arange(3), [0, 1, 2]).holds
    assert not close(torch.arange(3), [0, 1, 3]).holds


def test_scale_defaults_to_the_largest_entry():
    assert close(double(1e10, 1e-5), double(1e10, 1.1e-5)).holds
    assert not close(double(1e10, 1e-5), double(1e10, 1.1e-5), scale=1e-5).holds
    assert not close(double(1e10, 1e-5), double(1e10, 1.1e-5), scale=double(1e10, 1e-5)).holds


def test_condition_widens_and_within_replaces():
    assert not close(double(1.0 + 1e-10), 1.0).holds
    assert close(double(1.0 + 1e-10), 1.0, condition=1e5).holds
    assert close(double(1.1), 1.0, within=0.11).holds
    assert not close(double(1.1), 1.0, within=0.09).holds
    assert close(torch.tensor(1e-30), 0.0, within=0.0).holds is False


def test_a_comparison_with_zero_asks_for_a_scale():
    assert close(double(0.0, 0.0), 0.0).holds
    with pytest.raises(ValueError, match=r"needs scale=, the size of what was added up, or within="):
        close(double(0.0, 1e-300), 0.0)
    assert close(1e-17, 0.0, scale=1.0).holds


def test_the_worst_entry_is_shown():
    evidence = close(double(1.0, 2.0, 3.5), double(1.0, 2.0, 3.0))
    assert (evidence.measured, evidence.predicted, evidence.detail) == (3.5, 3.0, "worst of 3 values")
    assert evidence.margin == 64 * EPS * 3.5
    assert evidence.by == "numeric"


def test_one_number_stands_for_all():
    assert close(torch.full((2, 3), 0.5), 0.5).holds
    assert close(0.5, torch.full((2, 3), 0.5)).holds


@pytest.mark.parametrize(("one", "other"), [((2, 3), (3, 2)), ((1,), (3,)), ((3,), (1,)), ((1, 1), (1,))])
def test_other_shapes_differ(one, other):
    """A system that answers once where three answers are due is wrong, also if the three are alike."""
    evidence = close(torch.ones(one), torch.ones(other))
    assert not evidence.holds
    assert (evidence.measured, evidence.predicted) == (f"shape {one}", f"shape {other}")


@pytest.mark.parametrize("argument", ["scale", "within"])
def test_a_tolerance_does_not_multiply_the_values(argument):
    column = torch.ones(3, 1, dtype=torch.float64)
    assert close(double(1.0, 2.0, 3.0), double(1.0, 2.0, 3.0), **{argument: column.flatten()}).holds
    with pytest.raises(ValueError, match=r"of shape \(3, 1\) for values of shape \(3,\): give one number, or one for"):
        close(double(1.0, 2.0, 3.0), double(1.0, 2.0, 3.0), **{argument: column})


def test_lists_of_tensors_are_stacked():
    assert close([double(1.0), double(2.0)], [1.0, 2.0]).holds
    assert close([double(1.0, 2.0), double(3.0, 4.0)], [[1.0, 2.0], [3.0, 4.0]]).holds


@pytest.mark.parametrize("side", [-1, 1])
def test_infinity_is_close_to_itself_only(side):
    infinite = side * math.inf
    assert close(infinite, infinite).holds
    assert close(double(infinite, 1.0), double(infinite, 1.0)).holds
    assert not close(infinite, 1.0).holds
    assert not close(1e308, infinite).holds
    assert not close(infinite, -infinite).holds
    assert not close(double(infinite, 1.0), double(infinite, 1.5)).holds, "it must not widen the others' tolerance"


@pytest.mark.parametrize(("measured", "predicted"), [(math.nan, 1.0), (1.0, math.nan), (double(1.0, math.nan), 1.0)])
def test_nan_decides_nothing(measured, predicted):
    evidence = close(measured, predicted)
    assert not evidence.holds
    assert evidence.undecided
    assert evidence.detail == "1 values are NaN"


def test_an_undefined_tolerance_decides_nothing():
    assert close(1.0, 1.0 + 1e-9, scale=math.nan).undecided
    assert close(1.0, 2.0, within=math.nan).undecided


@pytest.mark.parametrize("room", [math.nan, math.inf])
def test_one_value_without_a_tolerance_is_not_hidden_by_the_others(room):
    assert close(double(0.0, 1.0), double(0.0, 6.0), within=double(0.0, room)).undecided
    assert close(double(1.0, 1.0), double(1.0, 6.0), within=double(0.5, room)).undecided
    evidence = close(double(1.0, 1.0), double(2.0, 6.0), within=double(0.5, room))
    assert not evidence.holds
    assert not evidence.undecided, "the first value is wrong, whatever the second may be"


def test_empty_tensors_are_no_evidence():
    with pytest.raises(ValueError, match="close was given empty tensors: draw at least one instance"):
        close(torch.zeros(0), torch.zeros(0))


def test_complex_numbers_are_compared_by_modulus():
    assert close(1j * 1j, -1 + 0j).holds
    assert close(torch.exp(torch.tensor(1j * math.pi, dtype=torch.complex128)), -1.0).holds
    assert not close(torch.tensor([1 + 1j]), torch.tensor([1 - 1j])).holds
    assert close([1j, 2], [1j, 2 + 0j]).holds


def test_gradients_are_not_in_the_way():
    weight = torch.tensor([2.0], requires_grad=True)
    assert close(weight * 2, weight + 2, scale=weight).holds


def test_a_negative_scale_leaves_no_room():
    assert close(1.0, 1.0, scale=-1.0).holds
    assert not close(1.0, 1.0 + 1e-15, scale=-1.0).holds
