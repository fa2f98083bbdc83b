"""Drivers of what is proved about quadratic functions, activations and networks, and of interval arithmetic."""

import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import torch
from tests.certificates import truths
from tests.certificates.instances import Source
from tests.certificates.registry import Certificate, Refused, demand

from lemmata.certified.intervals import Interval
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.analysis.convexity import is_convex
from lemmata.foundations.analysis.curvature import smoothness, strong_convexity
from lemmata.foundations.analysis.gradient_dominance import pl_constant
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction


class Tripled(QuadraticFunction):
    """Not the function of its matrix, though it inherits from it."""

    def __call__(self, x):
        return 3 * super().__call__(x)


def draw_matrix(source: Source):
    dtype = source.one_of((torch.float32, torch.float64, torch.float64, torch.float16))
    matrix = source.symmetric(source.whole(1, 4), dtype)
    return source.slightly_asymmetric(matrix) if source.chance(0.2) else matrix


def draw_quadratic(source: Source) -> tuple:
    return draw_matrix(source), source.one_of((*[QuadraticFunction] * 9, Tripled))


def draw_plain(source: Source) -> tuple:
    return draw_matrix(source), QuadraticFunction


def hessian(matrix, kind: type) -> list:
    """The exact matrix of second derivatives."""
    factor = 3 if kind is Tripled else 1
    return [[factor * value for value in row] for row in truths.symmetric_part(truths.exact(matrix))]


def of_quadratic(measure):
    """Measure a quadratic function; without a box, which only those need that are not known by their matrix."""

    def subject(matrix, kind: type):
        return measure(kind(matrix))

    return subject


def in_a_box(f: QuadraticFunction):
    ends = torch.ones_like(f.linear)
    return is_convex(f, (-ends, ends), points=8)


def of_triangle(measure):
    """The same for the lower triangle alone."""
    return lambda matrix, kind: of_quadratic(measure)(matrix.tril() + matrix.tril(-1).mT, kind)


def as_parent(measure):
    return lambda matrix, kind: of_quadratic(measure)(matrix, QuadraticFunction)


def proved(answer):
    """The value of a measurement that says it is certified."""
    if not answer.certified:
        raise Refused
    return answer.value


def measured(value, certified: bool = True) -> SimpleNamespace:
    return SimpleNamespace(value=value, certified=certified)


def eigenvalues(matrix, dtype: torch.dtype = torch.float64):
    return torch.linalg.eigvalsh(matrix.to(dtype)).double()


def judge_smoothness(answer, matrix, kind: type) -> None:
    value, rows = proved(answer), hessian(matrix, kind)
    if value < math.inf:
        for sign in (rows, truths.negative(rows)):
            demand(truths.inertia(truths.shifted(sign, Fraction(value)))[2] == 0, f"a curvature is above {value}")


smooth = Certificate(
    "smoothness:quadratic", of_quadratic(smoothness), draw_quadratic, judge_smoothness,
    {
        "eigenvalues in double": lambda matrix, kind: measured(float(eigenvalues(matrix).abs().max())),
        "one triangle": of_triangle(smoothness),
        "the largest alone": lambda matrix, kind: measured(3 * float(eigenvalues(matrix).max()) * (1 + 1e-9)),
        "an heir taken for its parent": as_parent(smoothness),
    },
    share=0.8,
)  # fmt: skip


def judge_strong(answer, matrix, kind: type) -> None:
    value = proved(answer)
    demand(value < math.inf, "no curvature is infinite")
    if value > -math.inf:
        below = truths.eigenvalues_below(hessian(matrix, kind), Fraction(value))
        demand(below == 0, f"a curvature is below {value}")


