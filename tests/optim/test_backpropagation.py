"""Backpropagation written out: equal to autograd, counted as torch counts, and refusals of what it does not know."""

import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lemmata.optim.backpropagation import backpropagate, finite_differences, forward_mode

ACTIVATIONS = [nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Hardtanh, nn.Softplus, nn.Identity]


def squares(outputs):
    return outputs.square().mean() + outputs.sin().sum()


def by_autograd(network, x, loss):
    names, values = zip(*network.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss(network(x)), values), strict=True))


def deep(*, bias=True, dtype=torch.float64):
    torch.manual_seed(0)
    parts = [nn.Linear(4, 7, bias=bias), nn.Tanh(), nn.Sequential(nn.Linear(7, 5), nn.ReLU(inplace=True))]
    return nn.Sequential(*parts, nn.Linear(5, 3, bias=bias)).to(dtype)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_gives_the_gradients_of_autograd(activation):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 9), activation(), nn.Linear(9, 3), activation()).double()
    x = torch.randn(6, 4, dtype=torch.float64)
    expected = by_autograd(network, x, squares)
    for method in (backpropagate, forward_mode):
        found = method(network, x, squares)
        assert found.gradients.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found.gradients[name], value, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [1, 8])
def test_three_ways_agree_and_leave_network_and_input_alone(bias, batch):
    network, x = deep(bias=bias), torch.randn(batch, 4, dtype=torch.float64, requires_grad=True)
    before, point = [p.clone() for p in network.parameters()], x.detach().clone()
    expected = by_autograd(network, x, squares)
    for method, error in ((backpropagate, 1e-12), (forward_mode, 1e-12), (finite_differences, 1e-8)):
        found = method(network, x, squares)
        torch.testing.assert_close(found.loss, squares(network(x)).detach())
        assert not any(value.requires_grad for value in found.gradients.values())
        for name, value in expected.items():
            torch.testing.assert_close(found.gradients[name], value, rtol=error, atol=error)
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    assert torch.equal(x, point)
    assert all(p.grad is None for p in network.parameters())


def test_hidden_layers_and_deltas_stand_in_the_order_of_the_network():
    network, x = deep(), torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    found = backpropagate(network, x, squares)
    assert [tuple(h.shape) for h in found.hidden] == [tuple(d.shape) for d in found.deltas]
    assert [h.shape[1] for h in found.hidden] == [4, 7, 7, 5, 5, 3]
    torch.testing.assert_close(found.hidden[-1], network(x).detach())
    torch.testing.assert_close(found.deltas[0], torch.autograd.grad(squares(network(x)), x)[0])
    # What an activation overwrites is still there: the values before the rectifier have both signs.
    assert (found.hidden[3] < 0).any()


def test_a_layer_used_twice_gets_the_sum_of_both():
    torch.manual_seed(0)
    shared = nn.Linear(4, 4).double()
    network = nn.Sequential(shared, nn.Tanh(), shared, nn.Tanh(), nn.Linear(4, 4).double())
    network[4].weight = shared.weight  # and one that only shares its weight
    x = torch.randn(3, 4, dtype=torch.float64)
    expected = by_autograd(network, x, squares)
    for method in (backpropagate, forward_mode):
        for name, value in expected.items():
            torch.testing.assert_close(method(network, x, squares).gradients[name], value, rtol=1e-12, atol=1e-13)


def test_products_are_counted_as_torch_counts_them():
    """A multiply-add is two of torch's operations; torch counts no additions of biases and no activations."""
    network, x, units = deep(), torch.randn(8, 4, dtype=torch.float64), 8 * (7 + 5)
    with FlopCounterMode(display=False) as counter:
        found = backpropagate(network, x, squares)
    linear = 8 * (4 * 7 + 7 * 5 + 5 * 3)
    biases = 8 * (7 + 5 + 3)
    assert found.forward_multiply_adds == linear + biases + units
    assert found.multiply_adds == 3 * linear + 2 * biases + 3 * units
    assert counter.get_total_flops() == 2 * 3 * linear
    with FlopCounterMode(display=False) as counter:
        forward = forward_mode(network, x, squares)
    assert forward.forward_multiply_adds == found.forward_multiply_adds
    # Tangents of 35 parameters pass a tanh of 7 units and a layer 7 -> 5, those of 75 a rectifier and 5 -> 3.
    carried = 8 * (35 * 7 * 5 + 75 * 5 * 3) + 93 * 24
    assert counter.get_total_flops() == 2 * (linear + carried)
    entry_by_entry = 8 * (35 * 7 + 75 * 5) + units  # products with slopes, and the slopes
    assert forward.multiply_adds == forward.forward_multiply_adds + carried + entry_by_entry
    parameters = sum(p.numel() for p in network.parameters())
    assert finite_differences(network, x, squares).passes == 1 + 2 * parameters


