r"""Certified curvature: enclosures of every Hessian of a function over a box, by intervals that carry derivatives."""

import heapq
import itertools
import math
from typing import Any

import torch
from torch import Tensor

from lemmata.foundations.analysis.function_values import Function
from lemmata.foundations.analysis.intervals import Interval
from lemmata.foundations.analysis.regions import Box

__all__ = ["curvature_bounds"]

SYNONYMS = {
    "multiply": "mul", "subtract": "sub", "negative": "neg", "mv": "matmul", "dot": "matmul",
    "div": "truediv", "divide": "truediv", "true_divide": "truediv",
}  # fmt: skip
PIECES = 200  # the most that a box is cut into
TIGHT = 1.01  # the box is cut until the bound is within one part in a hundred of what was seen


def curvature_bounds(f: Function, box: Box, seen: float, aim: str) -> tuple[float, float] | None:
    r"""Two numbers between which lie all eigenvalues of all Hessians of a function over a box.

    $$ \nabla^2 f(x) \in [C - \Delta, C + \Delta] \ \Rightarrow\
       \lambda_{\min}(C) - \|\Delta\|_\infty \le \lambda_i(\nabla^2 f(x)) \le \lambda_{\max}(C) + \|\Delta\|_\infty $$

    The box is cut where the bound is worst, until it is close to `seen`, the extreme that a search has found: of the
    size ("largest") or of the least eigenvalue ("least"). None where the function does what intervals do not know:
    they know sums, products, whole powers, quotients, linear maps, exp, log, sqrt, sin, cos, tanh, sigmoid, softplus.

    Shapes:
        f: one vector (n,) to one number

    Claims: smooth.descent_lemma, convex.strong

    >>> from lemmata.foundations.regions import box_region
    >>> low, high = curvature_bounds(lambda x: torch.sin(x).sum(), box_region((0.0, 9.0)), 1.0, "largest")
    >>> -1.01 < low <= -1, 1 <= high < 1.01
    (True, True)
    """
    order = itertools.count()

    def piece(low: Tensor, high: Tensor) -> tuple:
        least, largest = _eigenvalue_bounds(f, low, high)
        worst = max(-least, largest) if aim == "largest" else -least
        return (-worst, next(order), low, high, least, largest)

    try:
        heap = [piece(box.low.double(), box.high.double())]
    except (TypeError, AttributeError, ArithmeticError, RuntimeError, ValueError, IndexError, NotImplementedError):
        return None
    target = seen if aim == "largest" else -seen
    enough = target + (TIGHT - 1) * abs(target)
    while len(heap) < PIECES and -heap[0][0] > enough:
        _, _, low, high, _, _ = heapq.heappop(heap)
        axis = int(((high - low) / box.width).argmax())
        middle = (low[axis] + high[axis]) / 2
        left, right = high.clone(), low.clone()
        left[axis] = right[axis] = middle
        heapq.heappush(heap, piece(low, left))
        heapq.heappush(heap, piece(right, high))
    return min(entry[4] for entry in heap), max(entry[5] for entry in heap)


def _eigenvalue_bounds(f: Function, low: Tensor, high: Tensor) -> tuple[float, float]:
    n = len(low)
    start = Jet(Interval(low, high), Interval(torch.eye(n)), Interval(torch.zeros(n, n, n)))
    bend = f(start).bend  # type: ignore[arg-type, attr-defined]
    bend = Interval(bend.low.reshape(n, n), bend.high.reshape(n, n))
    if not (bend.low.isfinite().all() and bend.high.isfinite().all()):
        raise ArithmeticError("the enclosure is infinite")
    centre, radius = (bend.low + bend.high) / 2, (bend.high - bend.low) / 2
    values = torch.linalg.eigvalsh((centre + centre.T) / 2)
    # Rounding of the centre and of the eigenvalues, far below what the radius usually is.
    rounding = 8 * n * torch.finfo(centre.dtype).eps * float(centre.norm())
    spread = float(radius.sum(1).max()) + rounding
    return float(values[0]) - spread, float(values[-1]) + spread


