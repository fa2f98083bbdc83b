"""The GRU: its formula, the two conventions of its update gate, the two places of its reset gate, its size."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie, reaches
from lemmata.recurrent.claims.recall import cued, recall, with_drawn_weights
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.lstm import LSTM

LAG = 30


def written_out(layer, x, state, keeps, content, resets):
    """The recursion in numpy, one matrix on [z, x] for each block."""

    def matrix(block):
        rows = layer.rows(block)
        weights = torch.cat([layer.recurrent_weight[rows], layer.input_weight[rows], layer.bias[rows, None]], dim=1)
        return weights.detach().numpy()

    def of(block, z, u):
        return matrix(block) @ np.concatenate([z, u, [1.0]])

    def sigmoid(a):
        return np.exp(-np.logaddexp(0.0, -a))

    states = []
    for sequence, start in zip(x.numpy(), state.numpy(), strict=True):
        z, run = start, []
        for u in sequence:
            gate, reset = sigmoid(of("update", z, u)), sigmoid(of("reset", z, u))
            new = np.tanh(of("candidate", reset**resets * z, u))
            keep = keeps * gate + (1 - keeps) * (1 - gate)
            z = keep * z + (1 - keep) * ((1 - content) * new + content * reset)
            run.append(z)
        states.append(run)
    return torch.tensor(np.array(states))


def matches_torch(draw, gru, reset):
    """All ways to run the layer against torch.nn.GRU: whole sequences, ends, lengths, conversions there and back."""
    other = nn.GRU(3, 4, batch_first=True).double()
    for parameter in other.parameters():
        parameter.data = 0.7 * draw.normal(*parameter.shape)
    x, start = draw.normal(5, 9, 3), draw.uniform(5, 4, low=-1.0)
    lengths = torch.tensor([9, 1, 4, 0, 7])
    whole, end = other(x, start[None])
    some = lengths > 0
    packed = pack_padded_sequence(x[some], lengths[some], batch_first=True, enforce_sorted=False)
    padded, last = other(packed, start[None, some])
    cut, final = torch.zeros_like(whole), start.clone()
    cut[some], final[some] = pad_packed_sequence(padded, batch_first=True, total_length=9)[0], last[0]
    layer = gru.from_torch(other)
    placed = gru(3, 4, reset=reset).double()
    placed.load_state_dict({name: layer.state_dict()[name] for name in placed.state_dict()})
    parts = []
    for one in (layer, placed, layer.with_update("write"), gru.from_torch(layer.with_update("write").to_torch())):
        for run in (one, one.by_steps, one.hoisted):
            outputs, state = run(x, start)
            parts += [close(outputs, whole), close(state, end[0])]
            outputs, state = run(x, start, lengths)
            parts += [close(outputs, cut), close(state, final)]
    bare = gru(3, 4, reset="after", bias=False).double()
    parts += [close(bare(x)[0], bare.to_torch()(x)[0]), close(bare.by_steps(x)[0], bare(x)[0])]
    return all_of(*parts)


@claim("rnn.gru")
@lie("the new content is the reset gate", printed="003/1", content=1.0)
@lie("the same weights with a gate that writes", keeps=0.0)
@lie("the candidate needs no reset gate", resets=0.0)
@lie("the layer with reset before the product is torch's GRU", reset="before")
@lie("states stay within a half", bound=0.5)
@lie(
    "the update gate may start open to every input, at bias 0",
    regime="every start that leaves enough of a memory after 30 steps is good enough",
    loose="a larger bias keeps more",
    kept=0.0,
)
def the_state_moves_towards_a_candidate(
    draw, gru=GRU, content=0.0, keeps=1.0, resets=1.0, reset="after", bound=1.0, kept=4.0
):
    """Against numpy and torch's GRU in float64, the bound on its states, then a token recalled after 30 steps."""
    layer = with_drawn_weights(gru(3, 4, reset="before"), draw)  # the paper's form
    x, start = draw.normal(4, 8, 3), draw.uniform(4, 4, low=-1.0)
    expected = written_out(layer, x, start, keeps, content, resets)
    strong = with_drawn_weights(gru(3, 30, reset="before"), draw, spread=3.0)(draw.normal(10, 40, 3))[0]
    same = all_of(
        *(close(run(x, start)[0], expected) for run in (layer, layer.by_steps)),
        close(layer(x)[0], written_out(layer, x, 0 * start, keeps, content, resets)),
        at_most(strong.abs(), bound),
        at_least(strong.abs().max(), 0.99 * bound),
        matches_torch(draw, gru, reset),
    )
    if not same.holds:  # wrong without any training
        return same
    layer = gru(5, 16, reset="before")
    layer.set_bias("update", kept)
    return all_of(same, reaches(recall(layer, LAG, draw.generator, steps=150), 0.99)).showing(
        gates_over_time(layer, draw)
    )


def gates_over_time(layer, draw):
    """The gates of the trained layer along one sequence, averaged over the units."""
    x, _ = cued(1, LAG, draw.generator)
    with torch.no_grad():
        before = torch.cat([torch.zeros(1, 1, layer.hidden), layer(x)[0][:, :-1]], dim=1)
        gates = layer.gates(x, before)
    times = list(range(LAG + 1))
    marks = [Line(times, getattr(gates, name)[0].mean(-1), name) for name in ("update", "reset")]
    return Figure("Gates of a GRU that recalls its first input", "step", "mean over the units", marks)


