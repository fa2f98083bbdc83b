"""Gradients through time: when they must vanish, when they may grow, and when they keep their length."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalIterable=false, reportOptionalMemberAccess=false

import math

import sympy
import torch
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie, symbolic
from lemmata.recurrent.cells import CELLS
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gradient_flow import (
    growth_rates,
    log_norms,
    measure_gradient_flow,
    orthogonality_defect,
    spectral_radius,
    step_bound,
    with_spectral_norm,
    with_spectral_radius,
)
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.lru import LRU
from lemmata.recurrent.lstm import LSTM
from lemmata.recurrent.sequence_reader import SequenceReader
from lemmata.recurrent.stacked import Stacked
from lemmata.recurrent.task_gradients import gradient_reach


def network(recurrent, activation="tanh", drive=None):
    """Elman's network with a given recurrent matrix, driven by its inputs one to one, or by a constant alone."""
    size = len(recurrent)
    layer = Elman(size, size, activation).double()
    with torch.no_grad():
        layer.recurrent_weight.copy_(recurrent)
        layer.input_weight.copy_(torch.eye(size))
        layer.bias.copy_(torch.zeros(size) if drive is None else drive)
    return layer


def at_the_steepest_point(recurrent):
    """A sigmoid network that rests where every slope is 1/4: at the state 1/2, its inputs cancelled by the bias."""
    half = torch.full((len(recurrent),), 0.5, dtype=torch.float64)
    return network(recurrent, "sigmoid", -recurrent @ half), half[None]


def against_lag(flows):
    """Measured norms and their bounds, on a logarithmic axis."""
    marks = []
    for share, flow in flows:
        marks.append(Line(flow.lags, flow.norms[0], f"measured, α σ₁ = {share:g}"))
        marks.append(Line(flow.lags, flow.log_bounds.exp(), f"bound, α σ₁ = {share:g}"))
    return Figure("Gradients against the lag, tanh", "lag", "norm of the Jacobian", marks, y_log=True)


def last_output(block, x, state):
    """What a residual block makes of the state after a step."""
    layer = block.layer
    if isinstance(layer, LRU):
        inside = layer.readout((state @ layer.readout_matrix.mT).real, x)
    else:
        inside = state[0] if isinstance(state, tuple) else state
    u = x + block.project(inside)
    return u + block.network(u)


def reach(reader, x, y):
    """How strongly the loss depends on states of the lowest layer, by starting anew from each: the median sequence."""
    block, below = reader.layers[0], reader.embed(x).detach()
    norms = []
    for t in range(below.shape[1], -1, -1):
        early, state = block(below[:, :t])
        parts = [part.detach().requires_grad_() for part in (state if isinstance(state, tuple) else (state,))]
        state = tuple(parts) if isinstance(state, tuple) else parts[0]
        own = [last_output(block, below[:, t - 1], state)[:, None]] if t else []
        top = torch.cat([early[:, : max(t - 1, 0)], *own, block(below[:, t:], state)[0]], 1)
        for above in reader.layers[1:]:
            top = above(top)[0]
        told = reader.read(top[:, -1])
        loss = told[:, 0] - y if y.is_floating_point() else -told.log_softmax(1).gather(1, y[:, None])
        found = torch.autograd.grad((loss**2 if y.is_floating_point() else loss).sum(), parts, materialize_grads=True)
        if len(parts) == 2 and t:  # of an LSTM: its output is o tanh(c), so the cell leads to that, too
            (hidden, cell), (by_hidden, by_cell) = parts, found
            found = by_hidden, by_cell + by_hidden * hidden / cell.tanh() * (1 - cell.tanh() ** 2)
        norms.append(torch.cat(found, 1).abs().square().sum(1).sqrt())
    return (torch.stack(norms) / norms[0]).median(1).values


def limits(layer, x):
    """The most that a step leaves of a gradient, at each step, where the layer tells: by singular values or runs."""
    if isinstance(layer, Elman):
        return torch.linalg.svdvals(layer.recurrent_weight)[0].expand(x.shape[1])
    if isinstance(layer, LSTM | GRU):
        return None
    start = layer.initial_state(len(x))
    kept = [layer.step(now, start + 1)[1] - layer.step(now, start)[1] for now in x.unbind(1)]
    return torch.stack([each.abs().amax() for each in kept])


