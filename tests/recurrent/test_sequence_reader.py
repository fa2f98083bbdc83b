"""The reader of sequences, by the parts it is made of."""

import pytest
import torch
from torch.nn import functional

from lemmata.recurrent import CELLS, SequenceReader


def layer_by_layer(model, x):
    """The outputs of the last layer, one layer after another, at mean 0 and variance 1, and read; all states."""
    states = []
    for layer in model.layer.layers:
        x, state = layer(x)
        states += state if isinstance(state, tuple) else [state]
    return functional.layer_norm(x, x.shape[-1:]) @ model.readout.weight.T + model.readout.bias, states


@pytest.mark.parametrize(("depth", "vocab_size"), [(1, None), (2, 6), (3, None), (1, 6)])
@pytest.mark.parametrize("cell", CELLS)
def test_answers_and_states_are_those_of_the_parts(cell, depth, vocab_size):
    torch.manual_seed(0)
    reader = SequenceReader(2, 3, cell, width=4, hidden=5, depth=depth, memory=10, vocab_size=vocab_size).double()
    x = torch.randn(3, 6, 2).double() if vocab_size is None else torch.randint(vocab_size, (3, 6))
    if vocab_size is None:
        total = x @ reader.encode[0].weight.T + reader.encode[0].bias
        below = total * torch.special.ndtr(total)  # gelu
    else:
        below = functional.embedding(x, reader.embedding.weight)
    wanted, ends = layer_by_layer(reader, below)
    answers, states = reader.with_states(x)
    assert [state.shape for state in ends] == [(3, 5)] * (depth * (2 if cell == "lstm" else 1))
    assert len(reader.layers[0].network[1].weight) == 8  # twice the width
    torch.testing.assert_close(reader(x), wanted[:, -1])
    torch.testing.assert_close(answers, wanted[:, -1])
    assert len(states) == 7
    for t, state in enumerate(states):
        torch.testing.assert_close(state, reader.layers[0](below[:, :t])[1])