@claim("rnn.gru.convention")
@lie("both conventions agree with the same weights", sign=1.0)
@lie("it is enough to negate what multiplies the input", recurrent=1.0)
@lie("the bias of the gate stays", offset=1.0)
def negating_the_update_gate_exchanges_the_conventions(draw, gru=GRU, sign=-1.0, recurrent=-1.0, offset=-1.0):
    """Fifty steps of a layer whose gate keeps and of one whose gate writes, with the rows of that gate negated."""
    parts = []
    for reset in ("before", "after"):
        keeps = with_drawn_weights(gru(3, 4, reset=reset), draw)
        writes = gru(3, 4, reset=reset, update="write").double()
        writes.load_state_dict(keeps.state_dict())
        rows = keeps.rows("update")
        writes.input_weight.data[rows] *= sign
        writes.recurrent_weight.data[rows] *= sign * recurrent * -1
        writes.get_parameter("bias").data[rows] *= sign * offset * -1
        x, state = draw.normal(2, 50, 3), draw.uniform(2, 4, low=-1.0)
        states = keeps(x, state)[0]
        gates = keeps.gates(x, states).update + keeps.with_update("write").gates(x, states).update
        # The recursion may carry a rounding error on for a while: hence the scale.
        parts += [
            close(writes(x, state)[0], states, ulps=2048),
            close(writes.by_steps(x, state)[0], states, ulps=2048),
            close(keeps.with_update("write")(x, state)[0], states, ulps=2048),
            close(keeps.with_update("write").with_update("keep")(x, state)[0], states),
            close(keeps.with_update("keep")(x, state)[0], states),
            close(gates, torch.ones_like(gates)),
        ]
    return all_of(*parts)


@claim("rnn.gru.reset_placement")
@lie("the two placements are equal for every matrix", off=1.0)
@lie("the two placements are equal for every reset gate", spread=1.0)
@lie("the bias of the state belongs outside of the reset", inner=1.0)
def the_placement_matters_unless_matrix_and_gate_commute(draw, gru=GRU, off=0.0, spread=0.0, inner=0.0):
    """Diagonal matrices and uniform gates give equal states; otherwise a unit differs where the products do."""
    x, start = draw.normal(3, 12, 2), draw.uniform(3, 6, low=-1.0)

    def pair():
        after = with_drawn_weights(gru(2, 6, reset="after"), draw)
        after.get_parameter("inner_bias").data *= inner
        before = gru(2, 6, reset="before").double()
        return before, after, after.rows("reset"), after.rows("candidate")

    def with_same_weights(before, after):
        before.load_state_dict({name: after.state_dict()[name] for name in before.state_dict()})
        return before, after

    before, after, _, rows = pair()
    matrix = after.recurrent_weight.data[rows]
    after.recurrent_weight.data[rows] = torch.diag(matrix.diagonal()) + off * matrix
    before, after = with_same_weights(before, after)
    parts = [close(before(x, start)[0], after(x, start)[0])]

    before, after, rows, _ = pair()
    for weight in (after.input_weight, after.recurrent_weight):
        weight.data[rows] *= spread
    bias = after.get_parameter("bias").data
    bias[rows] = 0.3 + spread * bias[rows]
    before, after = with_same_weights(before, after)
    parts.append(close(before(x, start)[0], after(x, start)[0]))

    # Three units are told of themselves alone: there the products agree, at the others not, and so do the candidates.
    before, after, _, rows = pair()
    after.get_parameter("inner_bias").data.zero_()
    after.recurrent_weight.data[rows] *= torch.eye(6) + (torch.arange(6)[:, None] > 2)
    before, after = with_same_weights(before, after)
    states, u = draw.normal(200, 6), draw.normal(200, 2)
    first, second = before.gates(u, states), after.gates(u, states)
    matrix = after.recurrent_weight[rows]
    products = (first.reset * states) @ matrix.T - first.reset * (states @ matrix.T)
    equal = products.abs() < 1e-12
    generic = with_same_weights(*pair()[:2])
    return all_of(
        *parts,
        always((first.candidate - second.candidate).abs()[equal] < 1e-12),
        always((first.candidate - second.candidate).abs()[~equal & (first.candidate.abs() < 0.99)] > 1e-12),
        exactly(equal, (torch.arange(6) < 3).expand(200, 6)),
        at_least((generic[0](x, start)[0] - generic[1](x, start)[0]).abs().max(), 1e-3),
    )


@claim("rnn.gru.param_count")
@lie("the LSTM without U has five matrices", lstm=5)
@lie("the GRU has four matrices", gru=4)
@lie("the matrix U is as wide as the others", wide=1)
def the_gru_has_three_matrices_and_the_lstm_four(draw, gru=3, lstm=4, wide=0):
    """Weights counted in layers of several sizes and in torch's own: a matrix from [z, x] to m units has m(m + n)."""
    counted, expected = [], []
    for inputs, hidden in ((1, 1), (3, 5), (7, 2)):
        shape = hidden * (hidden + inputs)
        layers = (GRU(inputs, hidden, bias=False), GRU(inputs, hidden, bias=False, reset="before"))
        layers += (nn.GRU(inputs, hidden, bias=False), LSTM(inputs, hidden, bias=False))
        layers += (nn.LSTM(inputs, hidden, bias=False), LSTM(inputs, hidden, bias=False, cell_matrix=True))
        counted += [sum(p.numel() for p in layer.parameters()) for layer in layers]
        expected += [gru * shape] * 3 + [lstm * shape] * 2 + [4 * shape + hidden * (hidden + wide * inputs)]
    return exactly(counted, expected)
