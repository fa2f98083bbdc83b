"""What the claims about stacked and bidirectional layers and unrolling do not say: bad input, nesting, streaming."""

import copy

import pytest
import torch
from torch import nn

from lemmata.recurrent.bidirectional import Bidirectional, reverse_sequences
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.lstm import LSTM
from lemmata.recurrent.stacked import Stacked
from lemmata.recurrent.unrolling import Unrolled


def nested():
    inner = Stacked(Bidirectional(Elman(2, 3), Elman(2, 1)), Elman(4, 2))
    return Bidirectional(inner, Elman(2, 5)).double()


def test_layers_nest_in_any_way_and_keep_their_lengths_apart():
    layer, x, lengths = nested(), torch.randn(3, 6, 2).double(), torch.tensor([6, 0, 4])
    outputs, state = layer(x, lengths=lengths)
    assert outputs.shape == (3, 6, 7)
    torch.testing.assert_close(outputs[2:, :4], layer(x[2:, :4])[0])
    assert bool((outputs[1] == 0).all())
    assert bool((outputs[2, 4:] == 0).all())
    assert [state[0][1].shape, state[1].shape] == [(3, 2), (3, 5)]
    torch.testing.assert_close(layer(x, state, lengths)[1][1][1], state[1][1])


def test_gradients_are_those_of_finite_differences():
    layer, x = nested(), torch.randn(2, 3, 2).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, lengths=torch.tensor([3, 2]))[0], (x,))


def test_a_bidirectional_layer_is_torchs_with_any_cell_and_step_by_step():
    theirs = nn.LSTM(3, 4, bidirectional=True, batch_first=True).double()
    ours = Bidirectional(LSTM.from_torch(theirs, reverse=False), LSTM.from_torch(theirs, reverse=True))
    x, lengths = torch.randn(4, 7, 3).double(), torch.tensor([7, 3, 1, 5])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    outputs, (hidden, cell) = theirs(packed)
    found, ends = ours(x, lengths=lengths)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0])
    torch.testing.assert_close(found, nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)[0])
    torch.testing.assert_close(torch.stack([end for end, _ in ends]), hidden)
    torch.testing.assert_close(torch.stack([end for _, end in ends]), cell)
    torch.testing.assert_close(ours.by_steps(x, lengths=lengths), (found, ends))


def test_a_bidirectional_layer_ends_at_both_ends_and_takes_nothing():
    layer, x = Bidirectional(Elman(3, 4), Elman(3, 4)), torch.randn(4, 7, 3)
    outputs, (there, back) = layer(x)
    assert not layer.causal
    assert torch.equal(there, outputs[:, -1, :4])
    assert torch.equal(back, outputs[:, 0, 4:])
    assert layer(x[:, :0])[0].shape == (4, 0, 8)


def test_reversing_is_its_own_inverse():
    x, lengths = torch.randn(4, 7, 3), torch.tensor([7, 3, 1, 5])
    assert torch.equal(reverse_sequences(reverse_sequences(x, lengths), lengths), x)
    assert torch.equal(reverse_sequences(x, torch.full((4,), 7)), reverse_sequences(x))
    assert torch.equal(reverse_sequences(x, lengths)[1, :3], x[1, :3].flip(0))


def test_a_stack_streams_and_keeps_lengths_apart():
    layer, x, lengths = (
        Stacked(Elman(2, 3), Elman(3, 5), Elman(5, 1)).double(),
        torch.randn(3, 9, 2).double(),
        [9, 0, 4],
    )
    assert (layer.inputs, layer.outputs, layer.causal) == (2, 1, True)
    assert not Stacked(Elman(2, 1), Bidirectional(Elman(1, 1), Elman(1, 1))).causal
    lengths = torch.tensor(lengths)
    torch.testing.assert_close(layer.by_steps(x, lengths=lengths), layer(x, lengths=lengths))
    streamed, state = [], layer.initial_state(3)
    for now in x.unbind(1):
        output, state = layer.step(now, state)
        streamed.append(output)
    torch.testing.assert_close((torch.stack(streamed, 1), state), layer(x))


def test_dropout_falls_between_layers_and_in_training_alone():
    layer = Stacked(Elman(4, 50), Elman(50, 4, "identity", bias=False), dropout=0.5).double()
    with torch.no_grad():
        layer.layers[1].recurrent_weight.zero_()
        layer.layers[1].input_weight.fill_(1.0)
    x = torch.randn(3, 9, 4).double()
    dropped, kept = layer(x)[0], layer.eval()(x)[0]
    assert bool((dropped != 0).all())  # the outputs of the last layer are spared
    assert float((dropped - kept).abs().max().detach()) > 1e-3
    assert torch.equal(layer(x)[0], kept)
    alone = Stacked(layer.layers[0], dropout=0.5)
    assert torch.equal(alone(x)[0], layer.layers[0](x)[0])


def test_a_layer_that_looks_ahead_says_that_it_cannot_stream():
    with pytest.raises(NotImplementedError, match="cannot run step by step: give it whole sequences"):
        nested().step(torch.zeros(1, 2), nested().initial_state(1))
    with pytest.raises(NotImplementedError, match="cannot run step by step"):
        Stacked(Bidirectional(Elman(2, 3), Elman(2, 3))).by_steps(torch.zeros(1, 4, 2))
    assert not nested().causal


