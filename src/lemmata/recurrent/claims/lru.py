"""The linear recurrent unit: its eigenvalues, how they start, its scan, its memory, and what it can express."""

import math
from functools import partial

import torch
from torch.nn import functional

from lemmata.foundations.activations import activation as activation_named
from lemmata.judge import (
    ALPHA,
    Figure,
    Line,
    Points,
    all_of,
    always,
    at_most,
    claim,
    close,
    law_is,
    lie,
    probability_is,
    reaches,
)
from lemmata.recurrent.claims.recall import learn, seeded
from lemmata.recurrent.eigenvalue_ring import eigenvalues_on_ring, log_rate, polar, ring_parameters
from lemmata.recurrent.linear_stability import is_stable
from lemmata.recurrent.linear_state_space import evolve
from lemmata.recurrent.lru import LRU


def multiplied(cosine, sine):
    return 1j * cosine * sine


@claim("rnn.lru.polar")
@lie("z = r (cos φ · sin φ · i)", joined=multiplied)
@lie("the parameter of a modulus is -log(-log r)", sign=-1.0)
@lie("half a turn leads back", turn=math.pi)
@lie("the power of an eigenvalue adds the exponent to ν", shift=float)
def modulus_and_phase_give_every_number_inside_the_circle(
    draw, joined=torch.complex, sign=1.0, turn=2 * math.pi, shift=math.log
):
    """Euler's identity, modulus and parameter by their formulas, whole turns and powers; strictly inside for every ν,
    also after rounding."""
    nu, phase = torch.linspace(-30, 3, 500).double(), draw.uniform(500, low=-7.0, high=7.0)
    z = polar(nu, phase)
    chosen, k = draw.uniform(200, low=0.01, high=0.99), 5
    extreme = torch.tensor([-1e4, -200.0, -37.0, -17.0, 4.5, 6.6, 90.0, 1e4])
    kinds = (torch.float32, torch.float64)
    limits = torch.cat([polar(extreme.to(kind), torch.zeros(8, dtype=kind)).real.double() for kind in kinds])
    moduli = torch.cat([z.abs(), limits])
    return all_of(
        close(z, z.abs() * joined(torch.cos(phase), torch.sin(phase))),
        always((moduli > 0) & (moduli < 1)),
        close(z.abs(), torch.exp(-torch.exp(nu))),
        close(log_rate(chosen), sign * torch.log(-torch.log(chosen)), within=1e-12),
        close(polar(log_rate(chosen), torch.zeros(200).double()).real, chosen, within=1e-12),
        close(log_rate(z.abs()[50:450]), nu[50:450], within=1e-4),  # 1 - r keeps four digits at the far end
        close(polar(nu, phase + turn), z),
        close(polar(nu[:400] + shift(k), k * phase[:400]), z[:400] ** k, ulps=256),
    )


@claim("rnn.lru.init")
@lie("this is equivalent to Glorot initialisation: moduli follow the law of such a matrix", printed="000/1", power=2.0)
@lie("the interval may reach one", raises=ValueError, r_max=1.0)
@lie("the interval may reach zero", raises=ValueError, r_min=0.0)
@lie("phases fill half a turn", turn=math.pi)
def moduli_are_uniform_by_radius_or_by_area(draw, power=1.0, r_max=0.99, r_min=0.01, turn=2 * math.pi):
    """The laws of modulus and phase, by radius and by area; and the moduli of a random matrix, which go by area."""
    ring = partial(eigenvalues_on_ring, r_min=r_min, r_max=r_max, generator=draw.generator)
    law = partial(law_is, effect=0.015, alpha=ALPHA / 5)
    radius = law(
        lambda n: ring(n).abs(),
        lambda r: ((r**power - r_min**power) / (r_max**power - r_min**power)).clamp(0, 1),
        effect=0.0065,  # the distance of r and r^1.02
    )
    area = law(
        lambda n: ring(n, r_min=0.3, r_max=0.6, by_area=True).abs().square(),
        lambda s: ((s - 0.09) / (0.36 - 0.09)).clamp(0, 1),
    )
    phase = law(lambda n: ring(n).angle() % (2 * math.pi), lambda t: (t / turn).clamp(0, 1))
    arc = law(lambda n: ring(n, max_phase=0.5).angle(), lambda t: (t / 0.5).clamp(0, 1))
    both = probability_is(lambda n: both_low(ring(n), r_min, r_max), 0.25, effect=0.015, alpha=ALPHA / 5)
    nu, turned = ring_parameters(10_000, generator=draw.generator)
    start, whole = polar(nu, nu).abs(), eigenvalues_on_ring(10_000, generator=draw.generator).abs()
    built = seeded(draw, lambda: LRU(1, 10_000)).eigenvalues.detach().abs()
    glorot = torch.nn.init.xavier_normal_(torch.empty(200, 200).double(), generator=draw.generator)
    moduli = torch.linalg.eigvals(glorot).abs()
    return all_of(
        radius,
        area,
        phase,
        arc,
        both,
        always(torch.isfinite(nu)),
        *(close([s.min(), s.mean(), s.max()], [0.5, 0.745, 0.99], within=0.015) for s in (start, whole, built)),
        close([turned.min(), turned.max()], [0.0, 2 * math.pi], within=0.05),
        # The circular law, within 7 deviations; uniform by radius they would be 1/2 and 1/3.
        close([moduli.mean(), moduli.square().mean()], [2 / 3, 1 / 2], within=0.04),
    )