strong = Certificate(
    "strong_convexity:quadratic", of_quadratic(strong_convexity), draw_quadratic, judge_strong,
    {
        "eigenvalues in double": lambda matrix, kind: measured(float(eigenvalues(matrix)[0])),
        "eigenvalues in single": lambda matrix, kind: measured(float(eigenvalues(matrix, torch.float32)[0])),
        "one triangle": of_triangle(strong_convexity),
        "an heir taken for its parent": as_parent(strong_convexity),
    },
    share=0.8,
)  # fmt: skip


def judge_convex(answer, matrix, kind: type) -> None:
    truth = truths.inertia(hessian(matrix, kind))[0] == 0
    demand(proved(answer) == truth, f"convex: {answer.value}")


convex_quadratic = Certificate(
    "is_convex:quadratic", of_quadratic(in_a_box), draw_plain, judge_convex,
    {
        "a tolerance": lambda matrix, kind: measured(bool(eigenvalues(matrix)[0] >= -1e-12 * matrix.abs().max())),
        "no tolerance": lambda matrix, kind: measured(bool(eigenvalues(matrix)[0] >= 0)),
    },
    share=0.5,
)  # fmt: skip


# ---------------------------------------------------------------- minima


def draw_bowl(source: Source) -> tuple:
    matrix = draw_matrix(source)
    if source.chance(0.4):  # exactly singular
        matrix = source.symmetric(len(matrix), matrix.dtype, 1.0)
    size = len(matrix)
    kind = source.one_of(("none", "image", "any"))
    linear = torch.zeros(size, dtype=matrix.dtype)
    if kind == "image":  # in the range, where integers make the product exact
        whole = [source.whole(-2, 2) for _ in range(size)]
        products = [truths.dot(row, whole) for row in truths.exact(matrix)]
        if max(map(abs, products)) < Fraction(torch.finfo(matrix.dtype).max):
            linear = torch.tensor(list(map(float, products)), dtype=torch.float64).to(matrix.dtype)
    elif kind == "any":
        linear = source.stored([[source.normal() for _ in range(size)]], matrix.dtype)[0]
    return matrix, linear


def has_minimum(matrix, linear) -> bool:
    rows = truths.symmetric_part(truths.exact(matrix))
    along = [[*row, value] for row, value in zip(rows, truths.exact(linear), strict=True)]
    return truths.inertia(rows)[0] == 0 and truths.rank(along) == truths.rank(rows)


def judge_pl(answer, matrix, linear) -> None:
    value, rows = proved(answer), truths.symmetric_part(truths.exact(matrix))
    demand(has_minimum(matrix, linear), "a function without a minimum has no such constant")
    below, zero, _ = truths.inertia(rows)
    between = truths.eigenvalues_below(rows, Fraction(value)) - below - zero
    demand(value >= 0 and between <= 0, f"a positive curvature is below {value}")


def pl_by_eigenvalues(matrix, linear):
    values = eigenvalues(matrix)
    kept = values[values > 4 * len(matrix) * torch.finfo(matrix.dtype).eps * values.norm()]
    return measured(float(kept[0]) if len(kept) else 0.0, certified=bool(len(kept)))


dominance = Certificate(
    "pl_constant:quadratic", lambda matrix, linear: pl_constant(QuadraticFunction(matrix, linear)),
    draw_bowl, judge_pl,
    {
        "eigenvalues above rounding": pl_by_eigenvalues,
        "the largest": lambda matrix, linear: measured(float(eigenvalues(matrix)[-1])),
    },
)  # fmt: skip


def minimum(matrix, linear):
    return QuadraticFunction(matrix, linear).minimum


def judge_minimum(found, matrix, linear) -> None:
    demand(has_minimum(matrix, linear), f"minimum {float(found)} of a function that falls without end")


least_value = Certificate(
    "QuadraticFunction.minimum", minimum, draw_bowl, judge_minimum,
    {"a pseudo-inverse": lambda matrix, linear: -linear @ torch.linalg.pinv(matrix.double()).to(linear) @ linear},
)  # fmt: skip


# ---------------------------------------------------------------- activations

