"""Whether a deep net trains at all: the scale of its initial weights decides it, and Adam forgives little."""

import math

import torch
from torch.nn import functional

from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, claim, lie, reaches
from lemmata.tricks.initialization import initialize

TINY = 0.01 / math.sqrt(2 / 32)  # a standard deviation of 0.01, as a part of He's


def deep_network(gain):
    """Twenty hidden layers of 32 rectified units; a gain of 1 is He's variance."""
    network = MLP(2, 2, widths=(32,) * 20)
    initialize(network, "he", gain=gain)
    return network


def signs(count, generator):
    x = torch.randn(count, 2, generator=generator)
    return x, (x.prod(1) > 0).long()


def learn_signs(network, generator):
    """Five hundred steps, each on 64 new points."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(500):
        x, y = signs(64, generator)
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()


def _trained_loss(draw, gain):
    network = draw.trained(deep_network, learn_signs, gain=gain)
    x, y = signs(2000, torch.Generator().manual_seed(1))
    with torch.no_grad():
        return float(functional.cross_entropy(network(x), y))


@claim("init.matters")
@lie("a standard deviation of 0.01 in every layer trains as well", gain=TINY)
@lie("weights three times as large train as well", gain=3.0)
def initial_variance_decides_whether_a_deep_net_trains(draw, gain=1.0):
    """The sign of a product of two numbers, which a net without hidden layers cannot say better than by chance."""
    found, forgiven = _trained_loss(draw, gain), _trained_loss(draw, math.sqrt(0.5))
    return all_of(
        reaches(found, 0.25, at_most=True, detail="loss with He's variance times the square of the gain"),
        reaches(forgiven, 0.25, at_most=True, detail="loss with LeCun's variance, half of it"),
        reaches(
            _trained_loss(draw, TINY),
            0.67,
            detail="loss with a standard deviation of 0.01; log 2 = 0.693 without learning",
        ),
        reaches(_trained_loss(draw, 3.0), 0.67, detail="loss with weights three times as large"),
    )