def test_the_step_of_differences_can_be_chosen():
    network, x = deep(), torch.randn(3, 4, dtype=torch.float64)
    truth = by_autograd(network, x, squares)["0.weight"]
    errors = [
        float((finite_differences(network, x, squares, step=s).gradients["0.weight"] - truth).norm())
        for s in (1e-2, 1e-3)
    ]
    assert math.log10(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)  # of second order


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dtypes_are_kept(dtype):
    network, x = deep(dtype=dtype), torch.randn(3, 4).to(dtype)
    found = backpropagate(network, x, squares)
    assert {value.dtype for value in [found.loss, *found.gradients.values(), *found.deltas]} == {dtype}
    eps = torch.finfo(dtype).eps
    for name, value in by_autograd(network, x, squares).items():
        torch.testing.assert_close(found.gradients[name], value, rtol=32 * eps, atol=32 * eps)


def test_shapes_alone_are_counted_on_the_meta_device():
    network, x = deep().to("meta"), torch.empty(8, 4, dtype=torch.float64, device="meta")
    here = backpropagate(deep(), torch.randn(8, 4, dtype=torch.float64), squares)
    found = backpropagate(network, x, squares)
    assert (found.forward_multiply_adds, found.multiply_adds) == (here.forward_multiply_adds, here.multiply_adds)
    assert {value.device.type for value in found.gradients.values()} == {"meta"}


def one(*layers):
    return nn.Sequential(nn.Linear(4, 4), *layers)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("network", "x", "loss", "said"),
    [
        (nn.Linear(4, 2), torch.ones(1, 4), torch.sum, "network must be an nn.Sequential, got Linear"),
        (nn.Sequential(nn.Tanh()), torch.ones(1, 4), torch.sum, "network must hold at least one nn.Linear, got none"),
        (one(nn.Softmax(-1)), torch.ones(1, 4), torch.sum, r"work entry by entry, got Softmax\(dim=-1\)"),
        (one(nn.Dropout()), torch.ones(1, 4), torch.sum, "without parameters or chance"),
        (one(nn.PReLU()), torch.ones(1, 4), torch.sum, "without parameters or chance"),
        (one(nn.GLU()), torch.ones(1, 4), torch.sum, "work entry by entry, got GLU"),
        (one(nn.BatchNorm1d(4, affine=False)), torch.ones(1, 4), torch.sum, "got BatchNorm1d"),
        (one(), torch.ones(4), torch.sum, r"x must be a \(batch, inputs\) tensor, got shape \(4,\)"),
        (one(), torch.ones(2, 3), torch.sum, r"x must have 4 inputs on its last axis, got shape \(2, 3\)"),
        (one(), torch.ones(0, 4), torch.sum, "x must not be empty"),
        (one(), torch.full((1, 4), math.nan), torch.sum, "x must be finite, found 4 NaN values"),
        (one(), torch.ones(1, 4).double(), torch.sum, "x must be torch.float32 as the network, got torch.float64"),
        (one(), torch.ones(2, 4), torch.square, r"loss must give one number, got shape \(2, 4\): take its mean or sum"),
        (one(), torch.ones(2, 4), lambda outputs: 1.0, "loss must give one number, got float"),
    ],
)
def test_what_it_does_not_know_is_said(network, x, loss, said):
    with pytest.raises((TypeError, ValueError), match=said):
        backpropagate(network, x, loss)


def test_a_step_of_differences_is_positive():
    with pytest.raises(ValueError, match="step must be > 0, got 0"):
        finite_differences(one(), torch.ones(1, 4), torch.sum, step=0)


def test_dropout_that_is_switched_off_is_an_identity():
    network, x = one(nn.Dropout(), nn.Linear(4, 2)).eval(), torch.ones(1, 4)
    found = backpropagate(network, x, torch.sum)
    torch.testing.assert_close(found.gradients["0.weight"], by_autograd(network, x, torch.sum)["0.weight"])