def tasks(draw):
    """Gradients of small tasks, as the figure of a run shows them: against new starts, and below the bounds."""
    parts = []
    for number, cell in enumerate([*CELLS, "lru"]):
        vocab_size, depth = (None, 5)[number % 2], 1 + number // len(CELLS)
        reader = SequenceReader(2, 3 if vocab_size else 1, cell, width=4, hidden=3, depth=depth, vocab_size=vocab_size)
        x = draw.integers(0, 5, 3, 6) if vocab_size else draw.normal(3, 6, 2).float()
        y = draw.integers(0, 3, 3) if vocab_size else draw.normal(3)
        figure = gradient_reach(reader, Examples(x=x, y=y))
        reader, x = reader.double(), x if vocab_size else x.double()
        lines = [torch.tensor(mark.y, dtype=torch.float64) for mark in figure.marks]
        parts += [
            close(lines[0], reach(reader, x, y), ulps=1024),
            always([mark.x == list(range(7)) for mark in figure.marks]),
            exactly([figure.y_log, bool(figure.note)], [True, cell in ("lstm", "gru") or depth > 1]),
        ]
        least = limits(reader.layers[0].layer, functional.layer_norm(reader.embed(x), (4,)))
        parts.append(exactly(len(lines), 1 if least is None else 2))
        if least is not None:
            product = torch.cat([least.new_ones(1), least.flip(0).cumprod(0)])
            parts.append(close(lines[1], product, ulps=1024))
            if depth == 1:  # else gradients pass above the lowest layer, too
                parts.append(at_most(lines[0], lines[1]))
    return parts + shown_of_a_long_task(draw)


def shown_of_a_long_task(draw):
    """Of many lags about two hundred are shown, of very large and very small bounds nothing."""
    parts = []
    for norm, steps, every, within in ((25.0, 4, 1, 3), (1e-3, 7, 1, 6), (0.95, 399, 2, 200)):
        reader = SequenceReader(2, 1, "elman", width=2, hidden=2)
        lowest = reader.layers[0].layer.recurrent_weight
        lowest.data = with_spectral_norm(lowest.data, norm)
        figure = gradient_reach(reader, Examples(x=draw.normal(1, steps, 2).float(), y=draw.normal(1)))
        bound = figure.marks[1]
        parts += [
            exactly(bound.x, list(range(0, steps + 1, every))),
            exactly([each is not None for each in bound.y], [index < within for index in range(len(bound.x))]),
        ]
    return parts


@claim("rnn.gradient.vanishing")
@lie("gradients vanish where the largest singular value is at least 1/α", printed="003/1", where=torch.ge)
@lie(
    "with σ_max(U) > 1 gradients explode, with σ_max(U) < 1 they vanish, whatever the activation",
    printed="002/2",
    slope=0.0,
)
@lie("gradients vanish up to a tenth above 1/α", threshold=1.1)
@lie("the slope of the sigmoid stays below 1/4 everywhere", compare=torch.lt)
@lie("every step counts twice in the bound", rate=2.0)
def gradients_vanish_where_no_step_stretches(
    draw, where=torch.lt, slope=1.0, threshold=1.0, compare=torch.le, rate=1.0
):
    """Measured norms of products of Jacobians against (α σ₁)^k, for many networks, where it is sharp, and in tasks."""
    # Where all slopes are steepest and all directions are stretched alike, the bound is attained at every lag.
    turn, norms = draw.orthogonal(4), torch.tensor([2.0, 3.95, 4.05]).double()
    steepest = [at_the_steepest_point(norm * turn) for norm in norms]
    flows = [measure_gradient_flow(layer, torch.zeros(1, 250, 4).double(), half) for layer, half in steepest]
    stretch = 0.25**slope * norms  # α σ₁
    gone = torch.stack([flow.norms[0, -1] < 0.1 for flow in flows])
    parts = [
        always(gone | ~where(stretch, threshold)),
        always(~gone | (stretch <= threshold)),
        *(
            close(flow.log_norms[0], rate * flow.lags * each.log(), ulps=1024)
            for flow, each in zip(flows, stretch, strict=True)
        ),
    ]
    shown = []
    for name, alpha, size in (("tanh", 1.0, 16), ("sigmoid", 0.25, 8), ("identity", 1.0, 3), ("tanh", 1.0, 1)):
        for share, steps, left in ((0.6, 40, 1e-6), (0.9, 60, 2e-3), (2.0, 20, math.inf)):
            layer = network(with_spectral_norm(draw.normal(size, size), share / alpha), name)
            flow = measure_gradient_flow(layer, draw.normal(2, steps, size), draw.normal(2, size))
            shown += [(share, flow)] if name == "tanh" and size > 1 else []
            parts += [
                at_most(flow.log_norms, rate * flow.lags * math.log(share) + 1e-9),
                at_most(flow.norms[:, -1], left),
                close(flow.log_bounds, flow.lags * math.log(share), ulps=256),
                exactly(flow.vanishes, share < 1),
                close(flow.step_norms, torch.linalg.svdvals(slopes_times_matrix(layer, flow))[..., 0], ulps=256),
            ]
    grid = torch.linspace(-30, 30, 6001, dtype=torch.float64)
    parts.append(always(compare(ACTIVATION_TABLE["sigmoid"].derivative(grid), 0.25)))
    if not all_of(*parts).holds:
        return all_of(*parts)
    parts += tasks(draw)
    dead = measure_gradient_flow(network(torch.zeros(2, 2), "relu"), torch.zeros(1, 3, 2).double())
    z = sympy.symbols("z", real=True)
    sigmoid = 1 / (1 + sympy.exp(-z))
    deep = Stacked(Elman(2, 3), Elman(3, 2)).double()
    both = measure_gradient_flow(deep, draw.normal(1, 4, 2))
    return all_of(
        *parts,
        symbolic(sympy.diff(sigmoid, z), sympy.Rational(1, 4) - (sigmoid - sympy.Rational(1, 2)) ** 2),
        exactly(dead.log_norms[0], torch.tensor([0.0, -torch.inf, -torch.inf, -torch.inf]).double()),
        exactly(dead.log_bounds, dead.log_norms[0]),
        exactly([both.bound, both.log_bounds, both.vanishes], [None, None, None]),
        # In a stack the lower state depends on the lower one before it alone, the upper on both.
        exactly(both.jacobians[0, :, :3, 3:], torch.zeros(4, 3, 2).double()),
        at_least(both.jacobians[0, :, 3:, :].abs(), 1e-12),
    ).showing(against_lag(shown))


