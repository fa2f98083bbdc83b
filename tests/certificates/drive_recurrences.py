"""Drivers of what is proved about recurrences and memories: stability, bounds on gradients, exact recall."""

import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import torch
from tests.certificates import truths
from tests.certificates.drive_quadratics import SLOPES, STEEPEST
from tests.certificates.instances import Source
from tests.certificates.registry import Certificate, Refused, demand

from lemmata.connectionism.dense_memory import DenseAssociativeMemory
from lemmata.connectionism.exponential_memory import ExponentialMemory
from lemmata.connectionism.hopfield import HopfieldNetwork, Recall
from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gradient_flow import measure_gradient_flow, step_bound
from lemmata.recurrent.linear_stability import is_stable

# ---------------------------------------------------------------- stability


def sheared(source: Source, rows: list[list[float]]) -> list[list[float]]:
    """The same matrix in another basis of integers: A -> S A S^-1 for shears S. Exact for few digits."""
    rows = [list(row) for row in rows]
    for _ in range(source.whole(0, 2)):
        i, j = source.random.sample(range(len(rows)), 2)
        by = source.sign()
        rows[i] = [a + by * b for a, b in zip(rows[i], rows[j], strict=True)]
        for row in rows:
            row[j] -= by * row[i]
    return rows


def draw_system(source: Source) -> tuple:
    """Eigenvalues on the unit circle, or near it by 2^-k; Jordan blocks, hidden by a change of basis; or anything."""
    dtype = source.one_of((torch.float64, torch.float64, torch.float32, torch.bfloat16))
    size = source.whole(1, 4)
    kind = source.one_of(("vector", "complex vector", "near", "near", "block", "turn", "any", "any", "complex"))
    digits = 40 if dtype is torch.float64 else 18 if dtype is torch.float32 else 4
    edge = [1.0, -1.0, 1 - 2.0 ** -source.whole(1, digits), 1 + 2.0 ** -source.whole(1, digits), 0.5, 0.0]
    values = [source.one_of(edge) for _ in range(size)]
    if kind == "vector":
        return (torch.tensor(values, dtype=torch.float64).to(dtype),)
    if kind == "complex vector":
        angles = [source.one_of((source.random.random() * 7, math.pi / 2)) for _ in values]
        polar = [complex(value * math.cos(a), value * math.sin(a)) for value, a in zip(values, angles, strict=True)]
        polar += [complex(0.6, 0.8), 1j][: source.whole(0, 2)]
        return (torch.tensor(polar, dtype=source.one_of((torch.complex64, torch.complex128))),)
    if kind == "complex":
        entries = [[complex(source.normal(), source.normal()) / 2 for _ in range(2)] for _ in range(2)]
        return (torch.tensor(entries, dtype=torch.complex128),)
    if kind == "any":
        size = max(size, 2)
        rows = [[source.normal() for _ in range(size)] for _ in range(size)]
        radius = float(max(map(abs, mpmath.eig(mpmath.matrix(rows), left=False, right=False))))
        rows = [[value / radius * source.one_of((1.0, values[0] or 1.0)) for value in row] for row in rows]
        return (source.stored(rows, dtype, source.scale(dtype) if source.chance(0.1) else 1.0),)
    rows = [[value if i == j else 0.0 for j in range(size)] for i, value in enumerate(values)]
    if kind == "turn" and size > 1:
        rows[0][0] = rows[1][1] = 0.0
        rows[0][1], rows[1][0] = -1.0, 1.0
    if kind == "block" and size > 1:
        rows[0][0] = rows[1][1] = source.one_of((1.0, -1.0))
        rows[0][1] = source.one_of((1.0, 1e-3, 1e-8, 2.0**-20, 1e6))
        if size > 2:
            rows[2][-1] += source.one_of((0.0, 1e6))
    return (source.stored(sheared(source, rows) if size > 1 else rows, dtype),)


def bounded(system) -> tuple[bool, bool]:
    if system.ndim == 1:
        parts = torch.view_as_real(system) if system.is_complex() else torch.stack([system, 0 * system], dim=1)
        squares = [a * a + b * b for a, b in truths.exact(parts)]
        return max(squares) < 1, max(squares) <= 1
    if not system.is_complex():
        return truths.powers_stay_bounded(truths.exact(system))
    real, imaginary = truths.exact(system.real), truths.exact(system.imag)
    # As a real matrix of twice the size, with the same eigenvalues and their conjugates.
    upper = [a + [-v for v in b] for a, b in zip(real, imaginary, strict=True)]
    return truths.powers_stay_bounded(upper + [b + a for a, b in zip(real, imaginary, strict=True)])


def judge_stability(found, system) -> None:
    states, powers = bounded(system)
    demand(found.states_bounded in (states, None), f"states bounded: {found.states_bounded}; {found.reason}")
    demand(found.powers_bounded in (powers, None), f"powers bounded: {found.powers_bounded}; {found.reason}")
    if found.states_bounded is None or found.powers_bounded is None:
        raise Refused


