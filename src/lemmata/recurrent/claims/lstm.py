"""The LSTM: its formula and its indices against torch's own, what it recalls, and how errors pass its cell."""

import math

import torch
from torch import nn

from lemmata.judge import Figure, Line, all_of, claim, close, lie, reaches
from lemmata.recurrent.claims.recall import cued, recall, with_drawn_weights
from lemmata.recurrent.lstm import LSTM

LAG = 60


def against_torch(draw, lstm, matrix):
    """Outputs and last cells of a layer without U and of one with U = I, unless `matrix` says otherwise, both at once
    and step by step, and those of torch's LSTM."""
    layer, other = with_drawn_weights(lstm(3, 4), draw), nn.LSTM(3, 4, batch_first=True).double()
    shown = lstm(3, 4, cell_matrix=True).double()
    shown.load_state_dict(layer.state_dict() | {"cell_weight": torch.eye(4).double() + matrix * draw.normal(4, 4)})
    split = draw.normal(16)  # of the two biases only the sum matters
    weights = layer.input_weight, layer.recurrent_weight, layer.bias - split, split
    other.load_state_dict(dict(zip(other.state_dict(), weights, strict=True)))
    x, start = draw.normal(5, 9, 3), (draw.normal(5, 4), draw.normal(5, 4))
    runs = [run(x, start) for each in (layer, shown) for run in (each, each.by_steps)]
    outputs, cells = torch.stack([states for states, _ in runs]), torch.stack([cell for _, (_, cell) in runs])
    theirs, (_, their_cell) = other(x, tuple(part[None] for part in start))
    return (outputs, cells), (theirs.expand_as(outputs), their_cell.expand_as(cells))


def shown_through(draw, lstm):
    """Outputs of a layer with a matrix U, and torch's cell with U put between its memory and its tanh."""
    layer, cell = with_drawn_weights(lstm(3, 4, cell_matrix=True), draw), nn.LSTMCell(3, 4).double()
    weights = layer.input_weight, layer.recurrent_weight, layer.bias, 0 * layer.bias
    cell.load_state_dict(dict(zip(cell.state_dict(), weights, strict=True)))
    x, shown = draw.normal(2, 6, 3), []
    hidden, memory = torch.zeros(2, 4).double(), torch.zeros(2, 4).double()
    for now in x.unbind(1):
        plain, memory = cell(now, (hidden, memory))
        hidden = plain / torch.tanh(memory) * torch.tanh(memory @ layer.cell_weight.T)
        shown.append(hidden)
    return layer(x)[0], torch.stack(shown, dim=1)


def with_input_kept_out(draw, lstm, block):
    """The cell after a step in which the block that lets input in is closed, and what the forget gate leaves of it."""
    layer = with_drawn_weights(lstm(3, 4), draw)
    rows = layer.rows(block)
    layer.input_weight.data[rows], layer.recurrent_weight.data[rows], layer.bias.data[rows] = 0.0, 0.0, -1000.0
    x, state = draw.normal(5, 3), (draw.normal(5, 4), draw.normal(5, 4))
    _, (_, cell) = layer.step(x, state)
    return cell, layer.gates(x, state[0]).forget * state[1]


@claim("rnn.lstm")
@lie("tanh(V x̃) is the input gate", writes="candidate")
@lie("with a matrix U inside the tanh it is torch's LSTM all the same", matrix=0.3)
@lie("the output of step t is the one that torch gives at step t - 1", shift=1)
@lie(
    "the forget gate may start half closed, at bias 0",
    regime="every start that leaves most of a memory after 60 steps is good enough",
    loose="a gate more open than that keeps more",
    forget_bias=0.0,
)
def the_cell_is_kept_written_and_shown_by_gates(draw, lstm=LSTM, writes="input", matrix=0.0, shift=0, forget_bias=5.0):
    """Against torch's LSTM in float64, and with U against its cell; then a token recalled after 60 steps."""
    (outputs, cell), (theirs, their_cell) = against_torch(draw, lstm, matrix)
    ours, shown = shown_through(draw, lstm)
    kept, left = with_input_kept_out(draw, lstm, writes)
    same = all_of(
        close(outputs[:, :, shift:], theirs[:, :, : 9 - shift]),
        close(cell, their_cell),
        close(ours, shown, ulps=4096),  # the division loses digits near zero
        close(kept, left),
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
def errors_pass_the_cell_by_the_forget_gate(draw, lstm=LSTM, block="forget", feedback=0.0, bias=40.0, power=1.0):
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
    return all_of(*parts)
