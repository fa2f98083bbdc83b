"""The LSTM: its formula and its indices against torch's own, what it recalls, and how errors pass its cell."""

import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lemmata.judge import Figure, Line, all_of, claim, close, exactly, lie, reaches
from lemmata.recurrent.claims.recall import cued, recall, with_drawn_weights
from lemmata.recurrent.lstm import LSTM

LAG = 60


def matches_torch(draw, lstm, matrix, shift, order):
    """All ways to run the layer against torch.nn.LSTM, which holds the blocks in `order`; states, ends, lengths."""
    layer = with_drawn_weights(lstm(3, 4), draw)
    extra = lstm(3, 4, cell_matrix=True).double()
    extra.load_state_dict(layer.state_dict() | {"cell_weight": torch.eye(4) + matrix * draw.normal(4, 4)})
    blocks = torch.cat([torch.arange(4) + 4 * block for block in order])
    other = nn.LSTM(3, 4, batch_first=True).double()
    split = draw.normal(16)  # of the two biases only the sum matters
    for name, weight in zip(
        ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"),
        (layer.input_weight, layer.recurrent_weight, layer.bias - split, split),
        strict=True,
    ):
        setattr(other, name, nn.Parameter(weight[blocks].detach()))
    x, start = draw.normal(5, 9, 3), (draw.normal(5, 4), draw.normal(5, 4))
    lengths = torch.tensor([9, 1, 4, 0, 7])
    whole, ends = other(x, tuple(part[None] for part in start))
    some = lengths > 0
    packed = pack_padded_sequence(x[some], lengths[some], batch_first=True, enforce_sorted=False)
    padded, last = other(packed, tuple(part[None, some] for part in start))
    cut = torch.zeros_like(whole)
    cut[some] = pad_packed_sequence(padded, batch_first=True, total_length=9)[0]
    finals = [part.clone() for part in start]
    for final, part in zip(finals, last, strict=True):
        final[some] = part[0]
    parts = []
    for one in (layer, extra, lstm.from_torch(other), lstm.from_torch(layer.to_torch())):
        for run in (one, one.by_steps, one.hoisted):
            outputs, state = run(x, start)
            parts.append(close(outputs[:, shift:], whole[:, : 9 - shift]))
            parts += [close(mine, its[0]) for mine, its in zip(state, ends, strict=True)]
            outputs, state = run(x, start, lengths)
            parts.append(close(outputs, cut))
            parts += [close(mine, its) for mine, its in zip(state, finals, strict=True)]
        parts.append(exactly([one(x[:0])[0].shape, one(x[:, :0])[0].shape], [(0, 9, 4), (5, 0, 4)]))
    parts.append(close(lstm.from_torch(other)(x)[0], other(x)[0]))
    both = nn.LSTM(3, 4, bias=False, bidirectional=True, batch_first=True).double()
    back = lstm.from_torch(both, reverse=True)
    parts.append(close(back(x.flip(1))[0].flip(1), both(x)[0][..., 4:]))
    parts.append(close(back.to_torch()(x)[0], back.by_steps(x)[0]))
    return all_of(*parts)


def matches_torch_cell(draw, lstm):
    """With a matrix U: torch's cell one step at a time, whose output gate is its output without its tanh."""
    layer = with_drawn_weights(lstm(3, 4, cell_matrix=True), draw)
    cell = nn.LSTMCell(3, 4).double()
    cell.load_state_dict(
        {
            "weight_ih": layer.input_weight,
            "weight_hh": layer.recurrent_weight,
            "bias_ih": layer.bias,
            "bias_hh": 0 * layer.bias,
        }
    )
    x = draw.normal(2, 6, 3)
    hidden, memory, shown = torch.zeros(2, 4).double(), torch.zeros(2, 4).double(), []
    for time in range(6):
        plain, memory = cell(x[:, time], (hidden, memory))
        hidden = plain / torch.tanh(memory) * torch.tanh(memory @ layer.cell_weight.T)
        shown.append(hidden)
    untrained = lstm(3, 4, cell_matrix=True).cell_weight
    return all_of(
        close(layer(x)[0], torch.stack(shown, dim=1), ulps=4096),  # the division loses digits near zero
        close(layer(x)[1][1], memory, ulps=4096),
        exactly(untrained, torch.eye(4)),
    )