def slopes_times_matrix(layer, flow):
    """The step Jacobians have the rows of U times slopes, whatever those are: the slopes are read off and put back."""
    u = layer.recurrent_weight.detach()
    slopes = (flow.jacobians * u).sum(-1) / u.square().sum(-1)
    return slopes[..., None] * u


def largest_singular_value(matrix):
    return torch.linalg.matrix_norm(matrix, 2)


@claim("rnn.gradient.exploding")
@lie("a large σ₁ makes gradients explode", criterion=largest_singular_value)
@lie(
    "a network with α σ₁ = 1.1 cannot let gradients grow",
    loose="shorter steps rule growth out all the more",
    largest=1.1,
)
@lie("the powers grow at the rate of the largest singular value", measure=largest_singular_value)
def growth_needs_a_stretching_step_but_is_ruled_by_the_radius(
    draw, criterion=spectral_radius, largest=1.0, measure=spectral_radius
):
    """Powers of random, nilpotent and sheared matrices; networks at and below the bound; saturated ones above it."""
    parts = []
    for _ in range(3):
        u = draw.normal(8, 8)
        rates = growth_rates(u, 200)
        direct = torch.linalg.matrix_norm(torch.linalg.matrix_power(u, 7), 2) ** (1 / 7)
        linear = measure_gradient_flow(network(u, "identity"), torch.zeros(1, 9, 8).double())
        parts += [
            close(rates[-1], measure(u), within=0.05 * float(measure(u))),
            close(rates[6], direct, ulps=1024),
            close(linear.log_norms[0, 1:] / torch.arange(1, 10), rates[:9].log(), ulps=1024),
            close(spectral_radius(with_spectral_radius(u, 1.3)), 1.3, ulps=1024),
            at_most(rates[-1], torch.linalg.matrix_norm(u, 2)),
        ]
    radii, shears = torch.tensor([[0.5, 0.9, 1.1, 1.2, 0.95], [10.0, 3.0, 0.0, 5.0, 0.1]]).double()
    sheared = radii[:, None, None] * torch.eye(2) + torch.nn.functional.pad(shears[:, None, None], (1, 0, 0, 1))
    parts.append(exactly(log_norms(sheared[:, None].expand(5, 150, 2, 2))[:, -1] > 0, criterion(sheared) > 1))
    for name in ("tanh", "sigmoid", "identity"):
        u = largest / ACTIVATION_TABLE[name].lipschitz * draw.orthogonal(4)
        flow = measure_gradient_flow(network(u, name), draw.normal(3, 20, 4))
        parts += [at_most(flow.log_norms, 1e-9), close(step_bound(u, name), largest)]
    saturated = measure_gradient_flow(network(10 * draw.orthogonal(4)), 40 * draw.signs(1, 20, 4))
    nilpotent = torch.tensor([[0.0, 10.0], [0.0, 0.0]]).double()
    shrinking = torch.diag(torch.tensor([1e-4, 1e-3], dtype=torch.float64))
    return all_of(
        *parts,
        at_most(saturated.norms[0, -1], 1e-9, detail="σ₁ = 10, saturated"),
        exactly(log_norms(nilpotent.expand(3, 2, 2))[2:], torch.full((2,), -torch.inf).double()),
        close(log_norms(nilpotent.expand(3, 2, 2))[1], math.log(10)),
        # 10^-360 is no floating-point number, and yet it has a logarithm.
        close(log_norms(shrinking.expand(120, 2, 2)), math.log(1e-3) * torch.arange(121).double(), ulps=1024),
        close(log_norms(0.5j * torch.eye(2).expand(9, 2, 2)), math.log(0.5) * torch.arange(10).double()),
        exactly(spectral_radius(nilpotent), 0.0),
        close(growth_rates(nilpotent, 2), [10.0, 0.0]),
    ).showing(_growth(draw.normal(8, 8)))


