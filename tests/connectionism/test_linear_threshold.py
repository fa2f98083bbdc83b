"""What the claims about threshold units and margins do not say: bad input, dtypes, shapes, state."""

import math

import pytest
import torch

from lemmata.connectionism.linear_threshold import LinearThresholdUnit, augment, dataset_margin, geometric_margin

UNIT = LinearThresholdUnit(torch.tensor([3.0, 4.0]), 5.0)
ZERO = LinearThresholdUnit(torch.zeros(2))
X, Y = torch.tensor([[1.0, 2.0], [-3.0, 0.0]]), torch.tensor([1, -1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_floating_dtype_is_kept(dtype):
    unit = LinearThresholdUnit(torch.tensor([3.0, 4.0], dtype=dtype), 5)
    for value in (unit.project(X.to(dtype)), unit.normal, unit.offset, augment(X.to(dtype))):
        assert value.dtype is dtype
    assert dataset_margin(unit.weight, unit.bias, X.to(dtype), Y).dtype is dtype


def test_one_point_and_any_leading_axes_are_answered():
    assert UNIT(torch.ones(2)).shape == ()
    assert UNIT(torch.ones(4, 5, 2)).shape == (4, 5)
    assert UNIT.project(torch.ones(4, 5, 2)).shape == (4, 5, 2)
    assert augment(torch.ones(4, 5, 2)).shape == (4, 5, 3)
    assert geometric_margin(UNIT.weight, 5.0, X[:1], Y[:1]).shape == (1,)


def test_the_unit_is_a_module_with_state_and_without_parameters():
    unit = LinearThresholdUnit(torch.zeros(2), 0.0)
    unit.load_state_dict(UNIT.state_dict())
    assert unit.weight.equal(UNIT.weight)
    assert unit.bias.equal(UNIT.bias)
    assert not list(unit.parameters())
    assert repr(unit) == "LinearThresholdUnit(features=2)"
    assert unit.double()(X.double()).dtype is torch.float64


def test_the_unit_keeps_its_own_copy_of_the_weights():
    weight = torch.ones(2)
    unit = LinearThresholdUnit(weight)
    weight.neg_()
    assert unit.weight.equal(torch.ones(2))


def test_the_bias_may_be_a_number_or_a_tensor_of_one():
    for bias in (2, 2.0, torch.tensor(2.0), torch.tensor([2.0])):
        assert LinearThresholdUnit(torch.ones(1), bias).bias.shape == ()
        assert geometric_margin(torch.ones(1), bias, torch.ones(1, 1), torch.ones(1)).item() == 3


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LinearThresholdUnit(torch.ones(2, 2)), ValueError, "weight must be a tensor with one axis"),
        (lambda: LinearThresholdUnit(torch.tensor([math.nan])), ValueError, "weight must be finite"),
        (lambda: LinearThresholdUnit(torch.ones(2), math.inf), ValueError, "bias must be finite, got inf"),
        (lambda: LinearThresholdUnit(torch.ones(2), torch.ones(2)), ValueError, r"bias must be one number, got shape"),
        (
            lambda: UNIT(torch.ones(2).double()),
            TypeError,
            r"x must have the dtype of weight, got torch.float64: use x.to",
        ),
        (lambda: ZERO.normal, ValueError, "weight must not be zero"),
        (lambda: ZERO.offset, ValueError, "weight must not be zero"),
        (lambda: ZERO.project(X), ValueError, "weight must not be zero"),
        (lambda: geometric_margin(torch.zeros(2), 0.0, X, Y), ValueError, "weight must not be zero"),
        (lambda: geometric_margin(torch.ones(3), 0.0, X, Y), ValueError, "x must have 3 features on its last axis"),
        (lambda: geometric_margin(torch.ones(2), 0.0, X[0], Y), ValueError, r"x must be a \(points, features\) tensor"),
        (lambda: dataset_margin(torch.ones(2), 0.0, X, Y[:1]), ValueError, "one label for each of the 2 points"),
        (lambda: dataset_margin(torch.ones(2), 0.0, X, Y + 1), ValueError, r"y must hold only -1 and \+1, got labels"),
        (lambda: dataset_margin(torch.ones(2), math.nan, X, Y), ValueError, "bias must be finite, got nan"),
        (lambda: augment(torch.tensor(1.0)), ValueError, r"x must have features on its last axis, got shape \(\)"),
        (lambda: augment(torch.tensor([1])), TypeError, "x must be floating point"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_margin_has_a_gradient_in_the_bias_too():
    bias = torch.tensor(0.5, requires_grad=True)
    geometric_margin(torch.ones(2), bias, X, Y).sum().backward()
    assert bias.grad is not None


@pytest.mark.parametrize("size", [2.0**-600, 2.0**600])
def test_tiny_and_huge_weights_have_the_same_boundary_and_margin(size):
    unit = LinearThresholdUnit(size * UNIT.weight.double(), size * 5.0)
    assert unit.normal.tolist() == [0.6, 0.8]
    assert unit.offset == -1
    assert geometric_margin(unit.weight, unit.bias, X.double(), Y).tolist() == pytest.approx([3.2, 0.8])