mp = mpmath.mp


def _normal_slope(z):
    return mpmath.ncdf(z) + z * mpmath.npdf(z)


def _tanh_slope(z):
    inner = mpmath.sqrt(2 / mp.pi) * (z + mpmath.mpf("0.044715") * z**3)
    first = mpmath.sqrt(2 / mp.pi) * (1 + 3 * mpmath.mpf("0.044715") * z**2)
    return (1 + mpmath.tanh(inner)) / 2 + z * mpmath.sech(inner) ** 2 * first / 2


def _logistic(z):
    return 1 / (1 + mpmath.exp(-z))


SLOPES = {
    "relu": lambda z: mpmath.mpf(z > 0),
    "leaky_relu": lambda z: mpmath.mpf(1) if z > 0 else mpmath.mpf("0.01"),
    "elu": lambda z: mpmath.exp(min(z, 0)),
    "gelu": _normal_slope,
    "gelu_tanh": _tanh_slope,
    "silu": lambda z: _logistic(z) * (1 + z * _logistic(-z)),
    "softplus": _logistic,
    "tanh": lambda z: mpmath.sech(z) ** 2,
    "sigmoid": lambda z: _logistic(z) * _logistic(-z),
    "softsign": lambda z: 1 / (1 + abs(z)) ** 2,
    "identity": lambda z: mpmath.mpf(1),
}
STEEPEST = {  # where the slope turns, to sixty digits
    "gelu": mpmath.sqrt(2),
    "gelu_tanh": mpmath.findroot(lambda z: mpmath.diff(_tanh_slope, z), 1.4),
    "silu": mpmath.findroot(lambda z: mpmath.diff(SLOPES["silu"], z), 2.4),
}


def draw_slope(source: Source) -> tuple:
    name = source.one_of(sorted(SLOPES))
    z = STEEPEST.get(name, mpmath.mpf(0))
    if source.chance(0.6):
        z = z + source.sign() * mpmath.mpf(10) ** -source.whole(0, 20) * source.normal()
    return name, z


def judge_slope(found: float, name: str, z) -> float | None:
    slope = abs(SLOPES[name](z))
    demand(truths.high(found) >= slope, f"{found!r} is below the slope {mpmath.nstr(slope, 20)}")
    return float(found / SLOPES[name](STEEPEST[name])) if name in STEEPEST else None


activations = Certificate(
    "ACTIVATION_TABLE.lipschitz", lambda name, z: ACTIVATION_TABLE[name].lipschitz, draw_slope, judge_slope,
    {
        "rounded to nearest": lambda name, z: float(abs(SLOPES[name](STEEPEST.get(name, 0)))) * (1 - 1e-16),
        "one for all": lambda name, z: 1.0,
    },
)  # fmt: skip


# ---------------------------------------------------------------- intervals

UNARY = {
    "exp": (torch.exp, mpmath.exp), "tanh": (torch.tanh, mpmath.tanh), "sigmoid": (torch.sigmoid, _logistic),
    "log": (torch.log, mpmath.log), "sqrt": (torch.sqrt, mpmath.sqrt),
}  # fmt: skip
OPERATIONS = ("add", "mul", "neg", "power", "reciprocal", "cosine", "sum", "mapped", *UNARY)


def draw_interval(source: Source) -> tuple:
    """Two intervals of three entries each, an operation, and a point of each."""
    name = source.one_of(OPERATIONS)
    positive = name in ("log", "sqrt", "reciprocal")
    size = source.one_of((1.0, 1.0, 10.0, 1e5, 1e-8, 1e-160, 1e150, 5e-324, 1e300))
    size = min(size, 1e5) if name == "cosine" else min(size, 700.0) if name == "exp" else size

    def ends():
        first = source.normal() * size
        second = first + source.one_of((0.0, 1e-16, 1e-3, 1.0, 10.0)) * abs(first) * source.random.random()
        return sorted((-first if source.chance(0.3) else first, second))

    pairs = [[ends() for _ in range(3)] for _ in range(2)]
    if positive:
        pairs = [[sorted((abs(a) or 5e-324, abs(b) or 5e-324)) for a, b in pair] for pair in pairs]
    tensors = [torch.tensor(pair, dtype=torch.float64) for pair in pairs]
    where = [[source.one_of((0, 1, source.random.random())) for _ in range(3)] for _ in range(2)]
    return name, tensors[0], tensors[1], where, source.whole(0, 7), source.normal()