def _growth(u):
    rates, steps = growth_rates(u, 60), torch.arange(1, 61)
    radius, norm = float(spectral_radius(u)), float(torch.linalg.matrix_norm(u, 2))
    marks = [
        Line(steps, rates, "growth per step"), Line([1, 60], [radius] * 2, "spectral radius"),
        Line([1, 60], [norm] * 2, "largest singular value"),
    ]  # fmt: skip
    return Figure("The k-th root of the norm of the k-th power", "k", "growth per step", marks)


@claim("rnn.gradient.stability")
@lie("step Jacobians of norm one keep the norm of their product", smallest=0.5)
@lie("the slope of tanh leaves lengths alone", activation="tanh")
@lie("steps that stretch by 2 and shrink by 0.9 in turn keep lengths in bounds", shrink=0.9)
def lengths_are_kept_by_orthogonal_steps_alone(draw, smallest=1.0, activation="identity", shrink=0.5):
    """Linear networks with orthogonal and with other matrices of norm one, also with tanh; steps that alternate."""
    left, right = draw.orthogonal(5), draw.orthogonal(5)
    stretch = torch.linspace(smallest, 1.0, 5).double()
    layer = network((left * stretch) @ right, activation)
    flow = measure_gradient_flow(layer, draw.normal(2, 200, 5))
    start, gradient = torch.zeros(2, 5).double().requires_grad_(), draw.unit(2, 5)
    (back,) = torch.autograd.grad((gradient * layer(draw.normal(2, 200, 5), start)[1]).sum(), start)
    turns = torch.stack([shrink * torch.eye(3), 2 * torch.eye(3)]).repeat(50, 1, 1).double()
    nilpotent = torch.tensor([[0.0, 1.0], [0.0, 0.0]]).double()
    unit = with_spectral_norm(draw.normal(6, 6), 1.0)
    contracting = [measure_gradient_flow(network(unit, name), draw.normal(2, 40, 6)) for name in ("identity", "tanh")]
    return all_of(
        close(flow.norms, torch.ones(2, 201).double(), within=1e-10),
        close(back.norm(dim=1), torch.ones(2).double(), within=1e-10),
        close(flow.step_norms, torch.ones(2, 200).double()),
        close(orthogonality_defect(flow.jacobians), torch.zeros(2, 200).double(), within=1e-13),
        close(orthogonality_defect(draw.orthogonal(4) * 0.5), 0.75),
        exactly([log_norms(nilpotent[None])[-1], log_norms(nilpotent.expand(2, 2, 2))[-1]], [0.0, -torch.inf]),
        close(torch.linalg.matrix_norm(nilpotent, 2), 1.0),
        # Steps of norm 2 and 1/2 in turn neither vanish nor explode, although no step has norm one.
        close(log_norms(turns).exp(), torch.tensor([1.0] + [2.0, 1.0] * 50).double()),
        *(at_most(flow.log_norms, 1e-9, detail="norm one, no explosion") for flow in contracting),
    )