def keeps_input_out(draw, lstm, block):
    """With the block that lets input in closed, the cell is what the forget gate leaves of it."""
    layer = with_drawn_weights(lstm(3, 4), draw)
    rows = layer.rows(block)
    layer.input_weight.data[rows], layer.recurrent_weight.data[rows], layer.bias.data[rows] = 0.0, 0.0, -1000.0
    x, state = draw.normal(5, 3), (draw.normal(5, 4), draw.normal(5, 4))
    _, (_, cell) = layer.step(x, state)
    return close(cell, layer.gates(x, state[0]).forget * state[1])


@claim("rnn.lstm")
@lie("tanh(V x̃) is the input gate", writes="candidate")
@lie("with a matrix U inside the tanh it is torch's LSTM all the same", matrix=0.3)
@lie("the output of step t is the one that torch gives at step t - 1", shift=1)
@lie("torch holds the forget gate first", order=(1, 0, 2, 3))
@lie(
    "the forget gate may start half closed, at bias 0",
    regime="every start that leaves most of a memory after 60 steps is good enough",
    loose="a gate more open than that keeps more",
    forget_bias=0.0,
)
def the_cell_is_kept_written_and_shown_by_gates(
    draw, lstm=LSTM, writes="input", matrix=0.0, shift=0, order=(0, 1, 2, 3), forget_bias=5.0
):
    """Against torch's LSTM in float64 (also with lengths and with U), then a token recalled after 60 steps."""
    same = all_of(
        matches_torch(draw, lstm, matrix, shift, order),
        matches_torch_cell(draw, lstm),
        keeps_input_out(draw, lstm, writes),
    )
    if not same.holds:  # wrong without any training
        return same
    layer = lstm(5, 16, forget_bias=forget_bias)
    layer.set_bias("input", -5.0)  # what is seldom forgotten must be seldom written
    return all_of(same, reaches(recall(layer, LAG, draw.generator), 0.99)).showing(gates_over_time(layer, draw))


def gates_over_time(layer, draw):
    """The gates of the trained layer along one sequence, averaged over the units."""
    x, _ = cued(1, LAG, draw.generator)
    with torch.no_grad():
        hidden = torch.cat([torch.zeros(1, 1, layer.hidden), layer(x)[0][:, :-1]], dim=1)
        gates = layer.gates(x, hidden)
    times = list(range(LAG + 1))
    marks = [Line(times, getattr(gates, name)[0].mean(-1), name) for name in ("forget", "input", "output")]
    return Figure("Gates of an LSTM that recalls its first input", "step", "mean over the units", marks)


@claim("rnn.lstm.constant_error")
@lie("the factor is the input gate", block="input")
@lie("the product is diagonal also where the hidden state moves the gates", feedback=1.0)
@lie(
    "at forget bias 1 the error is carried unchanged",
    regime="from a bias of about 35 on the gate is one to the last digits",
    loose="a larger bias brings the gate nearer to one",
    bias=1.0,
)
@lie("the error shrinks with the root of the number of steps", power=0.5)
@lie("an untrained forget gate is half open", start=0.0)
def errors_pass_the_cell_by_the_forget_gate(
    draw, lstm=LSTM, block="forget", feedback=0.0, bias=40.0, power=1.0, start=1.0
):
    """Jacobians of the cell by automatic differentiation: one step, many steps, and with a constant forget gate."""
    layer = with_drawn_weights(lstm(3, 4), draw)
    x, hidden, cell = draw.normal(6, 3), draw.normal(4), draw.normal(4)

    def after(cell, steps):
        return layer(x[None, :steps], (hidden[None], cell[None]))[1][1][0]

    def gate(bias):
        return 1 / (1 + math.exp(-bias))

    def slope(steps):
        return torch.autograd.functional.jacobian(lambda cell: after(cell, steps), cell)

    rows = layer.rows(block)
    total = x @ layer.input_weight[rows].T + layer.get_parameter("bias")[rows]
    parts = [close(slope(1), torch.diag(torch.sigmoid(total[0] + layer.recurrent_weight[rows] @ hidden)))]
    layer.recurrent_weight.data *= feedback
    parts.append(close(slope(6), torch.diag(torch.sigmoid(total).prod(dim=0))))
    for value, steps, carried in (
        (bias, 6, 1.0),
        (2.0, 6, gate(2.0) ** (6 * power)),
        (-1.0, 3, gate(-1.0) ** (3 * power)),
    ):
        for weight in (layer.input_weight, layer.recurrent_weight):
            weight.data[layer.rows("forget")] = 0.0
        layer.set_bias("forget", value)
        parts.append(close(slope(steps), carried * torch.eye(4, dtype=torch.float64)))
    untrained = lstm(3, 4).gates(torch.zeros(1, 3), torch.zeros(1, 4)).forget
    return all_of(*parts, close(untrained, gate(start)))
