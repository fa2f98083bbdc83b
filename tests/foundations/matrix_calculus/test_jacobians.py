"""Jacobians, gradients and Hessians: bad input, dtypes, gradients through them."""

import pytest
import torch

from lemmata.foundations.matrix_calculus.jacobians import (
    chain_rule,
    differenced_jacobian,
    gradient_of,
    hessian_of,
    jacobian_of,
)

X = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)


@pytest.mark.parametrize("layout", ["numerator", "denominator"])
def test_a_jacobian_in_either_layout_agrees_with_torch(layout):
    matrix = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    expected = torch.autograd.functional.jacobian(lambda x: (matrix @ x).sin(), X)
    found = jacobian_of(lambda x: (matrix @ x).sin(), X, layout=layout)
    assert torch.equal(found, expected if layout == "numerator" else expected.mT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_of_the_input_is_kept(dtype):
    x = X.to(dtype)
    for found in (
        jacobian_of(torch.sin, x),
        gradient_of(lambda x: x @ x, x),
        hessian_of(lambda x: x @ x, x),
        differenced_jacobian(torch.sin, x),
        chain_rule([torch.sin, torch.cos], x),
    ):
        assert found.dtype == dtype


def test_differences_in_single_precision_use_a_longer_step():
    found = differenced_jacobian(torch.sin, X.float())
    assert torch.allclose(found, torch.diag(torch.cos(X.float())), atol=1e-3)


def test_gradients_flow_through_a_gradient_and_a_hessian():
    x = X.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: gradient_of(lambda p: (p**3).sum(), x), x)
    assert torch.autograd.gradcheck(lambda x: hessian_of(lambda p: (p**4).sum(), x), x)


def test_the_input_is_left_as_it_was():
    x = X.clone()
    gradient_of(lambda p: p @ p, x)
    assert not x.requires_grad
    assert x.grad is None


def test_a_gradient_has_the_shape_of_a_matrix_or_of_one_number():
    assert gradient_of(lambda m: m.square().sum(), torch.ones(2, 3)).shape == (2, 3)
    assert gradient_of(torch.sin, torch.tensor(0.0)) == 1.0


def test_one_variable_and_one_function_are_enough():
    assert jacobian_of(torch.square, torch.tensor([3.0])).tolist() == [[6.0]]
    assert chain_rule([torch.square], torch.tensor([3.0]), layout="denominator").tolist() == [[6.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jacobian_of(torch.sin, X, layout="row"), ValueError, "layout must be 'numerator' or 'denominator'"),
        (lambda: chain_rule([torch.sin], X, layout="row"), ValueError, "layout must be"),
        (lambda: jacobian_of(lambda x: torch.outer(x, x), X), ValueError, r"vector or one number, got shape \(3, 3\)"),
        (lambda: gradient_of(torch.sin, X), ValueError, r"one number, got shape \(3,\): use jacobian_of"),
        (lambda: chain_rule([], X), ValueError, "functions must hold at least one"),
        (lambda: differenced_jacobian(torch.sin, X, step=0.0), ValueError, "step must be > 0, got 0.0"),
        (lambda: jacobian_of(torch.sin, X * float("nan")), ValueError, "x must be finite, found 3 NaN values"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
