"""Drivers of what is proved about functions: smoothness, convexity, subgradients, Lipschitz constants."""

import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import torch
from tests.certificates import truths
from tests.certificates.drive_quadratics import SLOPES, STEEPEST, measured, proved
from tests.certificates.functions import Written, cancelling, sum_of_curves, way_of_writing
from tests.certificates.instances import Source
from tests.certificates.registry import Certificate, demand
from torch import nn

from lemmata.foundations.analysis.convexity import is_convex
from lemmata.foundations.analysis.curvature import smoothness, strong_convexity
from lemmata.foundations.analysis.lipschitz_bounds import lipschitz
from lemmata.foundations.analysis.subgradients import is_subgradient


def draw_curved(source: Source) -> tuple:
    return (sum_of_curves(source) if source.chance(0.5) else way_of_writing(source),)


def judge_smoothness(answer, f: Written) -> float | None:
    value = proved(answer)
    demand(not f.kinked or value == math.inf, f"{value}, but the gradient jumps")
    found, error = f.known_curvatures()
    largest = max(map(abs, found), default=mpmath.mpf(0))
    demand(truths.high(value) >= largest * (1 - error), f"{value}, but a curvature is {mpmath.nstr(largest, 20)}")
    return float(value / largest) if largest > 1e-300 else None


def curvature_seen(pick):
    """The extreme at one point, taken for that of the box."""

    def subject(f: Written):
        found, _ = f.known_curvatures()
        return measured(float(pick(found[: len(f.low)])), certified=bool(found))

    return subject


def deaf(subject):
    """The answer of a function of which everything but its squares was dropped."""

    def answer(f: Written):
        return subject(lambda x: x.square().sum(), (f.low, f.high), points=8)

    return answer


smooth = Certificate(
    "smoothness:jets", lambda f: smoothness(f, (f.low, f.high), points=8), draw_curved, judge_smoothness,
    {"seen at a corner": curvature_seen(lambda values: max(map(abs, values))), "operations dropped": deaf(smoothness)},
    share=0.1,
)  # fmt: skip


def judge_strong(answer, f: Written) -> None:
    value = proved(answer)
    found, error = f.known_curvatures()
    least, size = min(found, default=mpmath.inf), max(map(abs, found), default=mpmath.mpf(0))
    demand(truths.high(value) <= least + error * size, f"{value}, but a curvature is {mpmath.nstr(least, 20)}")


strong = Certificate(
    "strong_convexity:jets", lambda f: strong_convexity(f, (f.low, f.high), points=8), draw_curved, judge_strong,
    {"seen at a corner": curvature_seen(min), "operations dropped": deaf(strong_convexity)},
    share=0.1,
)  # fmt: skip


# ---------------------------------------------------------------- convexity, subgradients


def draw_bent(source: Source) -> tuple:
    return (source.one_of((sum_of_curves, way_of_writing, cancelling, cancelling))(source),)


def judge_convex(answer, f: Written) -> None:
    value = proved(answer)
    demand(f.convex is None or value == f.convex, f"convex: {value}")


def chords_believed(f: Written):
    """A "no" where the values themselves lie above a chord, and a "yes" elsewhere."""
    ends = [f.low + (f.high - f.low) * t for t in (0.03, 0.17, 0.3, 0.41, 0.9)]
    gaps = [float((f(x) + f(y)) / 2 - f((x + y) / 2)) for x in ends for y in ends]
    return measured(min(gaps) >= 0)


convex = Certificate(
    "is_convex", lambda f: is_convex(f, (f.low, f.high), points=16), draw_bent, judge_convex,
    {"chords in floats": chords_believed, "always": lambda f: measured(True)}, share=0.15,
)  # fmt: skip


