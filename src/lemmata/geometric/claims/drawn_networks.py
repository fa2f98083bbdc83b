"""Networks with weights that a claim draws, and all orders of a set."""

import itertools

import torch
from torch import nn


def drawn(draw, network):
    """The network in double precision as it predicts, with weights drawn, those of its normalisation included."""
    network = network.double().eval().requires_grad_(False)
    for values in network.parameters():
        inputs = values[0].numel() if values.ndim > 1 else 1
        values.copy_(inputs**-0.5 * draw.normal(*values.shape))
    for name, values in network.named_buffers():
        if name.endswith("running_mean"):
            values.copy_(draw.normal(*values.shape))
        elif name.endswith("running_var"):
            values.copy_(draw.uniform(*values.shape, low=0.5, high=2.0))
    return network


def pointwise(draw, inputs, outputs):
    """A small network of each element by itself."""
    return drawn(draw, nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs)))


def orders(elements):
    """Every order of so many elements: (elements!, elements)."""
    return torch.tensor(list(itertools.permutations(range(elements))))
