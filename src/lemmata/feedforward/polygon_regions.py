r"""Two inputs: the convex polygons on which a ReLU network is affine, by cutting them layer by layer.

A unit is affine on a polygon, so that it cuts it where its signs at the corners differ. Corners are crossings of two
lines whose coefficients are fractions: where the bound on rounding leaves a sign open, it is computed from these.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata.certified.rounding import gamma
from lemmata.feedforward.relu_program import Add, Affine, Coefficients, ExactUnits, Rectify, Remember, Step

__all__ = []  # for linear_regions

SLACK = 1 + 2.0**-40  # for the rounding of the bounds themselves, which are sums of a few terms
TINY = torch.finfo(torch.float64).tiny
AT_ONCE = 1 << 22  # signs of units at corners that are held at a time


@dataclass(frozen=True, eq=False)
class Polygons:
    """Corners in order, each with how far off it may be; side k goes from corner k to the next and has a source.

    The source is layer * width + unit of the unit that vanishes there, or -1 to -4 for a side of the box; `lines` and
    `line_bound` are its coefficients, and how wrong they may be. Rows are filled up with the first corner, which adds
    sides of length zero after the last.
    """

    corners: Float[Tensor, "regions corners 2"]
    bound: Float[Tensor, "regions corners"]
    lines: Float[Tensor, "regions corners 3"]
    line_bound: Float[Tensor, "regions corners 3"]
    sources: Int[Tensor, "regions corners"]
    size: Int[Tensor, "regions"]

    def __getitem__(self, regions: Tensor) -> "Polygons":
        return Polygons(*(part[regions] for part in vars(self).values()))

    @property
    def used(self) -> Bool[Tensor, "regions corners"]:
        return torch.arange(self.sources.shape[1], device=self.size.device) < self.size[:, None]


def box_polygon(low: tuple[float, float], high: tuple[float, float], device: torch.device) -> Polygons:
    """The box, from its lower left corner on against the clock: sides below, right, above, left."""
    corners = [[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]]
    places = torch.tensor([corners], dtype=torch.float64, device=device)
    sources, size = torch.tensor([[-1, -2, -3, -4]], device=device), torch.tensor([4], device=device)
    lines = torch.tensor([sides_of(low, high)], dtype=torch.float64, device=device)
    return Polygons(places, torch.zeros_like(places[..., 0]), lines, torch.zeros_like(lines), sources, size)


def sides_of(low: tuple[float, float], high: tuple[float, float]) -> list[tuple[float, float, float]]:
    return [(0.0, 1.0, -low[1]), (1.0, 0.0, -high[0]), (0.0, 1.0, -high[1]), (1.0, 0.0, -low[0])]


class PolygonCutter:
    """Cuts the box by one layer after the other; holds what fractions need."""

    def __init__(self, steps: list[Step], low: tuple[float, float], high: tuple[float, float]) -> None:
        self.steps, self.exact = steps, ExactUnits(steps, dimensions=2)
        widths = [len(step.weight) for step in steps if isinstance(step, Affine)]
        self.width = max(2, *widths) if widths else 2  # the inputs may be rectified too
        self.sides = [[Fraction(value) for value in side] for side in sides_of(low, high)]

    def run(self, polygons: Polygons) -> tuple[Polygons, list[Tensor], Coefficients]:
        """The regions, the active units of each layer on them, and their affine maps."""
        hidden = Coefficients.of_input(2, polygons.size.device)
        remembered, patterns = hidden, []
        for step in self.steps:
            if isinstance(step, Affine):
                hidden = hidden.affine(step)
            elif isinstance(step, Remember):
                remembered = hidden
            elif isinstance(step, Add):
                hidden = hidden.plus(remembered, step.projection)
            elif isinstance(step, Rectify):
                parents, polygons, active = self._cut_by_layer(polygons, hidden, patterns)
                hidden, remembered = hidden[parents].rectified(active, step.slope), remembered[parents]
                patterns = [*(pattern[parents] for pattern in patterns), active]
        return polygons, patterns, hidden

    def _cut_by_layer(
        self, polygons: Polygons, units: Coefficients, patterns: list[Tensor]
    ) -> tuple[Tensor, Polygons, Tensor]:
        step = max(1, AT_ONCE // (units.value.shape[1] * (polygons.sources.shape[1] + 4)))
        regions = torch.arange(len(polygons.size), device=polygons.size.device)
        done = [self._cut_until_uniform(polygons[part], units, patterns, part) for part in regions.split(step)]
        return _join_layers(done)

    def _cut_until_uniform(
        self, polygons: Polygons, units: Coefficients, patterns: list[Tensor], parents: Tensor
    ) -> tuple[Tensor, Polygons, Tensor]:
        """Cut until no unit has both signs on a polygon: in each round every polygon is cut by one of its units."""
        finished: list[tuple[Tensor, Polygons, Tensor]] = []
        while True:
            values, bounds = _corner_values(polygons, units[parents])  # (regions, corners, units)
            signs = self._corner_signs(values, bounds, polygons, patterns, parents)
            used = polygons.used[..., None]
            above, below = ((used & (signs * side > 0)).any(1) for side in (1, -1))  # (regions, units)
            cut = above & below
            open = cut.any(1)
            finished.append((parents[~open], polygons[~open], above[~open]))
            if not open.any():
                break
            unit = cut[open].long().argmax(1)  # any of them
            at = unit[:, None, None].expand(-1, signs.shape[1], 1)
            value, bound, sign = (part[open].gather(2, at)[..., 0] for part in (values, bounds, signs))
            source = len(patterns) * self.width + unit
            chosen = units[parents[open]]
            rows = torch.arange(len(unit), device=unit.device)
            line = chosen.value[rows, unit], chosen.bound[rows, unit]
            polygons, parents = polygons[open], parents[open]
            new = self._cut_corners(polygons, value, bound, sign, source, line, patterns, parents)
            halves = [_half_polygons(polygons, side * sign, source, line, new) for side in (1, -1)]
            polygons, parents = _join_polygons(halves), parents.repeat(2)
        return _join_layers(finished)

    def _cut_corners(
        self, polygons: Polygons, value: Tensor, bound: Tensor, sign: Tensor, source: Tensor,
        line: tuple[Tensor, Tensor], patterns: list[Tensor], parents: Tensor,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Where each side is cut, and how far off that may be: of three ways the first that knows, and knows best."""
        after = _corner_after(polygons)
        crossing, crossing_bound = _crossing_point(polygons, line)
        between, between_bound = _cut_sides(polygons, after, value, bound)
        better = (crossing_bound < between_bound)[..., None]
        corner, off = torch.where(better, crossing, between), torch.minimum(crossing_bound, between_bound)
        crossed = polygons.used & (sign * sign.gather(1, after) < 0)
        for region, side in (crossed & ~off.isfinite()).nonzero().tolist():  # in fractions, where rounding ate both
            pattern = [layer[parents[region]] for layer in patterns]
            lines = (
                self._line_of_side(int(polygons.sources[region, side]), pattern),
                self._line_of_side(int(source[region]), pattern),
            )
            x, y, weight = _cross_product(*lines)
            self.exact.asked += 1
            place = float(x / weight), float(y / weight)
            corner[region, side] = corner.new_tensor(place)
            off[region, side] = max(map(math.ulp, place))
        return corner, off

    def _corner_signs(
        self, values: Tensor, bounds: Tensor, polygons: Polygons, patterns: list[Tensor], parents: Tensor
    ) -> Int[Tensor, "regions corners units"]:
        signs = values.sign().to(torch.int8)
        # What overflowed is no number, and above no bound; what has the bound 0 is exact.
        doubt = ~(values.abs() > bounds) & (bounds != 0) & polygons.used[..., None]
        for sources in (
            polygons.sources,
            _side_before(polygons),
        ):  # a unit vanishes at both corners of the side it made
            unit = sources - len(patterns) * self.width  # (regions, corners)
            made = (unit >= 0)[..., None]
            index = unit.clamp(min=0)[..., None]
            signs.scatter_(2, index, torch.where(made, 0, signs.gather(2, index)))
            doubt.scatter_(2, index, torch.where(made, False, doubt.gather(2, index)))
        for region, corner, unit in doubt.nonzero().tolist():
            pattern = [layer[parents[region]] for layer in patterns]
            around = polygons.sources[region, : int(polygons.size[region])].tolist()
            lines = [self._line_of_side(around[index], pattern) for index in (corner - 1, corner)]
            signs[region, corner, unit] = self._exact_sign(
                lines, self._line_of_side(len(patterns) * self.width + unit, pattern)
            )
        return signs

    def _line_of_side(self, source: int, pattern: list[Tensor]) -> list[Fraction]:
        if source < 0:
            return self.sides[-source - 1]
        layer, unit = divmod(source, self.width)
        return self.exact.units(tuple(tuple(active.tolist()) for active in pattern[:layer]))[unit]

    def _exact_sign(self, lines: list[list[Fraction]], unit: list[Fraction]) -> int:
        """The sign of an affine function where two lines cross, by Cramer's rule."""
        self.exact.asked += 1
        x, y, weight = _cross_product(*lines)
        value = unit[0] * x + unit[1] * y + unit[2] * weight
        value = value if weight > 0 else -value
        return (value > 0) - (value < 0)


