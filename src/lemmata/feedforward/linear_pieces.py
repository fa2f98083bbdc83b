r"""One input: the pieces on which a ReLU network is affine, by propagating breakpoints layer by layer.

A piece is an interval on which every unit so far keeps its sign. The units of the next layer are affine on it, so that
each crosses zero there at most once: where its signs at the two ends differ. Both signs are proved: by a bound on
rounding, or in fractions.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata.certified.error_free import SMALLEST, two_product, two_sum
from lemmata.feedforward.relu_program import Add, Affine, Coefficients, ExactUnits, Rectify, Remember, Step

__all__ = []  # for linear_regions

SLACK = 1 + 2.0**-40  # for the rounding of the bounds themselves, which are sums of a few terms
BORDER = -1  # the source of an end that no unit made


@dataclass(frozen=True, eq=False)
class Ends:
    """One end of every piece: where, how far off at most, and the layer and unit that vanish there."""

    place: Float[Tensor, "pieces"]
    bound: Float[Tensor, "pieces"]
    layer: Int[Tensor, "pieces"]
    unit: Int[Tensor, "pieces"]

    @classmethod
    def at(cls, place: float, device: torch.device) -> "Ends":
        where = torch.tensor([place], dtype=torch.float64, device=device)
        border = torch.full((1,), BORDER, device=device)
        return cls(where, torch.zeros_like(where), border, border)

    def __getitem__(self, pieces: Tensor) -> "Ends":
        return Ends(self.place[pieces], self.bound[pieces], self.layer[pieces], self.unit[pieces])

    def merged(self, here: Tensor, other: "Ends") -> "Ends":
        """These ends, and the other ones where `here` is false."""
        mine, theirs = vars(self).values(), vars(other).values()
        return Ends(*(torch.where(here, a, b) for a, b in zip(mine, theirs, strict=True)))


@dataclass(frozen=True, eq=False)
class Pieces:
    """All pieces from left to right, with the active units of each layer."""

    left: Ends
    right: Ends
    history: "History"
    outputs: Coefficients


class History:
    """Which units of each layer are active on which piece, and which piece each piece was cut from."""

    def __init__(self) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []

    def pattern(self, piece: int, layers: int) -> tuple[tuple[bool, ...], ...]:
        """The active units on one of the newest pieces, in the first layers."""
        found = []
        for parents, active in reversed(self.layers):
            found.append(tuple(active[piece].tolist()))
            piece = int(parents[piece])
        return tuple(reversed(found))[:layers]

    def patterns(self, pieces: int, device: torch.device) -> list[Bool[Tensor, "pieces units"]]:
        """The active units of all newest pieces, layer by layer."""
        found, ancestors = [], torch.arange(pieces, device=device)
        for parents, active in reversed(self.layers):
            found.append(active[ancestors])
            ancestors = parents[ancestors]
        return found[::-1]


def linear_pieces(steps: list[Step], low: float, high: float, device: torch.device) -> tuple[Pieces, int]:
    """The pieces on [low, high], and how many signs needed fractions."""
    exact = ExactUnits(steps, dimensions=1)
    border = (Fraction(low), Fraction(high))
    left, right = Ends.at(low, device), Ends.at(high, device)
    hidden, history = Coefficients.of_input(1, device), History()
    remembered, adds = hidden, any(isinstance(step, Add) for step in steps)
    for step in steps:
        if isinstance(step, Affine):
            hidden = hidden.affine(step)
        elif isinstance(step, Remember):
            remembered = hidden
        elif isinstance(step, Add):
            hidden = hidden.plus(remembered, step.projection)
        elif isinstance(step, Rectify):
            proof = _Proof(exact, border, history, left, right)
            parents, left, right, active = _cut_pieces(hidden, left, right, proof)
            hidden, remembered = hidden[parents].rectified(active, step.slope), remembered[parents] if adds else hidden
            history.layers.append((parents, active))
    return Pieces(left, right, history, hidden), exact.asked


@dataclass(frozen=True, eq=False)
class _Proof:
    """Answers in fractions about the pieces as they are before the cut."""

    exact: ExactUnits
    border: tuple[Fraction, Fraction]
    history: History
    left: Ends
    right: Ends

    @property
    def layer(self) -> int:
        return len(self.history.layers)

    def units(self, piece: int, layers: int) -> list[list[Fraction]]:
        return self.exact.units(self.history.pattern(piece, layers))

    def end(self, piece: int, side: int) -> Fraction:
        ends = (self.left, self.right)[side]
        layer = int(ends.layer[piece])
        if layer == BORDER:
            return self.border[side]
        slope, constant = self.units(piece, layer)[int(ends.unit[piece])]
        return -constant / slope

    def sign(self, piece: int, unit: int, side: int) -> int:
        self.exact.asked += 1
        slope, constant = self.units(piece, self.layer)[unit]
        value = slope * self.end(piece, side) + constant
        return (value > 0) - (value < 0)

    def zero(self, piece: int, unit: int) -> Fraction:
        self.exact.asked += 1
        slope, constant = self.units(piece, self.layer)[unit]
        return -constant / slope


def _cut_pieces(units: Coefficients, left: Ends, right: Ends, proof: _Proof) -> tuple[Tensor, Ends, Ends, Tensor]:
    """Cut every piece where a unit changes its sign: parents, ends and active units of the new pieces."""
    signs = [_end_signs(units, ends, side, proof) for side, ends in enumerate((left, right))]
    crossing = signs[0] * signs[1] < 0  # (pieces, units)
    piece, unit = crossing.nonzero(as_tuple=True)
    zero = _crossing_zeros(units, piece, unit, proof)
    order = zero.place.argsort(stable=True)
    order = order[piece[order].argsort(stable=True)]
    piece, unit, zero = piece[order], unit[order], zero[order]
    order, fresh = _settle_crossings(piece, unit, zero, proof)
    unit, zero = unit[order], zero[order]  # the pieces are in order already

    count = left.place.new_zeros(len(left.place), dtype=torch.long).index_add(0, piece, fresh.long())
    parents = torch.repeat_interleave(count + 1)
    begin = torch.cat([count.new_zeros(1), (count + 1).cumsum(0)])  # where the pieces of each parent begin
    inside = torch.arange(len(parents), device=parents.device) - begin[parents]

    # Breakpoint number b of a parent lies between its pieces b and b + 1.
    run = fresh.long().cumsum(0)  # (crossings): how many breakpoints up to here, of all parents
    before = torch.cat([count.new_zeros(1), count.cumsum(0)])
    rank = run - 1 - before[piece]
    ranks = torch.full(crossing.shape, -1, dtype=torch.long, device=parents.device)
    ranks[piece, unit] = rank
    breaks, number = zero[fresh], before[parents] + inside  # the number of the breakpoint at the right of each piece
    if len(breaks.place):
        first, last = inside == 0, inside == count[parents]
        lefts = left[parents].merged(first, breaks[(number - 1).clamp(min=0)])
        rights = right[parents].merged(last, breaks[number.clamp(max=len(breaks.place) - 1)])
    else:
        lefts, rights = left[parents], right[parents]

    at_left, at_right = signs[0][parents] > 0, signs[1][parents] > 0
    sides = torch.where(inside[:, None] <= ranks[parents], at_left, at_right)
    active = torch.where(crossing[parents], sides, at_left | at_right)
    return parents, lefts, rights, active


def _end_signs(units: Coefficients, ends: Ends, side: int, proof: _Proof) -> Int[Tensor, "pieces units"]:
    """The signs of all units at one end of every piece, proved."""
    slope, constant = units.value.unbind(-1)
    slope_bound, constant_bound = units.bound.unbind(-1)
    place, off = ends.place[:, None].expand_as(slope), ends.bound[:, None]
    product, lost = two_product(slope, place)
    value, more = two_sum(product, constant)
    small = (slope != 0) & (place != 0) & (product.abs() < SMALLEST)  # then the remainder is rounded too, or both are 0
    inexact = torch.where(small, torch.full_like(product, SMALLEST), 0.0)
    bound = lost.abs() + more.abs() + slope.abs() * off + slope_bound * (place.abs() + off) + constant_bound + inexact
    bound = SLACK * torch.where(torch.isnan(bound), torch.inf, bound)
    signs = value.sign().long()
    # What overflowed is no number, and above no bound.
    for piece, unit in (~(value.abs() > bound) & (bound != 0)).nonzero().tolist():
        signs[piece, unit] = proof.sign(piece, unit, side)
    return signs


def _crossing_zeros(units: Coefficients, piece: Tensor, unit: Tensor, proof: _Proof) -> Ends:
    """Where the crossing units vanish: exactly, where the quotient is exact; in fractions, where rounding ate it."""
    slope, constant = units.value[piece, unit].unbind(-1)
    slope_bound, constant_bound = units.bound[piece, unit].unbind(-1)
    place = -constant / slope
    product, lost = two_product(slope, place)
    rest, more = two_sum(product, constant)
    known = slope.abs() - slope_bound
    off = (rest.abs() + lost.abs() + more.abs() + constant_bound + place.abs() * slope_bound) / known
    nothing = (constant == 0) & (constant_bound == 0)  # then the place is exactly 0
    safe = (known > 0) & off.isfinite() & (nothing | (product.abs() >= SMALLEST))
    off = SLACK * off
    for index in (~safe).nonzero().flatten().tolist():
        place[index] = nearest = float(proof.zero(int(piece[index]), int(unit[index])))
        off[index] = math.ulp(nearest)
    return Ends(place, off, torch.full_like(unit, proof.layer), unit)


def _settle_crossings(piece: Tensor, unit: Tensor, zero: Ends, proof: _Proof) -> tuple[Tensor, Tensor]:
    """The crossings of each piece from left to right, and which of them lie where no other one was before."""
    order = torch.arange(len(piece), device=piece.device)
    fresh = torch.ones(len(piece), dtype=torch.bool, device=piece.device)
    together = piece[1:] == piece[:-1]
    apart = zero.place[1:] - zero.place[:-1] > SLACK * (zero.bound[1:] + zero.bound[:-1])
    # Two exact places that are equal are one breakpoint, and need no fractions.
    same = together & (zero.place[1:] == zero.place[:-1]) & (zero.bound[1:] + zero.bound[:-1] == 0)
    fresh[1:] = ~same
    for doubtful in piece[1:][together & ~apart & ~same].unique().tolist():
        entries = (piece == doubtful).nonzero().flatten()
        exactly = {entry: proof.zero(doubtful, int(unit[entry])) for entry in entries.tolist()}
        by_place = sorted(exactly, key=lambda entry: exactly[entry])
        order[entries] = torch.tensor(by_place, device=order.device)
        new = [i == 0 or exactly[e] != exactly[by_place[i - 1]] for i, e in enumerate(by_place)]
        fresh[entries] = torch.tensor(new, device=fresh.device)
    return order, fresh
