"""Gradients through time: when they must vanish, when they may grow, and when they keep their length."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalIterable=false, reportOptionalMemberAccess=false

import math

import sympy
import torch

from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.judge import Figure, Line, all_of, always, at_most, claim, close, exactly, lie, symbolic
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gradient_flow import (
    growth_rates,
    measure_gradient_flow,
    spectral_radius,
    with_spectral_norm,
)
from lemmata.recurrent.jacobians_through_time import (
    log_norms,
    orthogonality_defect,
)


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


def against_lag(flows, rate):
    """Measured norms and their bounds, on a logarithmic axis."""
    marks = []
    for share, flow in flows:
        marks.append(Line(flow.lags, flow.norms[0], f"measured, α σ₁ = {share:g}"))
        marks.append(Line(flow.lags, (rate * flow.log_bounds).exp(), f"bound, α σ₁ = {share:g}"))
    return Figure("Gradients against the lag, tanh", "lag", "norm of the Jacobian", marks, y_log=True)


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
    """Measured norms of products of Jacobians against (α σ₁)^k, for many networks, and where it is sharp."""
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
        for share, steps, left in ((0.6, 40, 1e-6), (0.9, 60, 2e-3), (2.0, 20, None)):  # above 1 nothing need vanish
            layer = network(with_spectral_norm(draw.normal(size, size), share / alpha), name)
            flow = measure_gradient_flow(layer, draw.normal(2, steps, size), draw.normal(2, size))
            shown += [(share, flow)] if name == "tanh" and size > 1 else []
            parts.append(at_most(flow.log_norms, rate * flow.lags * math.log(share) + 1e-9))
            parts += [at_most(flow.norms[:, -1], left)] if left else []
    grid, z = torch.linspace(-30, 30, 6001, dtype=torch.float64), sympy.symbols("z", real=True)
    sigmoid = 1 / (1 + sympy.exp(-z))
    return all_of(
        *parts,
        always(compare(ACTIVATION_TABLE["sigmoid"].derivative(grid), 0.25)),
        symbolic(sympy.diff(sigmoid, z), sympy.Rational(1, 4) - (sigmoid - sympy.Rational(1, 2)) ** 2),
    ).showing(against_lag(shown, rate))


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
    """Powers of random and sheared matrices; networks at the bound; nilpotent and saturated ones above it."""
    matrices = [draw.normal(8, 8) for _ in range(3)]
    reached, wanted = ([float(found(u)) for u in matrices] for found in (lambda u: growth_rates(u, 200)[-1], measure))
    radii, shears = torch.tensor([[0.5, 0.9, 1.1, 1.2, 0.95], [10.0, 3.0, 0.0, 5.0, 0.1]]).double()
    sheared = radii[:, None, None] * torch.eye(2) + torch.nn.functional.pad(shears[:, None, None], (1, 0, 0, 1))
    flows = []
    for name, alpha in (("tanh", 1.0), ("sigmoid", 0.25), ("identity", 1.0)):
        u = largest / alpha * draw.orthogonal(4)
        flows.append(measure_gradient_flow(network(u, name), draw.normal(3, 20, 4)))
    linear = measure_gradient_flow(network(matrices[0], "identity"), torch.zeros(1, 9, 8).double())
    powers = [torch.linalg.matrix_norm(torch.linalg.matrix_power(matrices[0], k), 2).log() for k in range(10)]
    saturated = measure_gradient_flow(network(10 * draw.orthogonal(4)), 40 * draw.signs(1, 20, 4))
    nilpotent = torch.tensor([[0.0, 10.0], [0.0, 0.0]]).double()
    return all_of(
        close(torch.tensor(reached) / torch.tensor(wanted), torch.ones(3), within=0.05),
        exactly(log_norms(sheared[:, None].expand(5, 150, 2, 2))[:, -1] > 0, criterion(sheared) > 1),
        close(linear.log_norms[0], torch.stack(powers), ulps=1024),
        at_most(torch.stack([flow.log_norms for flow in flows]), 1e-9),
        at_most(saturated.norms[0, -1], 1e-9, detail="σ₁ = 10, saturated"),
        exactly(log_norms(nilpotent.expand(3, 2, 2))[2:], torch.full((2,), -torch.inf).double()),
    )


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
        close(orthogonality_defect(flow.jacobians), torch.zeros(2, 200).double(), within=1e-13),
        exactly([log_norms(nilpotent[None])[-1], log_norms(nilpotent.expand(2, 2, 2))[-1]], [0.0, -torch.inf]),
        # Steps of norm 2 and 1/2 in turn neither vanish nor explode, although no step has norm one.
        close(log_norms(turns).exp(), torch.tensor([1.0] + [2.0, 1.0] * 50).double()),
        at_most(torch.stack([flow.log_norms for flow in contracting]), 1e-9, detail="norm one, no explosion"),
    )
