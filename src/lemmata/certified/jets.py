r"""Jets: intervals that carry derivatives, so that an expression's Hessian over a box is enclosed with its value."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lemmata.certified.intervals import Interval

__all__ = []  # for `enclosed`; users meet only its bounds

LARGEST_WHOLE = 2**53  # below it every integer is a number of double precision


class Jet:
    """An expression over boxes of n variables: enclosures of its value, its gradient and its Hessian in each box.

    Boxes are the last axis, so that whatever is done to entries of the expression is done in all boxes at once.

    Shapes:
        value: (..., boxes), slope: (..., n, boxes), bend: (..., n, n, boxes)
    """

    def __init__(self, value: Interval, slope: Interval, bend: Interval) -> None:
        *shape, boxes = value.low.shape
        n = slope.low.shape[-2]
        self.value = value
        self.slope = Interval(*(end.expand(*shape, n, boxes) for end in (slope.low, slope.high)))
        self.bend = Interval(*(end.expand(*shape, n, n, boxes) for end in (bend.low, bend.high)))

    @classmethod
    def variables(cls, low: Tensor, high: Tensor) -> "Jet":
        """The point itself, anywhere in the boxes; the ends are (n, boxes)."""
        n = len(low)
        return cls(Interval(low, high), Interval(torch.eye(n)[..., None]), Interval(torch.zeros(n, n, 1)))

    def constant(self, value: Any) -> "Jet":
        """A number or a tensor of numbers, as an expression of the same variables."""
        *_, n, boxes = self.slope.low.shape
        known = exactly(value).low
        everywhere = Interval(known.expand(*known.shape[:-1], boxes))
        return Jet(everywhere, Interval(torch.zeros(n, 1)), Interval(torch.zeros(n, n, 1)))

    @property
    def shape(self) -> torch.Size:
        """Of the expression in one box."""
        return self.value.low.shape[:-1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        """Of entries."""
        return self.shape.numel()

    @property
    def parts(self) -> tuple[Interval, Interval, Interval]:
        return self.value, self.slope, self.bend

    def taken(self, entries: Tensor) -> "Jet":
        """The entries with these numbers, counted row by row, in the shape of `entries`."""
        ends = []
        for part in self.parts:
            inner = part.low.shape[self.ndim :]
            ends.append([end.reshape(-1, *inner)[entries] for end in (part.low, part.high)])
        return Jet(*(Interval(low, high) for low, high in ends))

    def __neg__(self) -> "Jet":
        return Jet(-self.value, -self.slope, -self.bend)

    def __add__(self, other: Any) -> "Jet":
        if isinstance(other, Jet):
            return Jet(self.value + other.value, self.slope + other.slope, self.bend + other.bend)
        return Jet(self.value + exactly(other), self.slope, self.bend)

    def __mul__(self, other: Any) -> "Jet":
        if other is self:
            return self**2
        if not isinstance(other, Jet):
            return self._scaled_by(exactly(other))
        a, b = self, other
        slope = a.value[..., None, :] * b.slope + b.value[..., None, :] * a.slope
        cross = (
            a.slope[..., :, None, :] * b.slope[..., None, :, :] + a.slope[..., None, :, :] * b.slope[..., :, None, :]
        )
        bend = a.value[..., None, None, :] * b.bend + b.value[..., None, None, :] * a.bend + cross
        return Jet(a.value * b.value, slope, bend)

    def __truediv__(self, other: Any) -> "Jet":
        if isinstance(other, Jet):
            return self * other.reciprocal()
        return self._scaled_by(exactly(other).reciprocal())

    def _scaled_by(self, by: Interval) -> "Jet":
        return Jet(self.value * by, self.slope * by[..., None, :], self.bend * by[..., None, None, :])

    def mapped(self, matrix: Tensor) -> "Jet":
        """The image of the first axis under a matrix of known numbers."""
        known = exactly(matrix).low[..., 0]
        return Jet(*(part.mapped(known) for part in self.parts))

    def sum(self, axis: int) -> "Jet":
        return Jet(*(part.sum(axis) for part in self.parts))

    def through(self, value: Interval, first: Interval, second: Interval) -> "Jet":
        """The chain rule for a function of one variable."""
        outer = self.slope[..., :, None, :] * self.slope[..., None, :, :]
        squares = self.slope.power(2)
        for end, tight in ((outer.low, squares.low), (outer.high, squares.high)):
            # A square is never negative: tighter than the product
            end.diagonal(dim1=-3, dim2=-2).copy_(tight.mT)
        bend = second[..., None, None, :] * outer + first[..., None, None, :] * self.bend
        return Jet(value, first[..., None, :] * self.slope, bend)

    def __pow__(self, exponent: int | float) -> "Jet":
        if exponent == 0.5:
            return self.sqrt()
        u, k = self.value, int(exponent)
        if k != exponent:
            raise NotImplementedError(f"the power {exponent}")
        if k < 0:
            return (self**-k).reciprocal()
        # The factors k and k - 1 are 0 where the powers below them would be negative.
        first, second = u.power(max(k - 1, 0)) * exactly(k), u.power(max(k - 2, 0)) * exactly(k * (k - 1))
        return self.through(u.power(k), first, second)

    def reciprocal(self) -> "Jet":
        r = self.value.reciprocal()
        return self.through(r, -r.power(2), r.power(3) * exactly(2))

    def sqrt(self) -> "Jet":
        if not bool((self.value.low > 0).all()):
            raise ArithmeticError("the root bends without bound at 0")
        root = self.value.increasing(torch.sqrt)
        first = root.reciprocal() * exactly(0.5)
        return self.through(root, first, -(root.power(3).reciprocal() * exactly(0.25)))

    def exp(self) -> "Jet":
        e = self.value.increasing(torch.exp)
        return self.through(e, e, e)

    def log(self) -> "Jet":
        if not bool((self.value.low > 0).all()):
            raise ArithmeticError("the logarithm needs positive values")
        r = self.value.reciprocal()
        return self.through(self.value.increasing(torch.log), r, -r.power(2))

    def cos(self) -> "Jet":
        c = self.value.cosine()
        return self.through(c, -self.value.sine(), -c)

    def sin(self) -> "Jet":
        s = self.value.sine()
        return self.through(s, self.value.cosine(), -s)

    def tanh(self) -> "Jet":
        t = self.value.increasing(torch.tanh)
        first = self.value.even_falling(tanh_slope)
        return self.through(t, first, t * first * exactly(-2))

    def sigmoid(self) -> "Jet":
        first = self.value.even_falling(sigmoid_slope)
        turn = self.value.increasing(half_tanh)
        return self.through(self.value.increasing(torch.sigmoid), first, -(first * turn))

    def logsumexp(self, total: Callable[["Jet"], "Jet"]) -> "Jet":
        """The logarithm of the sum, given as `total`, of the exponentials; the largest entry is taken out first."""
        largest = self.value.high.flatten(0, -2).amax(0) if self.ndim else self.value.high
        shift = Interval(largest)
        below = Jet(self.value + -shift, self.slope, self.bend)
        found = total(below.exp()).log()
        return Jet(found.value + shift, found.slope, found.bend)

    def softplus(self) -> "Jet":
        slope = self.value.increasing(torch.sigmoid)
        return self.through(self.value.increasing(softplus), slope, self.value.even_falling(sigmoid_slope))


def sigmoid_slope(u: Tensor) -> Tensor:
    return torch.sigmoid(u) * torch.sigmoid(-u)


def tanh_slope(u: Tensor) -> Tensor:
    return 4 * torch.sigmoid(2 * u) * torch.sigmoid(-2 * u)


def half_tanh(u: Tensor) -> Tensor:
    return torch.tanh(u / 2)


def softplus(u: Tensor) -> Tensor:
    return torch.logaddexp(u, torch.zeros_like(u))


def exactly(value: Any) -> Interval:
    """A number or a tensor of numbers that are known, in all their digits: the same in every box, the last axis."""
    given = torch.as_tensor(value).detach().cpu()
    if given.is_complex():
        raise NotImplementedError("complex numbers")
    # A number of Python is double, of which torch would make single precision.
    found = given.double() if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.float64)
    if not given.is_floating_point() and bool((found.abs() >= LARGEST_WHOLE).any()):
        raise NotImplementedError("integers that double precision does not hold")
    return Interval(found[..., None])