def by_radius(tolerance: float):
    def subject(system):
        wide = system.to(torch.complex128 if system.is_complex() else torch.float64)
        radius = float((wide if system.ndim == 1 else torch.linalg.eigvals(wide)).abs().max())
        states, powers = radius < 1 - tolerance, radius <= 1 + tolerance
        return SimpleNamespace(states_bounded=states, powers_bounded=powers, reason=f"radius {radius}")

    return subject


stability = Certificate(
    "is_stable", is_stable, draw_system, judge_stability,
    {"eigenvalues in double": by_radius(0.0), "a tolerance": by_radius(1e-6)},
)  # fmt: skip


# ---------------------------------------------------------------- gradients through time


class Tripled(Elman):
    """A layer that is no Elman network, though it inherits from one."""

    def step(self, x, state):
        _, after = super().step(x, state)
        return 3 * after, 3 * after


def draw_layer(source: Source) -> tuple:
    """Weights whose norm is about 1, where the verdict turns; or of any size."""
    dtype = source.one_of((torch.float32, torch.float64, torch.float64, torch.bfloat16))
    size = source.whole(1, 3)
    weight, kind = source.orthogonal(size, dtype), source.one_of((*["plain"] * 8, "heir", "patched"))
    if kind == "plain" and source.chance(0.3):
        weight = source.matrix(dtype, most=1).expand(size, size).clone()
    return weight, source.one_of(("tanh", "relu", "identity", "sigmoid", "gelu", "silu")), kind


def steepness(name: str) -> Fraction:
    """The largest slope, exact or cut off after fifty digits."""
    if name not in STEEPEST:
        return Fraction(1, 4) if name == "sigmoid" else Fraction(1)
    return Fraction(int(mpmath.floor(SLOPES[name](STEEPEST[name]) * mpmath.mpf(10) ** 50)), 10**50)


def flow(weight, activation: str, kind: str):
    if weight.double().abs().max() > 1e300:  # the states of such a layer are infinite, and no Jacobian is measured
        return step_bound(weight, activation), None, None, None
    layer = (Tripled if kind == "heir" else Elman)(1, len(weight), activation).to(weight.dtype)
    layer.recurrent_weight = torch.nn.Parameter(weight)
    if kind == "patched":
        layer.step = lambda x, state: Tripled.step(layer, x, state)
    found = measure_gradient_flow(layer, torch.zeros(1, 2, 1, dtype=weight.dtype))
    return step_bound(weight, activation), found.bound, found.vanishes, found.log_bounds


def judge_flow(found, weight, activation: str, kind: str) -> None:
    gram = truths.gram(truths.exact(weight))
    step, bound, vanishes, logarithms = found
    alpha = steepness(activation)

    def above(limit: float, factor: Fraction) -> bool:
        return limit == math.inf or truths.inertia(truths.shifted(gram, (Fraction(limit) / factor) ** 2))[2] == 0

    demand(above(float(step), alpha), f"step_bound {float(step)!r} is below the norm times {float(alpha)}")
    factor = alpha if kind == "plain" else 3 * alpha
    if bound is not None:
        demand(above(bound, factor), f"bound {bound!r} is below the norm times {float(factor)}")
        if 0 < bound < math.inf:
            last = 2 * mpmath.log(truths.high(bound))
            demand(truths.high(float(logarithms[2])) >= last, f"{float(logarithms[2])!r} is below {last}")
    if vanishes:
        limit = truths.inertia(truths.shifted(gram, (1 / factor) ** 2))
        demand(limit[1] + limit[2] == 0, "gradients are said to vanish, but the norm is 1 or more")


def flow_in_floats(weight, activation: str, kind: str):
    bound = float(steepness(activation)) * float(torch.linalg.matrix_norm(weight.double(), 2))
    return bound, bound, bound < 1, torch.arange(3, dtype=torch.float64) * math.log(bound or 1.0)


gradients = Certificate(
    "step_bound", flow, draw_layer, judge_flow,
    {
        "singular values in double": flow_in_floats,
        "an heir taken for its parent": lambda weight, activation, kind: flow(weight, activation, "plain"),
        "logarithms to nearest": lambda *given: (
            *flow(*given)[:3], 2 * math.log(flow(*given)[1]) * torch.tensor([0, 0.5, 1]).double()
        ),
    },
    share=0.3,
)  # fmt: skip


# ---------------------------------------------------------------- memories


def draw_recalled(source: Source) -> tuple:
    units = source.one_of((1, 2, 5, 40, 700, 5000))
    dtype = source.one_of((torch.float16, torch.bfloat16, torch.float32, torch.float64))
    patterns = torch.tensor([[source.sign() for _ in range(units)] for _ in range(source.whole(1, 3))])
    states = patterns[[source.whole(0, len(patterns) - 1) for _ in range(4)]].clone()
    states[1] *= -1
    states[2, source.whole(0, units - 1)] *= -1
    states[3] *= torch.tensor([source.sign() for _ in range(units)])
    return patterns.to(dtype), states.to(dtype)