def both_low(eigenvalues, r_min, r_max):
    """Modulus and phase below their medians at once."""
    return (eigenvalues.abs() < (r_min + r_max) / 2) & (eigenvalues.angle() % (2 * math.pi) < math.pi)


class RateItself(LRU):
    """The parameter is the rate of decay itself, not its logarithm: λ = exp(-ν + iφ)."""

    def reset_parameters(self):
        super().reset_parameters()
        self.nu.data.exp_()

    @property
    def eigenvalues(self):
        return torch.exp(torch.complex(-self.nu, self.phase))


@claim("rnn.lru")
@lie("λ = exp(-ν + iφ) stays stable without the inner exponential", unit=RateItself)
@lie("the input is not scaled", power=0.0)
@lie("the imaginary part of the state is read with its own sign", imaginary=1.0)
@lie(
    "a ring far inside the circle remembers as long",
    regime="a modulus of 0.95 still leaves a trace after 50 steps",
    loose="nearer to the circle a unit remembers longer",
    r_max=0.3,
)
def a_stable_diagonal_system_read_by_a_network(draw, unit=LRU, power=0.5, imaginary=-1.0, r_max=0.99):
    """Scan, steps and a real system of twice the size; energy kept; stable after wild steps; recall at lag 50."""
    layer = seeded(draw, lambda: unit(3, 7, width=9, outputs=2, activation="tanh")).double()
    x, state = draw.normal(2, 33, 3), torch.complex(draw.normal(2, 7), draw.normal(2, 7))
    with torch.no_grad():
        layer.readout_bias.copy_(draw.normal(9))
        outputs, final = layer(x, state)
        dense, ends = as_real_system(layer, x, state, imaginary)
        energy, expected = energies(layer, power)
        moduli, phases = torch.exp(-torch.exp(layer.nu)), layer.phase
        quick = all_of(
            close(layer.eigenvalues, moduli * torch.complex(phases.cos(), phases.sin())),
            close(outputs, layer.by_steps(x, state)[0], ulps=512),
            close(outputs, dense, within=1e-10),
            close(final, ends, within=1e-10),
            close(energy, expected, within=1e-10),
            always(moduli_after_wild_steps(draw, unit) < 1),
        )
    if not quick.holds:
        return quick
    accuracy, before, after = seeded(draw, lambda: recall(draw, r_max))
    return all_of(quick, reaches(accuracy, 0.95), always([bool(is_stable(after))])).showing(disc(before, after))


def as_real_system(layer, x, state, imaginary):
    """Outputs of the same layer as a dense system of real and imaginary parts, run by `evolve`."""
    turn, C, G = layer.eigenvalues, layer.input_matrix, layer.readout_matrix
    A = torch.cat(
        [torch.cat([turn.real.diag(), -turn.imag.diag()], 1), torch.cat([turn.imag.diag(), turn.real.diag()], 1)]
    )
    z0 = torch.cat([state.real, state.imag], 1)
    z = evolve(A, torch.cat([C.real, C.imag]), x, z0)[:, 1:]
    hidden = activation_named(layer.activation)(z @ torch.cat([G.real, imaginary * G.imag], 1).T + layer.readout_bias)
    outputs = hidden @ layer.head.weight.T + layer.head.bias
    return (outputs + x if layer.skip else outputs), torch.complex(*z[:, -1].split(len(turn), 1))


def energies(layer, power):
    """The energy that one unit of each input leaves in each channel over all time, and that of B scaled by a power."""
    state = layer(torch.eye(3, dtype=torch.float64)[:, None])[1]
    times = torch.arange(1200)[:, None]  # 0.99 to the power 2400 is 3e-11
    total = state.abs().square() * (layer.eigenvalues.abs() ** (2 * times)).sum(0)
    scaled = (1 - layer.eigenvalues.abs().square()) ** (2 * power - 1)
    return total, (layer.input_weight.square().sum(1) * scaled[:, None]).T


def moduli_after_wild_steps(draw, unit):
    """Moduli after a hundred large random optimiser steps."""
    layer = seeded(draw, lambda: unit(2, 50)).double()
    optimizer = torch.optim.SGD([layer.nu], lr=0.3)
    for _ in range(100):
        layer.nu.grad = draw.normal(50)
        optimizer.step()
    return layer.eigenvalues.detach().abs()


