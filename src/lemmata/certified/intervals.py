r"""Interval arithmetic on tensors, rounded outwards: every true result lies between the two ends."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = []  # for jets; users meet only the bounds that they prove

EPS = torch.finfo(torch.float64).eps
# What one step may be off by, in units in the last place: sums, products, quotients and roots by a half, the vectorised
# functions of torch by one, what jets compute of two sigmoids by less than five. A test measures 1.6 against 60 digits.
ULPS = 8
TINY = 1e-300  # where results are subnormal, or an exponential has become 0
LARGEST_ANGLE = 1e6  # up to about it an extreme missed by rounding is too near to an end to show


class Interval:
    r"""Entrywise enclosures $[l, h]$ of tensors; the usual operations enclose all results.

    $$ x \in [l_x, h_x],\ y \in [l_y, h_y] \quad\Rightarrow\quad x \circ y \in [l_x, h_x] \circ [l_y, h_y] $$

    Shapes:
        low, high: (...), float64

    Claims: smooth.descent_lemma, convex.strong

    >>> product = Interval(torch.tensor(-1.0), torch.tensor(2.0)) * Interval(torch.tensor(3.0), torch.tensor(4.0))
    >>> round(product.low.item(), 6), round(product.high.item(), 6)
    (-4.0, 8.0)
    """

    def __init__(self, low: Tensor, high: Tensor | None = None) -> None:
        high = low if high is None else high
        self.low, self.high = low.double(), high.double()

    @property
    def size(self) -> Tensor:
        """The largest absolute value inside."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def __getitem__(self, index) -> "Interval":
        return Interval(self.low[index], self.high[index])

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def __add__(self, other: "Interval") -> "Interval":
        return _round_outward(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Interval") -> "Interval":
        products = torch.stack(torch.broadcast_tensors(
            self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high
        ))  # fmt: skip
        return _round_outward(products.amin(0), products.amax(0))

    def power(self, exponent: int) -> "Interval":
        """A whole power; an even one is never negative."""
        if exponent == 0:
            return Interval(torch.ones_like(self.low))
        low, high = self.low**exponent, self.high**exponent
        if exponent % 2 == 0:
            inside = (self.low <= 0) & (self.high >= 0)
            low, high = torch.where(inside, 0.0, torch.minimum(low, high)), torch.maximum(low, high)
        return _round_outward(low, high)

    def reciprocal(self) -> "Interval":
        if bool(((self.low <= 0) & (self.high >= 0)).any()):
            raise ArithmeticError("an interval that holds 0 has no reciprocal")
        return _round_outward(1 / self.high, 1 / self.low)

    def increasing(self, function: Callable[[Tensor], Tensor]) -> "Interval":
        """The image under an increasing function."""
        return _round_outward(function(self.low), function(self.high))

    def even_falling(self, function: Callable[[Tensor], Tensor]) -> "Interval":
        """The image under an even function that falls away from 0."""
        inside = (self.low <= 0) & (self.high >= 0)
        nearest = torch.where(inside, 0.0, torch.minimum(self.low.abs(), self.high.abs()))
        return _round_outward(function(self.size), function(nearest))

    def cosine(self) -> "Interval":
        """1 where a multiple of 2 pi lies inside, -1 where one does between them; else the larger end."""
        return self._wave_interval(torch.cos, top=0.0, bottom=math.pi)

    def sine(self) -> "Interval":
        return self._wave_interval(torch.sin, top=math.pi / 2, bottom=-math.pi / 2)

    def _wave_interval(self, function: Callable[[Tensor], Tensor], top: float, bottom: float) -> "Interval":
        if bool((self.size > LARGEST_ANGLE).any()):
            raise ArithmeticError("the wave at so large an angle is not resolved")
        high, low = (
            torch.ceil((self.low - peak) / math.tau) <= torch.floor((self.high - peak) / math.tau)
            for peak in (top, bottom)
        )
        ends = torch.stack([function(self.low), function(self.high)])
        found = _round_outward(ends.amin(0), ends.amax(0))
        return Interval(torch.where(low, -1.0, found.low), torch.where(high, 1.0, found.high))

    def sum(self, dim: int) -> "Interval":
        # Enough for additions in any order, of which torch takes a good one
        lost = self.low.shape[dim] * EPS * self.size.sum(dim)
        return _round_outward(self.low.sum(dim) - lost, self.high.sum(dim) + lost)

    def mapped(self, matrix: Tensor) -> "Interval":
        """The image of the first axis under a matrix of exact numbers: each end takes the sign of the entry."""
        positive, negative = matrix.double().clamp(min=0.0), matrix.double().clamp(max=0.0)
        lost = 2 * matrix.shape[1] * EPS * torch.tensordot(matrix.double().abs(), self.size, 1)
        low = torch.tensordot(positive, self.low, 1) + torch.tensordot(negative, self.high, 1)
        high = torch.tensordot(positive, self.high, 1) + torch.tensordot(negative, self.low, 1)
        return _round_outward(low - lost, high + lost)


def _round_outward(low: Tensor, high: Tensor) -> Interval:
    return Interval(low - ULPS * EPS * low.abs() - TINY, high + ULPS * EPS * high.abs() + TINY)