def draw_slope(source: Source) -> tuple:
    """A convex function, a point, a slope, and whether that is a subgradient there (None: nobody knows)."""
    if source.chance(0.5):
        f = cancelling(source)
        while not f.convex:
            f = cancelling(source)
        size, zero = len(f.low), torch.zeros_like(f.low)
        flat = f.text.lstrip("-").startswith(("(3x)", "B (x", "(B (x", "((3x)"))
        if flat:
            return f, zero + 0.3, zero, True
        by = source.sign() * 0.5
        wrong = zero + by if f.text.startswith(("exp", "(x + B)^2")) else None
        if wrong is not None and f.text.startswith("exp"):
            return f, zero, zero + 1.0 + by, False
        return (f, zero, wrong, None) if wrong is not None else (f, zero, zero + 1.0 / size, None)
    size, dtype = source.whole(1, 3), source.one_of((torch.float64, torch.float32))
    kinks = torch.tensor([source.one_of((0.0, 0.25, 1e-7, 3e7)) for _ in range(size)], dtype=dtype)
    ends = torch.ones(size, dtype=dtype) * 4 * kinks.abs().max().clamp(min=0.25)
    f = Written(f"|x - {kinks.tolist()}|", lambda x: (x - kinks).abs().sum(), -ends, ends, convex=True)
    steps = [source.one_of((-1.0, 1.0, 0.5, 0.0, 1 + 2.0**-20, 1.5, -2.0)) for _ in range(size)]
    slope = torch.tensor(steps, dtype=dtype)
    return f, kinks, slope, all(abs(step) <= 1 for step in steps)


def subgradient(f: Written, x, slope, truth):
    return is_subgradient(f, x, slope, (f.low, f.high), points=64)


def judge_subgradient(answer, f: Written, x, slope, truth) -> None:
    value = proved(answer)
    demand(truth is None or value == truth, f"subgradient: {value}")


def planes_believed(f: Written, x, slope, truth):
    """What the values say at a few points."""
    y = [x + (f.high - x) * t for t in (1.0, 0.3, 0.01)] + [x + (f.low - x) * t for t in (1.0, 0.3, 0.01)]
    return measured(all(float(f(point) - f(x) - (point - x) @ slope) >= 0 for point in y))


supporting = Certificate(
    "is_subgradient", subgradient, draw_slope, judge_subgradient,
    {"values in floats": planes_believed, "always": lambda *given: measured(True)}, share=0.3,
)  # fmt: skip


# ---------------------------------------------------------------- Lipschitz constants


class Stretched(nn.Linear):
    def forward(self, x):
        return 5 * super().forward(x)


