"""Causal convolutions and the network of them: torch's own parts, torch's habits, refusals."""

import json
import subprocess
import sys
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


def test_gradients_are_those_of_finite_differences():
    x = torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True)
    network = TCN(2, 2, width=3, kernel_size=2, depth=2, dtype=torch.float64)
    for values in network.parameters():
        nn.init.normal_(values)  # no bias of zero, which puts the units of an empty past on relu's corner
    assert torch.autograd.gradcheck(lambda x, *_: network(x), (x, *network.parameters()))


def test_the_signal_keeps_its_size():
    network = TCN(16, 16, width=64, depth=3)
    grown = network(torch.randn(8, 200, 16)).square().mean().item()
    assert 0.2 < grown < 30  # each of three blocks adds at most its input's size once
    assert network.blocks[1].first.weight.std().item() == pytest.approx((2 / (64 * 3)) ** 0.5, rel=0.03)
    assert not any(part.bias.any() for part in network.modules() if isinstance(part, nn.Conv1d))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_it_has_the_dtype_and_the_device_that_is_asked_for(dtype):
    network = TCN(2, 3, width=4, depth=2, dtype=dtype)
    assert network(torch.rand(1, 7, 2, dtype=dtype)).dtype is dtype
    assert {values.device.type for values in TCN(2, 3, device="meta").parameters()} == {"meta"}


def test_a_network_is_rebuilt_from_json():
    network = TCN(4, 3, width=5, kernel_size=2, depth=2, dropout=0.1)
    again = TCN(**json.loads(json.dumps({"inputs": 4, "outputs": 3, **asdict(network.config)})))
    again.load_state_dict(network.state_dict())
    x = torch.rand(3, 6, 4)
    assert torch.equal(again.eval()(x), network.eval()(x))
    assert "receptive_field=7" in repr(network)


COMPILE = """
import torch
from lemmata.convolution.temporal_convolution import TCN
model, x = TCN(4, 3, 5, 2, 2), torch.randn(7, 9, 4)
torch.testing.assert_close(torch.compile(model, backend="eager", fullgraph=True)(x), model(x))
exported = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},)).module()
torch.testing.assert_close(exported(x[:3]), model(x[:3]))
"""


def test_it_compiles_as_a_whole_and_exports_with_any_batch():
    # In a process of its own, without the shape checks that tests add.
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CausalConv1d(0, 1, 1), "in_channels must be >= 1, got 0"),
        (lambda: CausalConv1d(1, 1, 0), "kernel_size must be >= 1, got 0"),
        (lambda: CausalConv1d(1, 1, 1, dilation=-2), "dilation must be >= 1, got -2"),
        (lambda: CausalConv1d(3, 4, 1, groups=2), "groups must divide 3 and 4 channels, got 2"),
        (lambda: CausalConv1d(1, 1, 1, bias=1), "bias must be True or False, got 1"),
        (lambda: CausalConv1d(2, 1, 1)(torch.zeros(5, 4, 2)), r"\(batch, 2, time\), got shape \(5, 4, 2\): use x.mT"),
        (lambda: CausalConv1d(2, 1, 1)(torch.zeros(2)), r"x must be \(batch, 2, time\), got shape \(2,\)"),
        (lambda: CausalConv1d(2, 1, 1)(torch.zeros(2, 2).long()), r"got torch.int64: use x.float\(\)"),
        (lambda: CausalConv1d(2, 1, 1)([1.0]), "x must be a tensor, got list"),
        (lambda: CausalConv1d(2, 1, 3)(torch.zeros(2, 0)), r"at least one step in time, got shape \(2, 0\)"),
        (lambda: TCN(2, 1)(torch.zeros(5, 0, 2)), "at least one step in time"),
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