class Jet:
    """An expression over a box: enclosures of its value, its gradient and its Hessian. Stands in for a tensor."""

    def __init__(self, value: Interval, slope: Interval, bend: Interval) -> None:
        shape, n = value.low.shape, slope.low.shape[-1]
        self.value = value
        self.slope = Interval(slope.low.expand(*shape, n), slope.high.expand(*shape, n))
        self.bend = Interval(bend.low.expand(*shape, n, n), bend.high.expand(*shape, n, n))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> "Jet":
        name = str(function.__name__).strip("_")
        name = SYNONYMS.get(name, name)
        if name == "linear":
            return _linear(*args, **(kwargs or {}))
        first, *rest = args
        if isinstance(first, Jet):
            plain = getattr(first, name, None) or getattr(first, f"__{name}__")
            return plain(*rest, **(kwargs or {}))
        return getattr(rest[0], f"__r{name}__")(first)

    @property
    def shape(self) -> torch.Size:
        return self.value.low.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index) -> "Jet":
        if not isinstance(index, int | slice):
            raise NotImplementedError
        return Jet(self.value[index], self.slope[index], self.bend[index])

    def __neg__(self) -> "Jet":
        return Jet(-self.value, -self.slope, -self.bend)

    def __add__(self, other) -> "Jet":
        if isinstance(other, Jet):
            return Jet(self.value + other.value, self.slope + other.slope, self.bend + other.bend)
        return Jet(self.value + _exactly(other), self.slope, self.bend)

    def __mul__(self, other) -> "Jet":
        if other is self:
            return self**2
        if not isinstance(other, Jet):
            return self._scaled(_exactly(other))
        a, b = self, other
        slope = a.value[..., None] * b.slope + b.value[..., None] * a.slope
        cross = a.slope[..., :, None] * b.slope[..., None, :] + a.slope[..., None, :] * b.slope[..., :, None]
        bend = a.value[..., None, None] * b.bend + b.value[..., None, None] * a.bend + cross
        return Jet(a.value * b.value, slope, bend)

    def __truediv__(self, other) -> "Jet":
        if isinstance(other, Jet):
            return self * other.reciprocal()
        return self._scaled(_exactly(other).reciprocal())

    def _scaled(self, by: Interval) -> "Jet":
        return Jet(self.value * by, self.slope * by[..., None], self.bend * by[..., None, None])

    def __sub__(self, other) -> "Jet":
        return self + (-other)

    def __rsub__(self, other) -> "Jet":
        return -self + other

    def __rtruediv__(self, other) -> "Jet":
        return self.reciprocal() * other

    def __rmatmul__(self, matrix) -> "Jet":
        return self._mapped(matrix)

    def __matmul__(self, other) -> "Jet":
        return (self * other).sum() if isinstance(other, Jet) else self._mapped(other.mT if other.ndim > 1 else other)

    def _mapped(self, matrix: Tensor) -> "Jet":
        rows = matrix.detach().reshape(-1, matrix.shape[-1])
        shape = matrix.shape[:-1]
        parts = [part.mapped(rows) for part in (self.value, self.slope, self.bend)]
        return Jet(
            *(Interval(p.low.reshape(shape + p.low.shape[1:]), p.high.reshape(shape + p.low.shape[1:])) for p in parts)
        )

    __radd__, __rmul__ = __add__, __mul__

    def sum(self, dim=None) -> "Jet":
        if self.ndim == 0:
            return self
        if self.ndim != 1 or dim not in (None, 0, -1):
            raise NotImplementedError
        return Jet(self.value.sum(0), self.slope.sum(0), self.bend.sum(0))

    def mean(self, dim=None) -> "Jet":
        return self.sum(dim) / len(self)

    def reshape(self, *shape) -> "Jet":
        if self.ndim > 1 or shape not in ((-1,), ((-1,),)):
            raise NotImplementedError
        return self if self.ndim else Jet(self.value[None], self.slope[None], self.bend[None])

    def _through(self, value: Interval, first: Interval, second: Interval) -> "Jet":
        """The chain rule for a function of one variable."""
        outer = self.slope[..., :, None] * self.slope[..., None, :]
        squares = self.slope.power(2)
        for end, tight in ((outer.low, squares.low), (outer.high, squares.high)):
            end.diagonal(dim1=-2, dim2=-1).copy_(tight)  # a square is never negative: tighter than the product
        bend = second[..., None, None] * outer + first[..., None, None] * self.bend
        return Jet(value, first[..., None] * self.slope, bend)

    def __pow__(self, exponent) -> "Jet":
        if exponent == 0.5:
            return self.sqrt()
        u, k = self.value, int(exponent)
        if k != exponent:
            raise NotImplementedError
        if k < 0:
            return (self**-k).reciprocal()
        # The factors k and k - 1 are 0 where the powers below them would be negative.
        first, second = u.power(max(k - 1, 0)) * _exactly(k), u.power(max(k - 2, 0)) * _exactly(k * (k - 1))
        return self._through(u.power(k), first, second)

    def square(self) -> "Jet":
        return self**2

    def reciprocal(self) -> "Jet":
        r = self.value.reciprocal()
        return self._through(r, -r.power(2), r.power(3) * _exactly(2))

    def sqrt(self) -> "Jet":
        if not bool((self.value.low > 0).all()):
            raise ArithmeticError("the root bends without bound at 0")
        root = self.value.increasing(torch.sqrt)
        first = root.reciprocal() * _exactly(0.5)
        return self._through(root, first, -(root.power(3).reciprocal() * _exactly(0.25)))

    def exp(self) -> "Jet":
        e = self.value.increasing(torch.exp)
        return self._through(e, e, e)

    def log(self) -> "Jet":
        if not bool((self.value.low > 0).all()):
            raise ArithmeticError("the logarithm needs positive values")
        r = self.value.reciprocal()
        return self._through(self.value.increasing(torch.log), r, -r.power(2))

    def cos(self) -> "Jet":
        c = self.value.cosine()
        return self._through(c, -_sine(self.value), -c)

    def sin(self) -> "Jet":
        s = _sine(self.value)
        return self._through(s, self.value.cosine(), -s)

    def tanh(self) -> "Jet":
        t = self.value.increasing(torch.tanh)
        first = self.value.even_falling(lambda u: 4 * torch.sigmoid(2 * u) * torch.sigmoid(-2 * u))
        return self._through(t, first, t * first * _exactly(-2))

    def sigmoid(self) -> "Jet":
        first = self.value.even_falling(_sigmoid_slope)
        turn = self.value.increasing(lambda u: torch.tanh(u / 2))
        return self._through(self.value.increasing(torch.sigmoid), first, -(first * turn))

    def softplus(self, beta=1.0, *_) -> "Jet":
        if beta != 1:
            raise NotImplementedError
        value = self.value.increasing(lambda u: torch.logaddexp(u, torch.zeros_like(u)))
        return self._through(value, self.value.increasing(torch.sigmoid), self.value.even_falling(_sigmoid_slope))

    def logsumexp(self, *_, **__) -> "Jet":
        if self.ndim != 1:
            raise NotImplementedError
        shift = float(self.value.high.max())
        return (self - shift).exp().sum().log() + shift


def _sigmoid_slope(u: Tensor) -> Tensor:
    return torch.sigmoid(u) * torch.sigmoid(-u)


def _sine(u: Interval) -> Interval:
    return (u + _exactly(-math.pi / 2)).cosine()


def _linear(jet: Jet, weight: Tensor, bias: Tensor | None = None) -> Jet:
    found = jet._mapped(weight)
    return found if bias is None else found + bias.detach()


def _exactly(value: Any) -> Interval:
    """A number or a tensor of numbers that are known, in all their digits."""
    return Interval(torch.as_tensor(value, dtype=torch.float64).detach())