def recall(draw, r_max, lag=50):
    """Train to name the first of four tokens after `lag` steps of noise; accuracy, eigenvalues before and after."""
    layer = LRU(6, 32, outputs=4, width=32, r_min=min(0.9, r_max - 0.1), r_max=r_max)
    before = layer.eigenvalues.detach().clone()

    def loss():
        x, token = recalled(draw, 64, lag)
        return functional.cross_entropy(layer(x)[0][:, -1], token)

    learn(layer, loss, steps=100)
    with torch.no_grad():
        x, token = recalled(draw, 1000, lag)
        accuracy = (layer(x)[0][:, -1].argmax(-1) == token).double().mean()
        return accuracy, before, layer.eigenvalues.clone()


def recalled(draw, batch, lag):
    """A token in the first step, noise on another feature afterwards, and a bell at the end."""
    token = draw.integers(0, 4, batch)
    x = torch.zeros(batch, lag + 1, 6)
    x[torch.arange(batch), 0, token] = 1.0
    x[:, 1:, 4] = draw.normal(batch, lag).float()
    x[:, -1, 5] = 1.0
    return x, token


def disc(before, after):
    """Eigenvalues in the unit disc before and after training."""
    t = torch.linspace(0, 2 * math.pi, 100)
    marks = [Line(torch.cos(t), torch.sin(t), "unit circle")]
    marks += [Points(e.real, e.imag, label) for e, label in ((before, "before training"), (after, "after"))]
    return Figure("Eigenvalues of a unit that learns to recall", "real part", "imaginary part", marks)


@claim("rnn.lru.universality")
@lie(
    "repeated eigenvalues still allow reconstruction",
    regime="any distinct eigenvalues do",
    loose="any distinct eigenvalues do",
    spread=0.0,
)
@lie("a linear output map fits the nonlinear target as well", activation="identity")
@lie("five channels store six numbers", loose="more channels hold them as well", channels=5)
def a_linear_memory_and_a_nonlinear_reader_suffice(draw, spread=1.0, activation="gelu", channels=6):
    """Six inputs recovered from the last state by the Vandermonde matrix; then, with ever more hidden units, how far
    the best reader of the states stays from four causal maps at every step."""
    layer = on_a_circle(draw, channels, spread)
    with torch.no_grad():
        x = draw.normal(20, 6, 1)
        state = layer(x)[1]
        ages = torch.linalg.vander(layer.eigenvalues, N=6).flip(-1)  # the newest input last, with the power zero
        carried = layer.input_matrix * ages
        recovered = torch.linalg.lstsq(carried, state.mT, driver="gelsd").solution.mT
    memory = all_of(
        close(state, x[..., 0].to(carried.dtype) @ carried.mT),
        close(recovered, x[..., 0].to(carried.dtype), within=1e-6),
    )
    if not memory.holds:
        return memory
    errors = torch.stack([errors_of_best_reader(draw, activation, width) for width in WIDTHS])
    return all_of(
        memory,
        always(errors[1:] < errors[0] / torch.tensor([[1.0], [4.0]], dtype=errors.dtype)),
        at_most(errors[-1], 0.1, detail="fractions of the variance of four maps"),
    )


WIDTHS = (16, 64, 256)


@torch.no_grad()
def on_a_circle(draw, channels, spread, **reader):
    """A unit in float64 whose eigenvalues have the modulus 0.9 and phases at equal distances."""
    layer = seeded(draw, lambda: LRU(1, channels, **reader)).double()
    layer.phase.copy_(spread * torch.arange(channels) * 2 * math.pi / channels)
    layer.nu.fill_(math.log(-math.log(0.9)))
    return layer


def causal_maps(x):
    """Of each input and those before it, zeros before the first: a product, a maximum, a kink and a wave."""
    last, older = functional.pad(x, (1, 0))[:, :-1], functional.pad(x, (2, 0))[:, :-2]
    return torch.stack([x * older, torch.maximum(x, older), (x + last).abs(), torch.cos(2 * (x + last + older))], -1)


@torch.no_grad()
def errors_of_best_reader(draw, activation, width):
    """Errors on new sequences, as fractions of the variance: random hidden units, read by least squares."""
    layer = on_a_circle(draw, 6, 1.0, width=width, outputs=4, activation=activation)
    layer.input_weight.copy_(torch.tensor([[1.0], [0.0]]))  # all channels driven alike
    layer.readout_weight.copy_(draw.normal(width, 6, 2))
    layer.readout_bias.copy_(draw.normal(width))
    head, layer.head = layer.head, torch.nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]
    x = draw.uniform(20 * width, 6, low=-1.0)
    hidden = functional.pad(layer(x[..., None])[0].flatten(0, 1), (0, 1), value=1.0)  # the last is for the bias
    best = torch.linalg.lstsq(hidden, causal_maps(x).flatten(0, 1), driver="gelsd").solution
    head.weight.copy_(best[:-1].T)
    head.bias.copy_(best[-1])
    layer.head, x = head, draw.uniform(1000, 6, low=-1.0)
    wanted = causal_maps(x)
    return (layer(x[..., None])[0] - wanted).square().mean((0, 1)) / wanted.var((0, 1))