class Repeated(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


class SteepELU(nn.ELU):
    def forward(self, x):
        return 5 * super().forward(x)


class Doubled(nn.Identity):
    def forward(self, x):
        return 2 * x


def _with(layer: nn.Module, change) -> nn.Module:
    change(layer)
    return layer


def _forward(factor: float):
    def change(layer: nn.Module) -> None:
        layer.forward = lambda x: factor * x

    return change


def _weight_normed(layer: nn.Linear) -> nn.Module:
    return torch.nn.utils.parametrizations.weight_norm(layer)


# A layer of one input and output, what it multiplies a small positive change near 0 by at least, at some point.
LAYERS = {
    "relu": (nn.ReLU, 1), "tanh": (nn.Tanh, 1), "sigmoid": (nn.Sigmoid, 0.25), "softsign": (nn.Softsign, 1),
    "elu of 2": (lambda: nn.ELU(2.0), 2), "elu of -3": (lambda: nn.ELU(-3.0), 3), "identity": (nn.Identity, 1),
    "leaky of 3": (lambda: nn.LeakyReLU(3.0), 3), "leaky of -0.5": (lambda: nn.LeakyReLU(-0.5), 1),
    "gelu": (nn.GELU, SLOPES["gelu"](STEEPEST["gelu"])),
    "gelu by tanh": (lambda: nn.GELU("tanh"), SLOPES["gelu_tanh"](STEEPEST["gelu_tanh"])),
    "silu": (nn.SiLU, SLOPES["silu"](STEEPEST["silu"])), "flatten": (lambda: nn.Flatten(-1), 1),
    "softplus that jumps": (lambda: nn.Softplus(threshold=1.0), math.inf), "softplus": (nn.Softplus, 1),
    "a hook": (lambda: _with(nn.Identity(), lambda m: m.register_forward_hook(lambda m, i, o: 2 * o)), 2),
    "a hook before": (lambda: _with(nn.ReLU(), lambda m: m.register_forward_pre_hook(lambda m, i: (9 * i[0],))), 9),
    "an identity of its own": (Doubled, 2), "an elu of its own": (SteepELU, 5),
    "another forward": (lambda: _with(nn.ReLU(), _forward(7.0)), 7),
    "another forward, tanh": (lambda: _with(nn.Tanh(), _forward(7.0)), 7),
    "a sequence of its own": (lambda: Repeated(nn.Identity()), 2), "a sequence": (lambda: nn.Sequential(nn.Tanh()), 1),
    "a sequence with a hook": (
        lambda: _with(nn.Sequential(nn.ReLU()), lambda m: m.register_forward_hook(lambda m, i, o: 3 * o)), 3
    ),
    "prelu": (lambda: nn.PReLU(init=4.0), 4), "hardtanh": (nn.Hardtanh, 1), "softmax": (lambda: nn.Softmax(-1), 0),
    "dropout": (lambda: nn.Dropout(0.5), 2), "hardswish": (nn.Hardswish, 1.5), "selu": (nn.SELU, 1.75),
}  # fmt: skip


def draw_network(source: Source) -> tuple:
    """Linear layers around one that may not be what it seems; the numbers of the true constant beside it."""
    name = source.one_of(sorted(LAYERS))
    made, factor = LAYERS[name]
    wide = name in ("identity", "tanh", "relu", "a sequence", "softsign") and source.chance(0.7)
    size = source.whole(1, 3) if wide else 1
    dtype = source.one_of((torch.float32, torch.float64))
    first, last = nn.Linear(source.whole(1, 3) if wide else 1, size), nn.Linear(size, source.whole(1, 3) if wide else 1)
    if not wide and source.chance(0.2):
        first, factor = Stretched(1, 1), 5 * factor
    for layer in (first, last):
        values = source.matrix(dtype, scale=source.one_of((1e-30, 1e-3, 1.0, 1.0, 1e10)), most=1)
        shape = layer.weight.shape
        entries = [[source.normal() * abs(float(values[0, 0])) for _ in range(shape[1])] for _ in range(shape[0])]
        layer.weight = nn.Parameter(torch.tensor(entries, dtype=torch.float64).to(dtype))
        layer.bias = nn.Parameter(torch.zeros(shape[0], dtype=dtype))
    network = nn.Sequential(first, made().to(dtype), last)
    if type(first) is nn.Linear and source.chance(0.1):
        _weight_normed(first)
    return f"{name} between linear layers", network, factor


def judge_lipschitz(answer, told: str, network, factor) -> float | None:
    value = proved(answer)
    demand(factor != math.inf, f"{value}, but the function jumps")
    product = truths.times(truths.exact(network[2].weight), truths.exact(network[0].weight))
    if value == math.inf:
        return None
    # At some point the Jacobian is this product times the factor (for a wide one: at zero, seen from above).
    gram = truths.gram(product)
    if isinstance(factor, mpmath.mpf):
        norm = mpmath.sqrt(truths.high(gram[0][0]))
        demand(truths.high(value) >= norm * factor, f"{value!r} is below {mpmath.nstr(norm * factor, 25)}")
        return None
    scaled = [[entry * Fraction(factor) ** 2 for entry in row] for row in gram]
    above = truths.inertia(truths.shifted(scaled, Fraction(value) ** 2))[2]
    demand(above == 0, f"{value!r} is below the constant")
    return None


def product_of_norms(told: str, network, factor):
    """Any layer that is not linear is taken for one of constant 1."""
    norms = [torch.linalg.matrix_norm(network[i].weight.detach().double(), 2) for i in (0, 2)]
    return measured(float(norms[0] * norms[1]) * (1 + 1e-12))


network = Certificate(
    "lipschitz", lambda told, network, factor: lipschitz(network), draw_network, judge_lipschitz,
    {
        "layers by their name": product_of_norms,
        "rounded to nearest": lambda told, network, factor: SimpleNamespace(
            value=product_of_norms(told, network, factor).value * float(factor) * (1 - 2e-12), certified=True
        ),
    },
)  # fmt: skip

CERTIFICATES = (smooth, strong, convex, supporting, network)