def _cross_product(first: list[Fraction], second: list[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
    """Where two lines cross, times a weight."""
    (a, b, c), (d, e, f) = first, second
    return b * f - c * e, c * d - a * f, a * e - b * d


def _corner_values(polygons: Polygons, units: Coefficients) -> tuple[Tensor, Tensor]:
    """All units at all corners, and how wrong they may be: not at all, at the origin, if they have no constant."""
    x, y = polygons.corners[:, :, None].unbind(-1)  # (regions, corners, 1)
    a, b, c = units.value[:, None].unbind(-1)  # (regions, 1, units)
    errors = units.bound[:, None].unbind(-1)
    off = polygons.bound[..., None]
    values = a * x + b * y + c
    size = a.abs() * x.abs() + b.abs() * y.abs() + c.abs()
    bounds = gamma(4) * size + (a.abs() + b.abs()) * off
    bounds = bounds + errors[0] * (x.abs() + off) + errors[1] * (y.abs() + off) + errors[2]
    bounds = SLACK * torch.where(torch.isnan(bounds), torch.inf, bounds) + TINY
    nothing = (x == 0) & (y == 0) & (off == 0) & (c == 0) & (errors[2] == 0)  # networks without biases meet there
    return values, torch.where(nothing, 0.0, bounds)


def _side_before(polygons: Polygons) -> Int[Tensor, "regions corners"]:
    """The source of the side that ends at each corner."""
    last = polygons.sources.gather(1, polygons.size[:, None] - 1)
    return torch.cat([last, polygons.sources[:, :-1]], dim=1)


def _corner_after(polygons: Polygons) -> Int[Tensor, "regions corners"]:
    """The number of the corner that follows each."""
    after = torch.arange(polygons.sources.shape[1], device=polygons.size.device) + 1
    return torch.where(after < polygons.size[:, None], after, 0)


def _half_polygons(
    polygons: Polygons, sign: Tensor, source: Tensor, line: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor]
) -> Polygons:
    """The part of every polygon where the sign is not negative: old corners, and new ones where sides are cut."""
    used, next_sign = polygons.used, sign.gather(1, _corner_after(polygons))
    crossed = used & (sign * next_sign < 0)
    kept = used & (sign >= 0)
    # On a new corner, or an old one on the line, the cut begins where the polygon would be left.
    leaves = next_sign < 0
    turns = (sign == 0) & leaves

    slots = torch.stack([kept, crossed], dim=-1).flatten(1)  # (regions, 2 corners): an old one, then a new one
    size = slots.sum(1)
    place = torch.where(slots, slots.cumsum(1) - 1, slots.shape[1])
    most = int(size.max())

    def filled(old: Tensor, new: Tensor) -> Tensor:
        both = torch.stack([old, new], dim=2).flatten(1, 2)
        room = both.new_zeros(len(both), slots.shape[1] + 1, *both.shape[2:])
        index = place.reshape(*place.shape, *[1] * (both.ndim - 2)).expand_as(both)
        room = room.scatter(1, index, both)[:, :most]
        free = torch.arange(most, device=size.device) >= size[:, None]
        return torch.where(free.reshape(*free.shape, *[1] * (both.ndim - 2)), room[:, :1], room)

    def sides(own: Tensor, cut: Tensor) -> Tensor:
        """Of each side its own value, or that of the cut where it begins."""
        cut = cut[:, None].expand_as(own)
        old, new = (mask.reshape(*mask.shape, *[1] * (own.ndim - 2)) for mask in (turns, leaves))
        return filled(torch.where(old, cut, own), torch.where(new, cut, own))

    lines, bounds = sides(polygons.lines, line[0]), sides(polygons.line_bound, line[1])
    corners, offs = filled(polygons.corners, new[0]), filled(polygons.bound, new[1])
    return Polygons(corners, offs, lines, bounds, sides(polygons.sources, source), size)


def _cut_sides(polygons: Polygons, after: Tensor, value: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
    """Where each side is cut, between its two corners: inherits how far off these are."""
    rows = torch.arange(len(value), device=value.device)[:, None]
    start, end = polygons.corners, polygons.corners[rows, after]
    rise, doubt = value - value[rows, after], bound + bound[rows, after]
    share = torch.where(rise == 0, 0.5, value / rise).clamp(0, 1)  # how far along the side
    wrong = 2 * doubt / (rise.abs() - doubt)  # of the share
    length, size = (end - start).abs().amax(-1), start.abs().amax(-1) + end.abs().amax(-1)
    off = torch.maximum(polygons.bound, polygons.bound[rows, after]) + length * wrong + gamma(6) * size
    return start + share[..., None] * (end - start), torch.where(rise.abs() > doubt, SLACK * off, torch.inf)


def _crossing_point(polygons: Polygons, line: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Where each side is cut, by Cramer's rule: depends on the two lines alone, and fails where they are parallel."""
    terms = [(polygons.lines[..., i], polygons.line_bound[..., i]) for i in range(3)]
    a, b, c = terms
    d, e, f = ((line[0][:, None, i], line[1][:, None, i]) for i in range(3))
    weight, weight_bound = _certified_determinant(a, e, b, d)
    x, x_bound = _certified_determinant(b, f, c, e)
    y, y_bound = _certified_determinant(c, d, a, f)
    place = torch.stack([x, y], dim=-1) / weight[..., None]
    known = weight.abs() - weight_bound
    largest = place.abs().amax(-1)
    off = (torch.maximum(x_bound, y_bound) + largest * weight_bound) / known + gamma(2) * largest
    return place, torch.where((known > 0) & off.isfinite(), SLACK * off, torch.inf)


def _certified_determinant(a: tuple, b: tuple, c: tuple, d: tuple) -> tuple[Tensor, Tensor]:
    """a b - c d, and how wrong it may be: not at all, if each product has a factor that is exactly 0."""
    exact = [(p[0] == 0) & (p[1] == 0) for p in (a, b, c, d)]
    sure = (exact[0] | exact[1]) & (exact[2] | exact[3])
    size = (a[0] * b[0]).abs() + (c[0] * d[0]).abs()
    carried = [p[0].abs() * q[1] + p[1] * q[0].abs() + p[1] * q[1] for p, q in ((a, b), (c, d))]
    # A product too small to be stored may be wrong by all of it.
    lost = SLACK * (gamma(3) * size + carried[0] + carried[1]) + torch.where(sure, 0.0, torch.full_like(size, TINY))
    return a[0] * b[0] - c[0] * d[0], lost


def _join_layers(parts: list[tuple[Tensor, Polygons, Tensor]]) -> tuple[Tensor, Polygons, Tensor]:
    parents, polygons, active = zip(*parts, strict=True)
    return torch.cat(parents), _join_polygons(list(polygons)), torch.cat(active)


def _join_polygons(parts: list[Polygons]) -> Polygons:
    """Several lists of polygons as one, rows filled up to the same length with their first corner."""
    most = max(part.sources.shape[1] for part in parts)

    def padded(values: Tensor) -> Tensor:
        missing = most - values.shape[1]
        return torch.cat([values, values[:, :1].expand(-1, missing, *values.shape[2:])], 1) if missing else values

    fields = [[values if values is p.size else padded(values) for values in vars(p).values()] for p in parts]
    return Polygons(*(torch.cat(parts) for parts in zip(*fields, strict=True)))
