"""WaveNet: its parts in order, the queues against the definition, torch's habits, refusals."""

import copy
import json
from dataclasses import asdict

import pytest
import torch
from torch.nn import functional

from lemmata.convolution import wavenet
from lemmata.convolution.wavenet import WORTH_COMPILING, WaveNet, WaveNetConfig


def small(**changed):
    return WaveNet(**{"levels": 5, "channels": 4, "skip_channels": 6, "depth": 3, "dtype": torch.float64, **changed})


def test_a_network_is_its_parts_in_order():
    network, x = small(kernel_size=3, stacks=2), torch.randint(5, (2, 40))
    hidden, total = network.embedding(x).mT, 0
    hidden = torch.cat([torch.zeros(2, 4, 1), hidden[..., :-1]], dim=-1)
    for layer, dilation in zip(network.layers, [1, 2, 4, 1, 2, 4], strict=True):
        before = functional.pad(hidden, (2 * dilation, 0))
        both = functional.conv1d(before, layer.gated.weight, layer.gated.bias, dilation=dilation)
        z = both[:, :4].tanh() * both[:, 4:].sigmoid()
        out = functional.conv1d(z, layer.out.weight, layer.out.bias)
        hidden, total = hidden + out[:, :4], total + out[:, 4:]
    logits = network.head(network.hidden(total.mT.relu()).relu())
    torch.testing.assert_close(network(x), logits, rtol=1e-12, atol=1e-12)
    nats = -logits.log_softmax(-1).gather(2, x[..., None]).mean()
    torch.testing.assert_close(network.loss(x), nats, rtol=1e-12, atol=1e-12)
    assert network.receptive_field == 1 + 2 * 2 * 7


@pytest.mark.parametrize("kernel_size", [2, 3])
@pytest.mark.parametrize("begin", [0, 1, 3, 40])
def test_steps_give_the_logits_of_the_whole_sequence(kernel_size, begin):
    network, x = small(kernel_size=kernel_size, stacks=2), torch.randint(5, (3, 60))
    state, found = network.begin(x[:, :begin]), []
    for t in range(begin, 60):
        found.append(network.step(state))
        network.hear(state, x[:, t])
    # About a hundred terms of size 1 in each of six layers, added up in another order.
    torch.testing.assert_close(torch.stack(found, dim=1), network(x)[:, begin:], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_generation_is_that_of_the_definition(temperature):
    network, x = small(), torch.randint(5, (2, 3))
    both = [
        method(x, 30, temperature, torch.Generator().manual_seed(3))
        for method in (network.generate, network.generate_by_definition)
    ]
    assert torch.equal(*both)
    assert torch.equal(both[0][:, :3], x)
    assert both[0].shape == (2, 33)


@pytest.mark.parametrize("compiled", [True, False])
def test_long_generation_is_that_of_the_definition_with_and_without_a_compiler(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(wavenet, "why_no_compiled_steps", lambda last: "there is none")
    network, x = small(kernel_size=3), torch.randint(5, (2, 3))
    both = [
        method(x, WORTH_COMPILING, generator=torch.Generator().manual_seed(3))
        for method in (network.generate, network.generate_by_definition)
    ]
    assert torch.equal(*both)


def test_a_state_is_gone_on_with_in_parts_and_from_copies():
    network, x = small(), torch.randint(5, (2, 20))
    state, longer = network.begin(x), WORTH_COMPILING + 5
    expected = network.sample(copy.deepcopy(state), 7 + longer, 1.0, torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    parts = [network.sample(state, length, generator=generator) for length in (7, longer)]
    assert torch.equal(torch.cat(parts, dim=1), expected)
    assert state.position == 20 + 7 + longer


def test_a_state_keeps_the_weights_it_began_with():
    network, x = small(), torch.randint(5, (2, 20))
    state, other = network.begin(x), network.begin(x)
    expected = network.sample(state, 9, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        for values in network.parameters():
            values.mul_(-3)
    assert torch.equal(network.sample(other, 9, generator=torch.Generator().manual_seed(3)), expected)


def test_the_samples_of_a_network_follow_its_law():
    network = small(levels=3, depth=2)
    for values in network.parameters():
        torch.nn.init.zeros_(values)
    torch.nn.init.constant_(network.head.bias[0], 2.0)
    law = torch.tensor([2.0, 0.0, 0.0]).softmax(0)
    drawn = network.generate(torch.zeros(1, 0, dtype=torch.long), 10_000, generator=torch.Generator().manual_seed(0))
    found = torch.bincount(drawn[0], minlength=3) / 10_000
    assert (found - law).abs().max() < 7 * 0.5 / 100  # seven standard deviations of a fraction, at most


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5)])
def test_a_sample_is_heard_for_each_sequence(shape):
    network = WaveNet(levels=8, channels=4, depth=3)
    state = network.begin(torch.zeros(2, 10, dtype=torch.long))
    with pytest.raises(ValueError, match=r"x must be \(2,\), a sample for each sequence"):
        network.hear(state, torch.zeros(shape, dtype=torch.long))


def test_a_network_is_rebuilt_from_json():
    network, x = small(), torch.randint(5, (2, 9))
    again = WaveNet(**json.loads(json.dumps(asdict(network.config))), dtype=torch.float64)
    again.load_state_dict(network.state_dict())
    assert torch.equal(again(x), network(x))
    assert "receptive_field=8" in repr(network)


def test_a_network_that_diverged_generates_nothing():
    network = small()
    torch.nn.init.constant_(network.head.bias, torch.nan)
    with pytest.raises(ValueError, match="the weights must be finite: load a checkpoint from before"):
        network.generate(torch.zeros(1, 1, dtype=torch.long), 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: WaveNetConfig(levels=1), "levels must be >= 2, got 1"),
        (lambda: WaveNetConfig(channels=0), "channels must be >= 1, got 0"),
        (lambda: WaveNetConfig(skip_channels=0), "skip_channels must be >= 1, got 0"),
        (lambda: WaveNetConfig(kernel_size=1), "kernel_size must be >= 2, got 1"),
        (lambda: WaveNetConfig(depth=0), "depth must be >= 1, got 0"),
        (lambda: WaveNetConfig(stacks=0), "stacks must be >= 1, got 0"),
        (lambda: small()(torch.tensor([[5]])), "x must hold tokens from 0 to 4, got 5 to 5"),
        (lambda: small()(torch.zeros(2, 0, dtype=torch.long)), "at least one step in time"),
        (lambda: small().generate(torch.tensor([[1]]), 0), "length must be >= 1, got 0"),
        (lambda: small().generate(torch.tensor([[1]]), 1, -1.0), "temperature must be >= 0, got -1.0"),
        (lambda: small().generate_by_definition(torch.tensor([[1]]), 0), "length must be >= 1, got 0"),
        (lambda: small().generate_by_definition(torch.tensor([[1]]), 1, -1.0), "temperature must be >= 0"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
