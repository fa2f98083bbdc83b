"""The type check of gradients: its words, its tolerance, bad input."""

import pytest
import torch

from lemmata.foundations.matrix_calculus.gradient_types import type_check_gradient
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of

X = torch.tensor([1.0, 2.0, 3.0])
A = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def square(x):
    return x @ x


def linear(x):
    return A @ x


def test_without_a_claim_the_expected_shape_is_named():
    found = type_check_gradient(linear, X, layout="numerator")
    assert found
    assert str(found) == "vector by vector: (2, 3) in numerator layout"


def test_a_right_gradient_is_true_and_a_wrong_one_false():
    assert type_check_gradient(square, X, 2 * X)
    assert not type_check_gradient(square, X, X)


def test_a_transposed_one_names_both_layouts():
    words = str(type_check_gradient(linear, X, A))
    assert "transposed" in words
    assert "denominator layout wants (3, 2), got the numerator layout (2, 3)" in words


def test_a_wrong_shape_names_both_shapes():
    assert "shape (3,), got (2,)" in str(type_check_gradient(square, X, X[:2]))


def test_the_first_wrong_entry_is_named():
    claimed = torch.tensor([2.0, 4.0, 7.0])
    assert str(type_check_gradient(square, X, claimed)).endswith("entry (2,) is 7 and must be 6")


def test_the_sign_is_a_factor():
    assert "-1 times the derivative" in str(type_check_gradient(square, X, -2 * X))


def test_a_derivative_that_vanishes_is_right_only_as_zero():
    assert type_check_gradient(lambda x: (0 * x).sum(), X, torch.zeros(3))
    assert not type_check_gradient(lambda x: (0 * x).sum(), X, torch.ones(3))


def test_the_tolerance_can_be_set():
    claimed = 2 * X + 0.01
    assert not type_check_gradient(square, X, claimed)
    assert type_check_gradient(square, X, claimed, tolerance=0.01)


def test_tensors_with_more_axes_put_the_variable_first_or_last():
    x = torch.ones(2, 3, 4)
    assert type_check_gradient(lambda x: x.sum((1, 2)), x).expected == (2, 3, 4, 2)
    found = type_check_gradient(lambda x: x.sum((1, 2)), x, layout="numerator")
    assert (found.expected, found.kind) == ((2, 2, 3, 4), "vector by tensor with 3 axes")


SQUARE, NONE = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 2.0]]), torch.zeros(2, 3)
POINTS, LEFT, RIGHT = torch.ones(4, 3), torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([5.0, 6.0, 7.0])


@pytest.mark.parametrize(
    ("function", "x", "claimed", "layout", "verdict", "shape"),
    [
        (linear, X, A, "numerator", "right", (2, 3)),
        (linear, X, A, "denominator", "transposed", (3, 2)),
        (linear, X, A.mT, "denominator", "right", (3, 2)),
        (lambda x: SQUARE @ x, X, SQUARE, "numerator", "right", (3, 3)),
        (lambda x: SQUARE @ x, X, SQUARE.mT, "numerator", "transposed", (3, 3)),
        (lambda x: SQUARE @ x, X, SQUARE.mT + torch.eye(3), "numerator", "wrong values", (3, 3)),
        (lambda x: NONE @ x, X, NONE, "denominator", "transposed", (3, 2)),
        (square, X, 2 * X, "denominator", "right", (3,)),
        (square, X, 2 * X, "numerator", "right", (1, 3)),
        (square, X, 2 * X[None, :], "numerator", "right", (1, 3)),
        (square, X, 2 * X[:, None], "denominator", "right", (3,)),
        (square, X, 2 * X[None, :], "denominator", "transposed", (3,)),
        (square, X, X.flip(0), "denominator", "wrong values", (3,)),
        (square, X, 0 * X, "denominator", "wrong values", (3,)),
        (square, X, X[:2], "denominator", "wrong shape", (3,)),
        (lambda X: LEFT @ X @ RIGHT, POINTS, torch.outer(LEFT, RIGHT), "denominator", "right", (4, 3)),
        (lambda X: LEFT @ X @ RIGHT, POINTS, torch.outer(RIGHT, LEFT), "denominator", "transposed", (4, 3)),
        (lambda X: LEFT @ X @ RIGHT, POINTS, torch.outer(RIGHT, LEFT), "numerator", "right", (3, 4)),
        (lambda X: X @ RIGHT, POINTS, derivative_of("X a").at(POINTS, a=RIGHT), "numerator", "right", (4, 4, 3)),
    ],
)
def test_right_transposed_misshapen_and_wrong_derivatives_are_told_apart(function, x, claimed, layout, verdict, shape):
    found = type_check_gradient(function, x, claimed, layout)
    assert (found.verdict, found.layout, found.expected) == (verdict, layout, shape)
    assert bool(found) == (verdict == "right")


def test_factors_and_the_worst_entry_are_named():
    x = torch.tensor([3000.0, -1000.0, 0.0, 500.0], dtype=torch.float64)
    nudge = torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    for claimed, words in (
        (x, "0.5 times"),
        (0 * x, "0 times"),
        (-4 * x, "-2 times"),
        (2e6 * x * (1 + 1e-9 * nudge), "1e+06 times"),
        (2 * x + x.eq(500), "entry (3,)"),
    ):
        assert words in type_check_gradient(square, x, claimed).reason
    assert type_check_gradient(square, x, 2 * x + 1e-5 * nudge)  # the largest entry, 6000, times 1.5e-8 is 9e-5


def test_the_kind_is_that_of_value_and_variable():
    cube = torch.ones(2, 3, 4)
    number = type_check_gradient(lambda x: x.sum(), cube, layout="numerator")
    curve = type_check_gradient(lambda t: t * X, X[0], layout="numerator")
    assert (number.kind, number.expected) == ("scalar by tensor with 3 axes", (2, 3, 4))
    assert (curve.kind, curve.expected) == ("vector by scalar", (3,))
    assert type_check_gradient(square, X).kind == "scalar by vector"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: type_check_gradient(square, X, layout="row"), ValueError, "layout must be 'numerator'"),
        (lambda: type_check_gradient(square, X, X, tolerance=0.0), ValueError, "tolerance must be > 0"),
        (lambda: type_check_gradient(square, X * float("nan")), ValueError, "x must be finite"),
        (lambda: type_check_gradient(square, X, X * float("inf")), ValueError, "claimed must be finite"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
