"""Causal convolutions and the network of them: torch's own parts, torch's habits, refusals."""

import json
from dataclasses import asdict

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.convolution.temporal_convolution import TCN, CausalConv1d, TCNConfig


@pytest.mark.parametrize(("width", "dilation", "groups"), [(1, 1, 1), (2, 1, 2), (3, 4, 1), (2, 30, 1)])
def test_a_causal_convolution_is_the_beginning_of_a_padded_one(width, dilation, groups):
    layer = CausalConv1d(4, 6, width, dilation, groups, dtype=torch.float64)
    past = (width - 1) * dilation
    other = nn.Conv1d(4, 6, width, dilation=dilation, groups=groups, padding=past, dtype=torch.float64)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(3, 4, 20, dtype=torch.float64)
    torch.testing.assert_close(layer(x), other(x)[..., :20], rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(layer(x[0]), layer(x)[0], rtol=1e-13, atol=1e-13)
    assert layer.receptive_field == past + 1


def test_a_network_is_its_parts_in_order():
    network = TCN(3, 2, width=4, kernel_size=3, depth=2, dropout=0.5, dtype=torch.float64).eval()
    x = torch.randn(5, 11, 3, dtype=torch.float64)
    hidden = x.mT
    for level, block in enumerate(network.blocks):
        change = hidden
        for part in (block.first, block.second):
            before = functional.pad(change, (2 * 2**level, 0))
            change = functional.conv1d(before, part.weight, part.bias, dilation=2**level).relu()
        hidden = ((block.projection(hidden) if level == 0 else hidden) + change).relu()
    torch.testing.assert_close(network(x), network.head(hidden.mT), rtol=1e-13, atol=1e-13)
    assert network.blocks[1].projection is None
    network.train()
    assert not torch.equal(network(x), network(x))


@pytest.mark.parametrize("length", [1, 2, 9])
def test_what_comes_later_changes_nothing(length):
    network = TCN(2, 3, width=5, depth=3, dtype=torch.float64)
    x = torch.randn(4, 12, 2, dtype=torch.float64)
    # A shorter sequence may be computed by another kernel: sums of at most 15 terms of size 1, in eight layers.
    torch.testing.assert_close(network(x[:, :length]), network(x)[:, :length], rtol=1e-12, atol=1e-12)


def test_the_signal_keeps_its_size():
    network = TCN(16, 16, width=64, depth=3)
    grown = network(torch.randn(8, 200, 16)).square().mean().item()
    assert 0.2 < grown < 30  # each of three blocks adds at most its input's size once
    assert network.blocks[1].first.weight.std().item() == pytest.approx((2 / (64 * 3)) ** 0.5, rel=0.03)
    assert not any(part.bias.any() for part in network.modules() if isinstance(part, nn.Conv1d))


def test_a_network_is_rebuilt_from_json():
    network = TCN(4, 3, width=5, kernel_size=2, depth=2, dropout=0.1)
    again = TCN(**json.loads(json.dumps({"inputs": 4, "outputs": 3, **asdict(network.config)})))
    again.load_state_dict(network.state_dict())
    x = torch.rand(3, 6, 4)
    assert torch.equal(again.eval()(x), network.eval()(x))
    assert "receptive_field=7" in repr(network)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CausalConv1d(0, 1, 1), "in_channels must be >= 1, got 0"),
        (lambda: CausalConv1d(1, 1, 0), "kernel_size must be >= 1, got 0"),
        (lambda: CausalConv1d(1, 1, 1, dilation=-2), "dilation must be >= 1, got -2"),
        (lambda: CausalConv1d(3, 4, 1, groups=2), "groups must divide 3 and 4 channels, got 2"),
        (lambda: CausalConv1d(1, 1, 1, bias=1), "bias must be True or False, got 1"),
        (lambda: CausalConv1d(2, 1, 1)(torch.zeros(5, 4, 2)), r"got shape \(5, 4, 2\): use input.mT"),
        (lambda: CausalConv1d(2, 1, 1)(torch.zeros(2)), r"input must be \(batch, 2, time\), got shape \(2,\)"),
        (lambda: CausalConv1d(2, 1, 1)(torch.zeros(2, 2).long()), r"got torch.int64: use input.float\(\)"),
        (lambda: CausalConv1d(2, 1, 1)([1.0]), "input must be a tensor, got list"),
        (lambda: CausalConv1d(2, 1, 3)(torch.zeros(2, 0)), r"at least one step in time, got shape \(2, 0\)"),
        (lambda: TCN(2, 1)(torch.zeros(5, 0, 2)), "x must have at least one step in time"),
        (lambda: TCN(0, 1), "inputs must be >= 1, got 0"),
        (lambda: TCN(1, 0), "outputs must be >= 1, got 0"),
        (lambda: TCNConfig(width=0), "width must be >= 1, got 0"),
        (lambda: TCNConfig(kernel_size=1), "kernel_size must be >= 2, got 1"),
        (lambda: TCNConfig(depth=0), "depth must be >= 1, got 0"),
        (lambda: TCNConfig(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (lambda: TCN(2, 1)(torch.zeros(5, 2)), r"x must be \(batch, time, 2\), got shape \(5, 2\)"),
        (lambda: TCN(2, 1)(torch.zeros(5, 2, 3)), "x must have 2 inputs on its last axis"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
