"""The GRU: its formula, the two conventions of its update gate, the two places of its reset gate, its size."""

import numpy as np
import torch
from torch import nn

from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie, reaches
from lemmata.recurrent.claims.recall import cued, recall, with_drawn_weights
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.lstm import LSTM

LAG = 30


def written_out(layer, x, state, gate, content, resets):
    """The recursion in numpy, one matrix on [z, x] for each block."""

    def of(block, z, u):
        rows = layer.rows(block)
        weights = torch.cat([layer.recurrent_weight[rows], layer.input_weight[rows], layer.bias[rows, None]], dim=1)
        return weights.detach().numpy() @ np.concatenate([z, u, [1.0]])

    def sigmoid(a):
        return np.exp(-np.logaddexp(0.0, -a))

    states = []
    for sequence, start in zip(x.numpy(), state.numpy(), strict=True):
        z, run = start, []
        for u in sequence:
            update, reset = sigmoid(of("update", z, u)), sigmoid(of("reset", z, u))
            new = {"candidate": np.tanh(of("candidate", reset**resets * z, u)), "reset gate": reset}[content]
            keep = update if gate == "keeps" else 1 - update
            z = keep * z + (1 - keep) * new
            run.append(z)
        states.append(run)
    return torch.tensor(np.array(states))


@claim("rnn.gru")
@lie("the new content is the reset gate", printed="003/1", content="reset gate")
@lie("the same weights with a gate that writes", gate="writes")
@lie("the candidate needs no reset gate", resets=0.0)
@lie("states stay within a half", bound=0.5)
@lie(
    "the update gate may start open to every input, at bias 0",
    regime="every start that leaves enough of a memory after 30 steps is good enough",
    loose="a larger bias keeps more",
    kept=0.0,
)
def the_state_moves_towards_a_candidate(
    draw, gru=GRU, content="candidate", gate="keeps", resets=1.0, bound=1.0, kept=4.0
):
    """The paper's form against numpy in float64, the bound on its states, then a token recalled after 30 steps."""
    layer = with_drawn_weights(gru(3, 4, reset="before"), draw)
    x, start = draw.normal(4, 8, 3), draw.uniform(4, 4, low=-1.0)
    strong = with_drawn_weights(gru(3, 30, reset="before"), draw, spread=3.0)(draw.normal(10, 40, 3))[0]
    same = all_of(
        close(layer(x, start)[0], written_out(layer, x, start, gate, content, resets)),
        close(layer(x)[0], written_out(layer, x, 0 * start, gate, content, resets)),
        at_most(strong.abs(), bound),
        at_least(strong.abs().max(), 0.99 * bound),
    )
    if not same.holds:  # wrong without any training
        return same
    layer = gru(5, 16, reset="before")
    layer.set_bias("update", kept)
    evidence = all_of(same, reaches(recall(layer, LAG, draw.generator, steps=150), 0.99))
    return evidence.showing(gates_over_time(layer, draw))


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


def torchs_gru(layer):
    """torch's GRU with a layer's weights, block by block; its bias of the state is inside the reset product."""
    made = nn.GRU(layer.inputs, layer.hidden, batch_first=True).double()
    order = torch.cat([torch.arange(3 * layer.hidden)[layer.rows(block)] for block in ("reset", "update", "candidate")])
    inside = torch.cat([torch.zeros(2 * layer.hidden).double(), layer.inner_bias])
    weights = layer.input_weight[order], layer.recurrent_weight[order], layer.bias[order], inside
    made.load_state_dict(dict(zip(made.state_dict(), weights, strict=True)))
    return made


@claim("rnn.gru.reset_placement")
@lie("the two placements are equal for every matrix", outside=1.0)
@lie("the two placements are equal for every reset gate", spread=1.0)
@lie("the bias of the state belongs outside of the reset", inner=1.0)
def the_placement_matters_unless_matrix_and_gate_commute(draw, gru=GRU, outside=0.0, spread=0.0, inner=0.0):
    """The second against torch's GRU; diagonal matrices and uniform gates give equal states; otherwise a unit differs
    where the products do."""
    x, start = draw.normal(3, 12, 2), draw.uniform(3, 6, low=-1.0)

    def pair(change=lambda layer: None):
        """Two layers with the same weights after a change, the paper's and torch's."""
        after, before = with_drawn_weights(gru(2, 6, reset="after"), draw), gru(2, 6, reset="before").double()
        after.get_parameter("inner_bias").data *= inner
        change(after)
        before.load_state_dict({name: after.state_dict()[name] for name in before.state_dict()})
        return before, after

    def diagonal(layer):
        matrix = layer.recurrent_weight.data[layer.rows("candidate")]
        layer.recurrent_weight.data[layer.rows("candidate")] = torch.diag(matrix.diagonal()) + outside * matrix

    def uniform(layer):
        rows, bias = layer.rows("reset"), layer.get_parameter("bias").data
        layer.input_weight.data[rows] *= spread
        layer.recurrent_weight.data[rows] *= spread
        bias[rows] = 0.3 + spread * bias[rows]

    def gap(layers):
        return (layers[0](x, start)[0] - layers[1](x, start)[0]).abs().max()

    # Three units are told of themselves alone: there the products agree, at the others not, and so do the candidates.
    half = torch.eye(6).double() + (torch.arange(6)[:, None] > 2)
    before, after = pair(lambda layer: layer.recurrent_weight.data[layer.rows("candidate")].mul_(half))
    after.get_parameter("inner_bias").data.zero_()
    states, u = draw.normal(200, 6), draw.normal(200, 2)
    first, second = before.gates(u, states), after.gates(u, states)
    apart, curved = (first.candidate - second.candidate).abs(), first.candidate.abs() < 0.99
    plain = with_drawn_weights(gru(2, 6, reset="after"), draw)
    theirs = torchs_gru(plain)(x, start[None])[0]
    return all_of(
        *(close(run(x, start)[0], theirs, ulps=1024) for run in (plain, plain.by_steps)),
        close(gap(pair(diagonal)), 0.0, within=1e-14),
        close(gap(pair(uniform)), 0.0, within=1e-14),
        always(apart[:, :3] < 1e-12),
        always((apart[:, 3:] > 1e-12) | ~curved[:, 3:]),
        at_least(gap(pair()), 1e-3),
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
