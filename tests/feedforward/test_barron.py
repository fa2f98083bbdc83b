"""Sampled steps: what they add up to, dtypes, generators, refusals."""

import math

import pytest
import torch
from torch import nn

from lemmata.feedforward import barron_network


def waves(hidden=400, frequency=2.0, phase=0.7, dtype=torch.float64):
    return torch.full((hidden, 1), frequency, dtype=dtype), torch.full((hidden,), phase, dtype=dtype)


def make(**options):
    usual = {"constant": 2.0, "value": math.cos(0.7), "generator": torch.Generator().manual_seed(0)}
    return barron_network(*waves(), **(usual | options))


@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0])
def test_the_mean_of_many_networks_is_the_function(radius):
    x = radius * torch.linspace(-1, 1, 41, dtype=torch.float64)[:, None]
    net = barron_network(*waves(200_000), 2.0, math.cos(0.7), radius, generator=torch.Generator().manual_seed(1))
    error = (net(x) - torch.cos(2 * x + 0.7)).detach().abs().max()
    # Each step weighs at most 2 r C_f / m: five deviations of a mean of so many, and as much for 41 points at once
    assert float(error) < 7 * 2 * radius * 2.0 / 200_000**0.5


def test_at_the_origin_it_is_the_value_and_units_turn_in_the_ball():
    net = make(radius=2.0, steepness=1e6)
    origin = torch.zeros(1, 1, dtype=torch.float64)
    assert net(origin).item() == pytest.approx(math.cos(0.7), abs=1e-9)
    first, last = net[0], net[2]
    places = (-first.bias / first.weight[:, 0]).detach()
    assert float(places.abs().max()) <= 2.0 * (1 + 1e-12)
    assert bool((places < 0).any() and (places > 0).any())
    assert float(last.weight.detach().abs().max()) <= 2 * 2.0 * 2.0 / 400 * (1 + 1e-12)
    assert first.weight[0, 0].item() == pytest.approx(1e6 / 2.0)


def test_it_is_a_plain_network_of_the_dtype_of_its_frequencies():
    net = barron_network(*waves(dtype=torch.float32), 2.0, generator=torch.Generator().manual_seed(0))
    assert [type(layer) for layer in net] == [nn.Linear, nn.Sigmoid, nn.Linear]
    assert net(torch.zeros(3, 1)).dtype == torch.float32
    same = make(value=0.0)
    assert torch.allclose(net[2].weight.double(), same[2].weight, atol=1e-6)
    assert torch.equal(make()[0].bias, make()[0].bias)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frequencies": torch.ones(3)}, r"frequencies must be a \(hidden, inputs\) tensor"),
        ({"frequencies": torch.tensor([[1.0], [0.0]])}, "frequencies must not be 0"),
        ({"phases": torch.zeros(3)}, "phases must have 2 entries, got 3"),
        ({"constant": 0.0}, "constant must be > 0"),
        ({"value": math.inf}, "value must be finite"),
        ({"radius": 0.0}, "radius must be > 0"),
        ({"steepness": -1.0}, "steepness must be > 0"),
    ],
)
def test_bad_input_is_refused(unchecked, change, message):
    usual = {"frequencies": torch.ones(2, 1), "phases": torch.zeros(2), "constant": 1.0}
    with pytest.raises(ValueError, match=message):
        barron_network(**(usual | change))
