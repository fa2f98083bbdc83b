"""Backpropagation through time beyond its claims: what each step adds, inputs, no bias, and products of no factor."""

import torch

from lemmata.recurrent.backpropagation_through_time import backpropagate_through_time
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.jacobians_through_time import jacobian_products, state_jacobians
from lemmata.recurrent.unrolling import Unrolled


def test_each_step_contributes_what_its_own_copy_of_the_weights_does():
    layer, x, start, immediate = (
        Elman(2, 3).double(),
        *(torch.randn(s).double() for s in ((2, 6, 2), (2, 3), (2, 6, 3))),
    )
    found = backpropagate_through_time(layer, x, immediate, start)
    unrolled = Unrolled(layer, 6)
    (immediate * unrolled(x, start)[0]).sum().backward()
    copies = [dict(each.named_parameters()) for each in unrolled.copies]
    assert list(found.weights()) == list(copies[0])
    for name in copies[0]:
        torch.testing.assert_close(getattr(found, name), torch.stack([each[name].grad for each in copies]))


def test_without_a_bias_it_agrees_with_central_differences():
    layer, x, weight = Elman(2, 3, bias=False).double(), torch.randn(2, 5, 2).double(), torch.randn(2, 5, 3).double()

    def along(recurrent):
        return (weight * torch.func.functional_call(layer, {"recurrent_weight": recurrent}, (x,))[0]).sum()

    at, moves = layer.recurrent_weight.detach(), 6e-6 * torch.eye(9).double().reshape(9, 3, 3)
    slopes = torch.stack([(along(at + move) - along(at - move)) / 1.2e-5 for move in moves]).reshape(3, 3)
    found = backpropagate_through_time(layer, x, weight).weights()["recurrent_weight"]
    torch.testing.assert_close(found, slopes, rtol=0, atol=1e-7)  # central differences err by the square of 6e-6


def test_the_gradient_of_the_inputs_is_that_of_autograd():
    layer, x, weight = Elman(2, 3).double(), torch.randn(2, 5, 2).double(), torch.randn(2, 5, 3).double()
    (expected,) = torch.autograd.grad((weight * layer(x.requires_grad_())[0]).sum(), x)
    torch.testing.assert_close(backpropagate_through_time(layer, x.detach(), weight).x, expected)


def test_products_begin_with_no_factor_and_then_the_last_one():
    jacobians = state_jacobians(Elman(2, 3).double(), torch.randn(2, 5, 2).double())
    chain = jacobian_products(jacobians)
    assert torch.equal(chain[:, 0], torch.eye(3).double().expand(2, 3, 3))
    torch.testing.assert_close(chain[:, 1], jacobians[:, -1])