def test_sequences_without_lengths_of_any_dtype_are_reversed_whole():
    x = torch.arange(6).reshape(2, 3)
    assert reverse_sequences(x).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert reverse_sequences(x, torch.tensor([0, 1])).equal(x)
    assert reverse_sequences(x[:, :0], torch.tensor([0, 0])).shape == (2, 0)


def test_dropout_acts_in_training_alone_and_is_shown():
    layer, x = Stacked(Elman(2, 20), Elman(20, 3), dropout=0.5), torch.ones(1, 4, 2)
    assert not layer(x)[0].equal(layer(x)[0])
    assert layer.eval()(x)[0].equal(layer(x)[0])
    assert "dropout=0.5" in repr(layer)
    assert "dropout" not in repr(Stacked(Elman(2, 3)))


def test_an_unrolled_network_leaves_the_layer_alone():
    layer = Elman(2, 3)
    before, unrolled = copy.deepcopy(layer.state_dict()), Unrolled(layer, 4)
    with torch.no_grad():
        for values in unrolled.parameters():
            values.zero_()
    assert all(layer.state_dict()[name].equal(values) for name, values in before.items())
    assert unrolled(torch.ones(2, 4, 2))[0].equal(torch.zeros(2, 4, 3))


BAD = [
    (lambda: Stacked(), ValueError, "layers must hold at least one recurrent layer"),
    (lambda: Stacked(torch.nn.Linear(2, 3)), TypeError, "each of layers must be a recurrent layer, got Linear"),
    (lambda: Stacked(Elman(2, 3), Elman(4, 3)), ValueError, "layer 1 gives 3 values, layer 2 takes 4"),
    (lambda: Stacked(Elman(2, 3), dropout=1.0), ValueError, r"dropout must be in \[0, 1\), got 1.0"),
    (lambda: Stacked(Elman(2, 3), dropout=True), TypeError, "dropout must be a number, got bool"),
    (lambda: Stacked(Elman(2, 3))(torch.zeros(1, 2, 2), torch.zeros(1, 3)), ValueError, "state must have the shape"),
    (lambda: Bidirectional(Elman(2, 3), None), TypeError, "backwards must be a recurrent layer, got NoneType"),
    (lambda: Bidirectional(Elman(2, 3), Elman(1, 3)), ValueError, "take equally many inputs, got 2 and 1"),
    (lambda: Bidirectional(*[Elman(2, 3)] * 2), ValueError, "backwards must be a layer of its own"),
    (lambda: Unrolled(torch.nn.Linear(2, 3), 4), TypeError, "layer must be a recurrent layer, got Linear"),
    (lambda: Unrolled(Elman(2, 3), 0), ValueError, "steps must be >= 1, got 0"),
    (lambda: Unrolled(Elman(2, 3), 4)(torch.zeros(1, 5, 2)), ValueError, r"x must be \(batch, 4, inputs\), got shape"),
    (lambda: Unrolled(Elman(2, 3), 4).tied_gradients(), ValueError, "there are no gradients yet"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arguments_are_named_with_the_fix(unchecked, call, error, message):
    with pytest.raises(error, match=message):
        call()


KINDS = {nn.LSTM: LSTM, nn.GRU: GRU, nn.RNN: Elman}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("layers", "both"), [(2, False), (1, True), (2, True)])
def test_a_deep_module_of_torch_is_taken_whole_or_not_at_all(kind, layers, both):
    torch.manual_seed(0)
    theirs = kind(3, 4, num_layers=layers, bidirectional=both, dropout=0.5 * (layers > 1), batch_first=True).double()
    for told, fix in ((layers > 1, "layer=0 the first"), (both, "reverse=False the first")):
        if told:
            with pytest.raises(ValueError, match=rf"Stacked.from_torch\(module\) takes .*, {fix}"):
                KINDS[kind].from_torch(theirs, **({} if "layer" in fix else {"layer": 0}))
    ours = Stacked.from_torch(theirs)
    assert ours.dropout == theirs.dropout
    assert ours.training
    ours, theirs = ours.eval(), theirs.eval()
    x, lengths = torch.randn(4, 7, 3).double(), torch.tensor([7, 3, 1, 5])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    wanted, states = theirs(packed)
    wanted = nn.utils.rnn.pad_packed_sequence(wanted, batch_first=True)[0]
    found, ends = ours(x, lengths=lengths)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    ways = [end for pair in ends for end in pair] if both else ends
    for number, part in enumerate(states if kind is nn.LSTM else [states]):
        mine = torch.stack([way[number] if kind is nn.LSTM else way for way in ways])
        torch.testing.assert_close(mine, part, rtol=1e-12, atol=1e-12)
    found.square().sum().backward()
    wanted.square().sum().backward()
    layer = ours.layers[-1].backwards if both else ours.layers[-1]
    end = f"_l{layers - 1}" + "_reverse" * both
    torch.testing.assert_close(layer.input_weight.grad, getattr(theirs, "weight_ih" + end).grad)
    torch.testing.assert_close(layer.recurrent_weight.grad, getattr(theirs, "weight_hh" + end).grad)


@pytest.mark.usefixtures("unchecked")
def test_only_modules_of_torch_are_stacked_from():
    with pytest.raises(TypeError, match=r"module must be a torch.nn.LSTM, GRU or RNN, got Linear"):
        Stacked.from_torch(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="no projection of the hidden state, got proj_size=2"):
        Stacked.from_torch(nn.LSTM(3, 4, num_layers=2, proj_size=2))