def recalled(patterns, states):
    still = torch.ones(len(states), dtype=torch.bool)
    found = Recall.against(patterns, states, converged=still, cycled=~still, sweeps=torch.zeros(len(states)).long())
    return found.exact, found.mirror, found.spurious


def judge_recall(found, patterns, states) -> None:
    known = {tuple(row) for row in patterns.tolist()}
    for i, state in enumerate(states.tolist()):
        same, opposite = tuple(state) in known, tuple(-value for value in state) in known
        exact, mirror, spurious = (bool(part[i]) for part in found)
        # A state that is both may be called either.
        demand(exact <= same and mirror <= opposite, f"state {i} is no memory")
        demand(exact or mirror or not (same or opposite), f"state {i} is a memory")
        demand(spurious == (not same and not opposite), f"state {i}: spurious {spurious}")


def recalled_in(dtype: torch.dtype):
    def subject(patterns, states):
        products = states.to(dtype)[:, None] * patterns.to(dtype)
        overlaps = products.sum(-1) / torch.tensor(states.shape[1]).to(dtype)
        best = overlaps.gather(1, overlaps.abs().argmax(1)[:, None])[:, 0]
        return best >= 1, best <= -1, best.abs() < 1

    return subject


recall = Certificate(
    "Recall", recalled, draw_recalled, judge_recall, {"overlaps in half": recalled_in(torch.bfloat16)}, share=0.3
)


def draw_memory(source: Source) -> tuple:
    """Few units and patterns: ties are common."""
    units, order = source.whole(1, 6), source.one_of((0, 1, 2, 3, 4, 7))
    dtype = source.one_of((torch.float32, torch.float64))
    rows = [[source.sign() for _ in range(units)] for _ in range(source.whole(1, 5) + 3)]
    return torch.tensor(rows[:-3]).to(dtype), torch.tensor(rows[-3:]).to(dtype), order


def stable(patterns, states, order: int):
    """Order 0 is Hopfield's network with Hebb's rule, order 1 the exponential memory."""
    rules = {0: HopfieldNetwork.from_patterns, 1: ExponentialMemory}
    memory = rules[order](patterns) if order in rules else DenseAssociativeMemory(patterns, order)
    return memory.is_stable(states)


def field(order: int, signs: list[int], rests: list[int]):
    """What decides about a unit, from its value in each pattern and their overlaps elsewhere; 0 is a tie."""
    pairs = list(zip(signs, rests, strict=True))
    if order == 0:
        return sum(sign * rest for sign, rest in pairs)
    if order == 1:  # powers of e are independent: they cancel only where their factors do
        factors = {rest: sum(sign for sign, other in pairs if other == rest) for rest in set(rests)}
        return sum((factor * mpmath.exp(rest) for rest, factor in factors.items()), mpmath.mpf(0))
    return sum((rest + sign) ** order - (rest - sign) ** order for sign, rest in pairs)


def judge_stable(found, patterns, states, order: int) -> None:
    rows = [[int(value) for value in row] for row in patterns.tolist()]
    for told, state in zip(found.tolist(), states.tolist(), strict=True):
        x = [int(value) for value in state]
        rests = [[sum(p[j] * x[j] for j in range(len(x)) if j != i) for p in rows] for i in range(len(x))]
        fields = [field(order, [p[i] for p in rows], rests[i]) for i in range(len(x))]
        truth = all(value == (1 if found >= 0 else -1) for value, found in zip(x, fields, strict=True))
        demand(told == truth, f"stable: {told}")


memories = Certificate(
    "is_stable:memories", stable, draw_memory, judge_stable,
    {
        "ties to -1": lambda patterns, states, order: (
            torch.where(HopfieldNetwork.from_patterns(patterns).field(states) > 0, 1.0, -1.0) == states
        ).all(-1),
    },
    share=0.5,
)  # fmt: skip


# ---------------------------------------------------------------- Gaussians


def draw_covariance(source: Source) -> tuple:
    dtype, size = source.one_of((torch.float32, torch.float64)), source.whole(1, 4)
    if source.chance(0.5):  # one dimension too few, in integers or rounded
        factor = [[source.whole(-3, 3) / source.one_of((1, 1, 3)) for _ in range(size)] for _ in range(size - 1)]
        rows = [[math.fsum(row[i] * row[j] for row in factor) for j in range(size)] for i in range(size)]
        return (source.stored(rows, dtype),)
    matrix = source.symmetric(size, dtype)
    return (source.slightly_asymmetric(matrix) if source.chance(0.1) else matrix,)


def judge_density(degenerate: bool, covariance) -> None:
    if degenerate:
        raise Refused
    rows = truths.symmetric_part(truths.exact(covariance))
    demand(truths.inertia(rows)[2] == len(rows), "a density, but the covariance is singular or indefinite")


density = Certificate(
    "Gaussian.degenerate", lambda covariance: Gaussian(covariance.new_zeros(len(covariance)), covariance).degenerate,
    draw_covariance, judge_density,
    {"a factor in double": lambda covariance: bool(torch.linalg.cholesky_ex(covariance.double()).info > 0)},
)  # fmt: skip

CERTIFICATES = (stability, gradients, recall, memories, density)
