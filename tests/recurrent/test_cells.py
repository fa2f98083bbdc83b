"""Recurrent layers by name: how long their units remember initially."""

import math

import pytest
import torch

from lemmata.recurrent import recurrent_layer

UNITS = 300


@pytest.mark.parametrize(("cell", "longest"), [("mingru", 100), ("minlstm", 30), ("lru", 30), ("lru", 100)])
def test_memories_lie_on_a_logarithmic_grid(cell, longest):
    given = {} if longest == 100 else {"memory": longest}
    layer, x = recurrent_layer(cell, 2, UNITS, **given).double(), torch.zeros(2, 1, 2).double()
    start = torch.stack([torch.ones(UNITS), torch.zeros(UNITS)]).to(layer.initial_state(2))
    once = layer(x, start)[1]
    twice = layer(x, once)[1]
    left = (once[0] - once[1]).abs().detach()  # of a difference between two states after a step
    steps = longest ** (torch.arange(1, UNITS + 1).double() / (UNITS + 1))
    # Biases and eigenvalues were set in single precision.
    torch.testing.assert_close(left, 1 - 1 / steps, rtol=0, atol=1e-6)
    torch.testing.assert_close((twice[0] - twice[1]).abs(), left**2)


def test_a_unit_of_the_lru_turns_at_most_once_within_its_memory():
    torch.manual_seed(0)
    layer = recurrent_layer("lru", 2, UNITS, memory=100).double()
    steps = 100 ** (torch.arange(1, UNITS + 1).double() / (UNITS + 1))
    turns = layer.eigenvalues.detach().angle().remainder(2 * math.pi) * steps / (2 * math.pi)
    assert float(turns.max()) <= 1 + 1e-5
    assert float(turns.max()) > 0.9
    assert float(turns.min()) < 0.1
