"""What the claims about contraction and the chain rule do not say: bad input, dtypes, gradients."""

import math

import pytest
import torch

from lemmata.foundations.matrix_calculus.tensor_chain import (
    contract,
    contract_as_matrices,
    jacobian_tensor,
    tensor_chain_rule,
)

P, Q = torch.ones(2, 3), torch.ones(3, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept(dtype):
    for value in (contract(P.to(dtype), Q.to(dtype), 1), contract_as_matrices(P.to(dtype), Q.to(dtype), 1)):
        assert value.dtype is dtype


def test_no_shared_axis_is_the_outer_product_and_all_of_them_a_number():
    assert contract(P, Q, 0).shape == contract_as_matrices(P, Q, 0).shape == (2, 3, 3, 4)
    assert contract(P, P, 2) == contract_as_matrices(P, P, 2) == 6


def test_gradients_agree_with_differences():
    p, q = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((2, 3, 2), (3, 2, 2)))
    for function in (contract, contract_as_matrices):
        assert torch.autograd.gradcheck(lambda p, q, f=function: f(p, q, 2), (p, q))


def test_the_tensor_of_derivatives_can_itself_be_differentiated():
    w = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    (second,) = torch.autograd.grad(jacobian_tensor(lambda w: w**3, w).sum(), w)
    torch.testing.assert_close(second, 6 * w.detach())
    assert not jacobian_tensor(torch.sin, w.detach()).requires_grad


def test_parity_with_torch_func():
    w = torch.randn(2, 3, dtype=torch.float64)
    torch.testing.assert_close(jacobian_tensor(torch.tanh, w), torch.func.jacrev(torch.tanh)(w))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: contract(P, Q, 2),
            ValueError,
            r"the last axes of p must be the first of q, got \(2, 3\) and \(3, 4\)",
        ),
        (lambda: contract(P, torch.ones(1, 4), 1), ValueError, r"got \(3,\) and \(1,\)"),
        (lambda: contract(P, Q, 3), ValueError, "shared must be <= 2, got 3"),
        (lambda: contract(P, Q, -1), ValueError, "shared must be >= 0, got -1"),
        (lambda: contract(P, Q.double(), 1), TypeError, "q must have the dtype of p"),
        (lambda: contract_as_matrices(P, [1.0], 1), TypeError, "q must be a tensor, got list"),
        (lambda: contract(P * math.nan, Q, 1), ValueError, "p must be finite"),
        (lambda: jacobian_tensor(torch.sin, torch.tensor([1])), TypeError, "at must be floating point"),
        (lambda: jacobian_tensor(lambda w: (w, w), P), TypeError, "function must return one tensor, got several"),
        (lambda: tensor_chain_rule(3.0, P), TypeError, "upstream must be a tensor, got float"),
        (lambda: tensor_chain_rule(torch.ones(3), P), ValueError, "the last axes of p must be the first of q"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
