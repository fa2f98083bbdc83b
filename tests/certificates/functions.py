"""Functions whose curvature is known, or that autograd can look up, written in all the ways that torch allows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import torch
from tests.certificates import truths
from tests.certificates.instances import Source
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Curve:
    """A function of one variable with its second derivative to sixty digits."""

    value: Callable[[Tensor], Tensor]
    bend: Callable
    bends: int = 0  # +1 where it is convex on its whole domain, -1 where concave
    positive: bool = False  # the domain


def _logistic(z):
    return 1 / (1 + mpmath.exp(-z))


CURVES = {
    "square": Curve(torch.square, lambda z: mpmath.mpf(2), 1),
    "cube": Curve(lambda z: z**3, lambda z: 6 * z),
    "fourth": Curve(lambda z: z**4, lambda z: 12 * z**2, 1),
    "exp": Curve(torch.exp, mpmath.exp, 1),
    "log": Curve(torch.log, lambda z: -1 / z**2, -1, positive=True),
    "sqrt": Curve(torch.sqrt, lambda z: -(z ** mpmath.mpf(-1.5)) / 4, -1, positive=True),
    "reciprocal": Curve(torch.reciprocal, lambda z: 2 / z**3, 1, positive=True),
    "sin": Curve(torch.sin, lambda z: -mpmath.sin(z)),
    "cos": Curve(torch.cos, lambda z: -mpmath.cos(z)),
    "tanh": Curve(torch.tanh, lambda z: -2 * mpmath.tanh(z) * mpmath.sech(z) ** 2),
    "sigmoid": Curve(torch.sigmoid, lambda z: _logistic(z) * _logistic(-z) * (1 - 2 * _logistic(z))),
    "softplus": Curve(functional.softplus, lambda z: _logistic(z) * _logistic(-z), 1),
}


@dataclass(frozen=True)
class Written:
    """A function of a vector in a box, and what is known of it.

    `convex` is None where nobody knows; `kinked` says that its gradient jumps: it has no smoothness constant.
    """

    text: str
    function: Callable[[Tensor], Tensor]
    low: Tensor
    high: Tensor
    convex: bool | None = None
    kinked: bool = False
    curvatures: Callable[[list[Fraction]], list] | None = None  # exact ones at a point, all eigenvalues

    def __call__(self, x):
        return self.function(x)

    def __str__(self) -> str:
        return f"{self.text} on {self.low.tolist()} to {self.high.tolist()} ({self.low.dtype})"

    def points(self) -> list[Tensor]:
        """Corners, the centre, and others."""
        ends = torch.stack([self.low, self.high])
        corners = [ends[list(bits), range(len(self.low))] for bits in _bits(len(self.low))]
        within = torch.tensor([0.5, 0.1, 0.77, 0.31], dtype=torch.float64)
        return corners + [self.low + t * (self.high - self.low) for t in within.to(self.low)]

    def known_curvatures(self) -> tuple[list, float]:
        """Eigenvalues of Hessians at some points, and how far they may be off, relative to the largest."""
        if self.curvatures is not None:
            return [value for p in self.points() for value in self.curvatures(truths.exact(p))], 0.0
        found = []
        for p in self.points():
            hessian = torch.autograd.functional.hessian(lambda x: self.function(x).sum(), p.double())
            found += torch.linalg.eigvalsh((hessian + hessian.T) / 2).tolist()
        return [truths.high(value) for value in found if math.isfinite(value)], 1e-9


def _bits(size: int) -> list[tuple[int, ...]]:
    return [tuple(number >> k & 1 for k in range(size)) for number in range(2**size)]


def sum_of_curves(source: Source) -> Written:
    """A sum over coordinates, or a curve of one linear form, and perhaps a multiple of the squares."""
    name, size = source.one_of(sorted(CURVES)), source.whole(1, 2)
    curve, ridge = CURVES[name], source.chance(0.4)
    factor = source.sign() * source.one_of((1.0, 3.0, 1e-8, 1e6, source.random.random() + 0.1))
    inner = [source.one_of((1.0, 2.0, source.normal())) for _ in range(size)]
    shift = source.one_of((0.0, 0.0, 1.0, source.normal()))
    more = source.one_of((0.0, 0.0, source.normal()))
    starts = [source.normal() for _ in range(size)]
    if curve.positive:
        inner, shift, starts = ([abs(v) + 0.1 for v in inner], abs(shift), [abs(v) + 0.1 for v in starts])
    low = torch.tensor(starts, dtype=torch.float64)
    high = low + torch.tensor([source.one_of((1e-3, 0.3, 1.0, 2.0)) for _ in starts], dtype=torch.float64)
    slopes = torch.tensor(inner, dtype=torch.float64)

    def function(x):
        inside = (slopes * x).sum() + shift if ridge else slopes * x + shift
        outside = factor * curve.value(inside)
        outside = outside if ridge else outside.sum()
        return outside + more * x.square().sum() / 2 if more else outside

    def curvatures(point):
        a, b = list(map(Fraction, inner)), Fraction(shift)
        c, q = truths.high(factor), truths.high(more)
        if ridge:
            bend = c * curve.bend(truths.high(truths.dot(a, point) + b)) * truths.high(truths.dot(a, a))
            return [q + bend] + [q] * (len(point) - 1)
        return [q + c * truths.high(k * k) * curve.bend(truths.high(k * z + b)) for k, z in zip(a, point, strict=True)]

    text = f"{factor} * {name}({inner} x + {shift}){' of the sum' if ridge else ''} + {more}/2 |x|^2"
    convex = True if factor * curve.bends > 0 and more >= 0 else None
    made = Written(text, function, low, high, convex, curvatures=curvatures)
    lowest = min(made.known_curvatures()[0])
    return made if convex or lowest >= 0 else Written(text, function, low, high, False, curvatures=curvatures)


def _in_place(change: Callable[[Tensor], object], after: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def function(x):
        y = 1 * x
        change(y)
        return after(y)

    return function


def _alias(x):
    y = 1 * x
    z = y
    z *= 2
    return (y.square() + z.square()).sum()


def _set_first(y) -> None:
    y[0] = 3.0


def _hooked(factor: float) -> nn.Module:
    layer = nn.Identity()
    layer.register_forward_hook(lambda module, given, out: factor * out)
    return layer


def _squares(x):
    return x.square().sum()


W, V = torch.tensor([[1.0, 2.0], [3.0, -1.0]]).double(), torch.tensor([[2.0, 1.0], [-1.0, 4.0]]).double()
C = torch.tensor([0.5, -0.25]).double()

# All of two variables. What intervals do not know must be refused; what they know must be right.
WAYS = {
    "add(c, x^2, alpha=3)": lambda x: torch.add(C, x.square(), alpha=3).sum(),
    "add(x, x^2, alpha=3)": lambda x: torch.add(x, x.square(), alpha=3).sum(),
    "sub(c, x, alpha=2)^2": lambda x: torch.sub(C, x, alpha=2).square().sum(),
    "rsub(x, c, alpha=2)^2": lambda x: torch.rsub(x, 1.0, alpha=2).square().sum(),
    "an alias changed in place": _alias,
    "exp_": _in_place(torch.exp_, torch.sum),
    ".exp_()": _in_place(lambda y: y.exp_(), torch.sum),
    "square_": _in_place(torch.square_, _squares),
    "mul_(3)": _in_place(lambda y: y.mul_(3), _squares),
    "add_(y, alpha=2)": _in_place(lambda y: y.add_(y, alpha=2), _squares),
    "y[0] = 3": _in_place(_set_first, _squares),
    "neg_": _in_place(lambda y: y.neg_(), lambda y: y.exp().sum()),
    "((x W) @ V)[0]": lambda x: ((x * W) @ V)[0].square().sum(),
    "linear(x W, V)[0]": lambda x: functional.linear(x * W, V)[0].square().sum(),
    "V @ (x W)": lambda x: (V @ (x * W))[0].square().sum(),
    "W @ x": lambda x: (W @ x).square().sum(),
    "x @ W": lambda x: (x @ W).square().sum(),
    "x @ W @ x": lambda x: x @ W @ x,
    "linear with a bias": lambda x: functional.linear(x, W, C).square().sum(),
    "addmv": lambda x: torch.addmv(C, W, x, alpha=2).square().sum(),
    "softplus of beta 2": lambda x: functional.softplus(x, beta=2).sum(),
    "softplus, beta 3 by position": lambda x: functional.softplus(x, 3.0).sum(),
    "a mask by ==": lambda x: ((0 * x == 0) * 5 * x.square()).sum(),
    "a mask by eq": lambda x: (torch.eq(0 * x, 0) * 5 * x.square()).sum(),
    "a mask by >": lambda x: ((x > -100) * 5 * x.square()).sum(),
    "isinstance": lambda x: 3 * _squares(x) if isinstance(x, Tensor) else _squares(x),
    "a hook": lambda x: _hooked(3.0)(x).square().sum(),
    "pow(2, x)": lambda x: torch.pow(2.0, x).sum(),
    "x^1.5 above 2": lambda x: ((x + 2) ** 1.5).sum(),
    "x^-2 above 2": lambda x: ((x + 2) ** -2).sum(),
    "x^x above 2": lambda x: ((x + 2) ** (x + 2)).sum(),
    "einsum": lambda x: torch.einsum("i,ij,j->", x, W, x),
    "cumsum": lambda x: torch.cumsum(x, 0).square().sum(),
    "prod": lambda x: x.prod(),
    "x0 x1": lambda x: x[0] * x[1],
    "x0 / (2 + x1)": lambda x: x[0] / (2 + x[1]),
    "c / (2 + x)": lambda x: (C / (2 + x)).sum(),
    "x[[0, 0]]": lambda x: x[[0, 0]].square().sum(),
    "x[-1]": lambda x: x[-1].square() + 3 * x[0].square(),
    "x[..., 0]": lambda x: x[..., 0].square() + x[1].square(),
    "flip": lambda x: (x.flip(0) * x).sum(),
    "a loop": lambda x: sum(value * value for value in x),
    "stack": lambda x: torch.stack([x[0], x[0] + x[1]]).square().sum(),
    "cat": lambda x: torch.cat([x, 2 * x]).square().sum(),
    "outer": lambda x: torch.outer(x, x).sum(),
    "logsumexp": lambda x: torch.logsumexp(3 * x, 0),
    "logsumexp of all": lambda x: x.logsumexp(dim=-1),
    "log_softmax": lambda x: -torch.log_softmax(2 * x, 0)[0],
    "sum over a dim": lambda x: x.sum(dim=0).square(),
    "sum of rows": lambda x: (x * W).sum(1).square().sum(),
    "sum of columns": lambda x: (x * W).sum(0).square().sum(),
    "mean": lambda x: 4 * torch.mean(x.square(), 0),
    "var": lambda x: x.var(),
    "norm": lambda x: torch.linalg.vector_norm(x + 3).square(),
    "root of squares": lambda x: (1 + x @ x).sqrt(),
    "exp of squares": lambda x: torch.exp(x.square().sum()),
    "sin of a product": lambda x: torch.sin(x[0] * x[1]),
    "sigmoid times": lambda x: torch.sigmoid(x @ C) * x[0],
    "tanh of a layer": lambda x: torch.tanh(functional.linear(x, W)) @ C,
    "addcmul": lambda x: torch.addcmul(x, x, x, value=2.0).sum(),
    "lerp": lambda x: torch.lerp(x, x.square(), 0.75).sum(),
    "square(reshape)": lambda x: x.reshape(1, 2).square().sum(),
    "x^T x": lambda x: (x[None] @ x[:, None]).sum(),
    "a column times a row": lambda x: (x[:, None] * x[None]).sum(),
    "broadcast": lambda x: (x + x[:, None]).square().sum(),
    "in float32": lambda x: x.float().square().sum(),
    "where": lambda x: torch.where(x > -100, 3 * x, x).square().sum(),
    "maximum": lambda x: torch.maximum(x, -100 + 0 * x).square().sum(),
    "div, rounded": lambda x: (x.square() + 0 * torch.div(x, 0.7, rounding_mode="floor")).sum(),
}
KINKS = {
    "softplus with a threshold": lambda x: (functional.softplus(x, 1.0, 1.0) + 5 * x.square()).sum(),
    "softplus, threshold=0.5": lambda x: (functional.softplus(x, threshold=0.5) + 5 * x.square()).sum(),
    "|x| x^0": lambda x: x.abs().sum() + x.square().sum(),
    "relu": lambda x: torch.relu(x + 0.5).sum() + x.square().sum(),
    "floor": lambda x: (torch.div(x, 0.7, rounding_mode="floor") * x + x.square()).sum(),
    "clamp": lambda x: (x.clamp(max=0.5) + x.square()).sum(),
    "a branch": lambda x: _squares(x) if x.sum() > 0 else 3 * _squares(x),
}


def way_of_writing(source: Source) -> Written:
    kinked = source.chance(0.15)
    text = source.one_of(sorted(KINKS if kinked else WAYS))
    centre = torch.tensor([source.one_of((0.0, 0.0, 0.25)) for _ in range(2)], dtype=torch.float64)
    made = Written(text, (KINKS if kinked else WAYS)[text], centre - 1, centre + 1, kinked=kinked)
    if kinked:
        return made
    values, error = made.known_curvatures()
    below = bool(values) and min(values) < -error * max(map(abs, values)) - 1e-6
    return Written(made.text, made.function, made.low, made.high, convex=False if below else None)


def cancelling(source: Source) -> Written:
    """Convex (or concave) functions whose values lose most of their digits on the way."""
    dtype = source.one_of((torch.float32, torch.float32, torch.float64, torch.float64, torch.float16, torch.bfloat16))
    digits = -math.log10(torch.finfo(dtype).eps)
    big = 10.0 ** source.random.uniform(0, 0.9 * digits)
    size = source.whole(1, 3)
    ends = torch.ones(size, dtype=dtype)
    concave = source.chance(0.2)
    ways = {
        "(x + B)^2 - n B^2": lambda x: (x + big).square().sum() - size * big * big,
        "logsumexp(x + B) - B": lambda x: torch.logsumexp(x + big, 0) - big,
        "(3x).sum() - 3 x.sum()": lambda x: (3 * x).sum() - 3 * x.sum(),
        "B (x + 1) - B x - B": lambda x: (big * (x + 1) - big * x - big).sum(),
        "exp(x) + B - B": lambda x: (x.exp() + big - big).sum(),
        "(x / 3 + B) - B": lambda x: (x / 3 + big - big).sum(),
    }
    text = source.one_of(sorted(ways))
    # The linear ones are convex both ways round.
    bent = text.startswith(("(x + B)^2", "exp")) or (text.startswith("logsumexp") and size > 1)
    function = ways[text]
    if concave:
        return Written(f"-({text}), B = {big}", lambda x: -function(x), -ends, ends, convex=not bent)
    return Written(f"{text}, B = {big}", function, -ends, ends, convex=True)
