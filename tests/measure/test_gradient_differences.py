"""The Hessian from differences of gradients, against the one from second derivatives."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.gradient_differences import DifferencedHessian


class OnceOnly(torch.autograd.Function):
    """A tanh whose derivative has no derivative, as in many kernels."""

    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * (1 - y * y)


class Kernel(nn.Module):
    def forward(self, x):
        return OnceOnly.apply(x)


def test_it_is_the_hessian_where_there_is_one_and_where_torch_has_none():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    kernel = nn.Sequential(plain[0], Kernel(), plain[2])
    batches = [(torch.randn(4, 3).double(), torch.randn(4, 2).double()) for _ in range(2)]
    exact = HessianOperator(plain, functional.mse_loss, batches).dense()
    found = DifferencedHessian(kernel, functional.mse_loss, batches).dense()
    # Second order in a step of 6e-6 times the length 2 of the weights, and third derivatives of order one.
    assert (found - exact).abs().max() < 1e-8


def test_the_exact_operator_refuses_what_has_one_derivative():
    model = nn.Sequential(nn.Linear(3, 5), Kernel(), nn.Linear(5, 2))
    operator = HessianOperator(model, functional.mse_loss, (torch.randn(4, 3), torch.randn(4, 2)))
    with pytest.raises(RuntimeError, match="found an operation with one derivative: use DifferencedHessian"):
        operator(operator.start())


def test_single_precision_keeps_three_digits_and_zero_stays_zero():
    torch.manual_seed(1)
    model, data = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), (torch.randn(32, 4), torch.arange(32) % 3)
    exact = HessianOperator(model, functional.cross_entropy, data).dense()
    operator = DifferencedHessian(model, functional.cross_entropy, data)
    assert (operator.dense() - exact).norm() < 5e-3 * exact.norm()
    assert not operator(torch.zeros(operator.size)).any()


def test_batch_normalisation_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    operator = DifferencedHessian(model, functional.mse_loss, (torch.randn(8, 3), torch.randn(8, 1)))
    assert operator(operator.start()).isfinite().all()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
