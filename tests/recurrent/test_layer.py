"""What every recurrent layer with all its options promises, and what it refuses."""

import inspect

import numpy
import pytest
import torch
from torch import nn

from lemmata.recurrent.cells import recurrent_layer
from lemmata.recurrent.deep_transition import DeepTransition
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.layer import RecurrentLayer, state_at_end
from lemmata.recurrent.lru import LRU
from lemmata.recurrent.lstm import LSTM
from lemmata.recurrent.min_gru import MinGRU
from lemmata.recurrent.min_lstm import MinLSTM
from lemmata.recurrent.residual_block import ResidualBlock
from lemmata.recurrent.sequence_to_sequence import SequenceToSequence
from lemmata.recurrent.stacked import Stacked
from lemmata.testing import check_recurrence

LAYERS = [Elman(3, 4), LSTM(3, 4), MinGRU(3, 4), Stacked(Elman(3, 4), LSTM(4, 2))]
X = torch.randn(2, 5, 3)
BAD = [
    ((X.double(),), TypeError, r"x must be torch.float32 like the layer, got torch.float64: use x.to"),
    ((numpy.ones((2, 5, 3), numpy.float32),), TypeError, "x must be a padded tensor, got ndarray"),
    ((nn.utils.rnn.pack_sequence([X[0]]),), TypeError, "got PackedSequence: give the lengths beside it"),
    ((X, None, [5, 2]), TypeError, "lengths must be a tensor, got list"),
    ((X, None, torch.tensor([5.0, 2.0])), TypeError, "lengths must hold integers, got torch.float32"),
    ((X, None, torch.tensor([5])), ValueError, "one number for each of 2 sequences"),
    ((X, None, torch.tensor([6, 1])), ValueError, "lengths must be from 0 to 5, got 1 to 6"),
    ((X, None, torch.tensor([-1, 1])), ValueError, "lengths must be from 0 to 5, got -1 to 1"),
    ((X, "zero"), TypeError, "state must be a tensor or a tuple of tensors, got str"),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
@pytest.mark.parametrize(("given", "error", "message"), BAD)
def test_bad_input_is_one_sentence(unchecked, layer, given, error, message):
    with pytest.raises(error, match=message):
        layer(*given)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_lengths_may_be_whole_numbers_of_any_size(layer):
    expected = layer(X, lengths=torch.tensor([5, 2]))[0]
    for dtype in (torch.uint8, torch.int32):
        assert torch.equal(layer(X, lengths=torch.tensor([5, 2], dtype=dtype))[0], expected)


class Products(RecurrentLayer):
    """A layer without a quick way of its own: a matrix of products of inputs that fade."""

    def __init__(self):
        super().__init__(3, 9)

    def initial_state(self, batch):
        return torch.zeros(batch, 3, 3)

    def step(self, x, state):
        state = state / 2 + x[:, :, None] * x[:, None, :]
        return state.flatten(1).tanh(), state


EVERY = [
    *LAYERS,
    Elman(3, 4, "softsign", bias=False),
    LSTM(3, 4, cell_matrix=True),
    LSTM(3, 4, bias=False),
    *(GRU(3, 4, reset=reset, update="write", bias=bias) for reset in ("before", "after") for bias in (True, False)),
    GRU(3, 4),
    DeepTransition(3, 4, (5,)),
    MinLSTM(3, 4),
    LRU(3, 4),
    LRU(3, 4, gain="learnt", skip=True),
    LRU(3, 4, outputs=2, width=5),
    ResidualBlock(LSTM(3, 7), 0),
    Products(),
]


@pytest.mark.parametrize("layer", EVERY, ids=lambda layer: type(layer).__name__)
def test_the_conformance_suite_passes(layer):
    check_recurrence(layer, torch.randn(3, 6, 3))


@pytest.mark.parametrize("layer", EVERY, ids=lambda layer: type(layer).__name__)
def test_each_sequence_of_a_batch_ends_where_its_length_says(layer):
    x, lengths = torch.randn(4, 6, 3), torch.tensor([6, 0, 4, 1])
    middle = layer(x[:, :3])[1]
    padded = torch.where(torch.arange(6)[:, None] < lengths[:, None, None], x, torch.inf)
    for way in (layer, layer.by_steps):
        outputs, state = way(padded, middle, lengths)
        for index, length in enumerate(lengths.tolist()):
            own, end = (one_of(each, index) for each in (middle, state))
            alone, last = layer.by_steps(x[index : index + 1, :length], own)
            torch.testing.assert_close(outputs[index : index + 1, :length], alone)
            assert not outputs[index, length:].any()
            torch.testing.assert_close(end, last)


def one_of(state, index):
    return tuple(one_of(part, index) for part in state) if isinstance(state, tuple) else state[index : index + 1]


@pytest.mark.parametrize("layer", EVERY, ids=lambda layer: type(layer).__name__)
def test_a_sequence_without_steps_leaves_the_state_alone(layer):
    x = torch.randn(4, 3, 3)
    middle = layer(x)[1]
    for way in (layer, layer.by_steps):
        outputs, state = way(x[:, :0], middle)
        assert outputs.shape == (4, 0, layer.outputs)
        torch.testing.assert_close(state, middle, rtol=0, atol=0)
    torch.testing.assert_close(layer(x[:, :1]), layer.by_steps(x[:, :1]))


def test_states_of_a_stack_may_be_a_list():
    layer, x = Stacked(Elman(3, 4), Elman(4, 2)), torch.randn(2, 5, 3)
    state = layer(x)[1]
    assert torch.equal(layer(x, list(state))[0], layer(x, state)[0])
    assert torch.equal(state_at_end(x[:, :0], x[:, 0], None), x[:, 0])


@pytest.mark.parametrize(("cell", "torch_cell"), [(Elman, nn.RNN), (LSTM, nn.LSTM), (GRU, nn.GRU)])
def test_weights_of_a_torch_module_are_refused_with_the_way_to_take_them_over(cell, torch_cell):
    module = torch_cell(3, 4, batch_first=True)
    with pytest.raises(RuntimeError, match=rf"weights of a torch module: use {cell.__name__}\.from_torch\(module\)"):
        cell(3, 4).load_state_dict(module.state_dict())
    torch.testing.assert_close(cell.from_torch(module)(X)[0], module(X)[0])


@pytest.mark.parametrize("cell", [Elman, LSTM, GRU, MinGRU, MinLSTM])
def test_every_cell_calls_its_weights_alike(cell):
    names = dict(cell(3, 4).named_parameters())
    rows = len(getattr(cell, "BLOCKS", "z")) * 4
    assert names["input_weight"].shape == (rows, 3)
    assert names["bias"].shape == (rows,)
    if cell not in (MinGRU, MinLSTM):
        assert names["recurrent_weight"].shape == (rows, 4)


def test_gru_means_the_same_wherever_it_is_named():
    made = [GRU(3, 4), recurrent_layer("gru", 3, 4), SequenceToSequence(5, 5, 3, 4, cell="gru").encoder]
    assert {(layer.reset, layer.update) for layer in made} == {("after", "keep")}


@pytest.mark.parametrize("cell", [Elman, DeepTransition, LSTM, GRU, MinGRU, MinLSTM, LRU])
def test_every_cell_calls_its_sizes_inputs_and_hidden(cell):
    assert list(inspect.signature(cell).parameters)[:2] == ["inputs", "hidden"]
    layer = cell(inputs=3, hidden=4)
    assert (layer.inputs, layer.hidden, layer.outputs) == (3, 4, 3 if cell is LRU else 4)
    assert "inputs=3, hidden=4" in repr(layer)
    for word in ("inputs", "hidden"):
        with pytest.raises(ValueError, match=f"{word} must be >= 1, got 0"):
            cell(**{"inputs": 3, "hidden": 4, word: 0})


def test_hooks_of_inner_layers_run():
    heard = []
    stacked = Stacked(Elman(3, 4), Elman(4, 2))
    stacked.layers[0].register_forward_hook(lambda *_: heard.append(1))
    stacked(X)
    assert heard == [1]