def evaluated(name: str, first, second, where, exponent: int, factor: float):
    """The interval of the result; `first` and `second` hold low and high in their columns."""
    a, b = (Interval(pair[:, 0], pair[:, 1]) for pair in (first, second))
    if name in UNARY:
        return a.increasing(UNARY[name][0])
    matrix = torch.tensor([[factor, 1.0, -factor]], dtype=torch.float64)
    return {
        "add": lambda: a + b, "mul": lambda: a * b, "neg": lambda: -a, "power": lambda: a.power(exponent),
        "reciprocal": a.reciprocal, "cosine": a.cosine, "sum": lambda: a.sum(0), "mapped": lambda: a.mapped(matrix),
    }[name]()  # fmt: skip


def judge_interval(found, name: str, first, second, where, exponent: int, factor: float) -> None:
    def points(pair, chosen):
        rows = truths.exact(pair)
        return [low + (high - low) * Fraction(t) for (low, high), t in zip(rows, chosen, strict=True)]

    x, y = points(first, where[0]), points(second, where[1])
    if name in UNARY:
        results = [UNARY[name][1](truths.high(value)) for value in x]
    elif name == "cosine":
        results = [mpmath.cos(truths.high(value)) for value in x]
    else:
        results = {
            "add": lambda: [a + b for a, b in zip(x, y, strict=True)],
            "mul": lambda: [a * b for a, b in zip(x, y, strict=True)],
            "neg": lambda: [-a for a in x],
            "power": lambda: [a**exponent for a in x],
            "reciprocal": lambda: [1 / a for a in x],
            "sum": lambda: [sum(x)],
            "mapped": lambda: [Fraction(factor) * (x[0] - x[2]) + x[1]],
        }[name]()  # fmt: skip
    for low, high, value in zip(found.low.reshape(-1).tolist(), found.high.reshape(-1).tolist(), results, strict=True):
        demand(low == -math.inf or _at_most(low, value), f"{name}: {mpmath.nstr(_mp(value), 25)} is below {low!r}")
        demand(high == math.inf or not _at_most(high, value) or _mp(value) == _mp(high), f"{name}: above {high!r}")


def _mp(value):
    return value if isinstance(value, mpmath.mpf) else truths.high(value)


def _at_most(end: float, value) -> bool:
    return truths.high(end) <= value if isinstance(value, mpmath.mpf) else Fraction(end) <= value


def rounded(name: str, *given):
    """The result to nearest."""
    found = evaluated(name, *given)
    low, high = found.low, found.high
    return SimpleNamespace(low=low + 1e-13 * low.abs(), high=high - 1e-13 * high.abs())


def ends_only(name: str, first, second, *given):
    """Even powers and cosines of the two ends alone."""
    found = evaluated(name, first, second, *given)
    if name not in ("power", "cosine"):
        return found
    both = torch.stack([evaluated(name, pair, second, *given).low for pair in (first[:, [0, 0]], first[:, [1, 1]])])
    return SimpleNamespace(low=both.amin(0), high=both.amax(0).maximum(both.amin(0)) + 1e-9)


interval = Certificate(
    "Interval", evaluated, draw_interval, judge_interval, {"to nearest": rounded, "the ends alone": ends_only}
)

CERTIFICATES = (smooth, strong, convex_quadratic, dominance, least_value, activations, interval)
