"""The type check of gradients: its words, its tolerance, bad input."""

import pytest
import torch

from lemmata.foundations.gradient_types import type_check_gradient

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
