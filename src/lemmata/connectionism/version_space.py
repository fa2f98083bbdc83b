r"""The version space: all linear threshold units that classify a data set correctly, and what fraction of all they are.

For data in the plane the cone of units is known exactly, as the stored numbers are: it is the dual of the cone spanned
by the signed points $z_i = y_i(x_i, 1)$, whose edges are found in integers, and its own edges are
$z_k \times z_{k+1}$ for neighbours. Only the angles between them are rounded. On the unit sphere it is a polygon, which
the diagonals from one corner cut into triangles, and a triangle with corners $a, b, c$ has the area

$$ 2\,\mathrm{atan2}\big(\det(a, b, c),\ |a||b||c| + (a^\top b)|c| + (b^\top c)|a| + (c^\top a)|b|\big) $$

(Van Oosterom, Strackee 1983).
"""

import functools
import itertools
import math
from fractions import Fraction
from operator import mul
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.rounding import exact_signs, fractions, gamma
from lemmata.connectionism.separability import Separation, separate, signed_rows
from lemmata.marks import system

__all__ = ["VersionSpace"]

SMALLEST = math.ulp(0.0)  # the number next to 0, for what is not 0 and smaller still


@system("version_space", title="Version space", kind="function")
class VersionSpace:
    r"""The set of all units $(w, b)$ that classify every point of a data set correctly: an open convex cone.

    $$ \mathcal V(S) = \{(w,b) : y_i(w^\top x_i + b) > 0 \ \text{ for all } (x_i, y_i) \in S\} $$

    With `bias=False` the units have $b = 0$ and the cone lies in the space of $w$ alone.

    Shapes:
        x: (points, features), y: (points,) of -1 and +1

    Claims: perceptron.version_space, perceptron.version_space_shrinks
    Differs: `fraction` and `corners` are for cones in the plane and in space, that is for 1 or 2 features with a bias,
        2 or 3 without; elsewhere draw units and ask `contains`.

    >>> space = VersionSpace(torch.tensor([[0.0, 1.0]]), torch.tensor([1]), bias=False)
    >>> space.fraction(), space.and_also(torch.tensor([[1.0, 0.0]]), torch.tensor([1])).fraction()
    (0.5, 0.25)
    >>> space.contains(torch.tensor([[3.0, 2.0], [3.0, -2.0]]))
    tensor([ True, False])
    """

    def __init__(self, x: Float[Tensor, "points features"], y: Tensor, bias: bool = True):
        self.x = validate.matrix("x", x).detach()
        self.y = validate.labels("y", y, like=x)
        self.bias = validate.flag("bias", bias)

    def __repr__(self) -> str:
        points, features = self.x.shape
        return f"VersionSpace(points={points}, features={features}, bias={self.bias})"

    def contains(
        self, weight: Float[Tensor, "*units features"], bias: Float[Tensor, "*units"] | float = 0.0
    ) -> Bool[Tensor, "*units"]:
        """Whether each unit classifies every point correctly, as the numbers are stored.

        A point on a unit's boundary counts as an error.
        """
        weight = validate.last_axis("weight", validate.floating("weight", weight), self.x.shape[1])
        bias = validate.floating("bias", torch.as_tensor(bias, device=weight.device).double())
        if bias.ndim and bias.shape != weight.shape[:-1]:
            raise ValueError(f"bias must be one number for each unit, got shape {tuple(bias.shape)}")
        if bias.any() and not self.bias:
            raise ValueError("bias must be 0 in a version space with bias=False")
        units = weight.detach().double()  # (..., features)
        if self.bias:
            units = torch.cat([units, bias.detach().expand(units.shape[:-1])[..., None]], dim=-1)  # (..., inputs)
        rows = signed_rows(self.x, self.y, self.bias).to(units)  # (points, inputs)
        lowest = (units @ rows.T).amin(dim=-1)  # (..., points) -> (...)
        sizes = units.abs() @ rows.abs().amax(dim=0)  # (...), at least the sum of the terms of any product
        lost = 2 * gamma(rows.shape[1]) * sizes + rows.shape[1] * torch.finfo(sizes.dtype).tiny
        inside = lowest > lost
        # Too near for rounding to tell, or NaN, beyond the range.
        for place in (~inside & ~(lowest < -lost)).nonzero().tolist():
            inside[tuple(place)] = (exact_signs(rows, units[tuple(place)]) > 0).all()
        return inside

    def and_also(self, x: Float[Tensor, "points features"], y: Tensor) -> "VersionSpace":
        """The version space of these data and more: the intersection, never larger than this one."""
        x = validate.last_axis("x", validate.matrix("x", x), self.x.shape[1])
        y = validate.labels("y", y, like=x)
        return type(self)(torch.cat([self.x, x.to(self.x)]), torch.cat([self.y, y.to(self.y)]), self.bias)

    @property
    def is_empty(self) -> bool:
        """Whether no unit classifies all points correctly, that is whether the data are not linearly separable."""
        return not self._separation_of_points.separable

    def fraction(self) -> float:
        r"""The fraction of all directions $(w, b)$ that lie in the version space: its angle over $2\pi$ or $4\pi$.

        $$ \frac{\pi - \angle(z_1, z_2)}{2\pi} \ \text{ in the plane, and in space between two planes}, \qquad
           \frac{\text{area of the polygon of corners}}{4\pi} \ \text{ in space} $$

        0 says that there is no unit; otherwise it is right but for a few roundings, however narrow the cone is.
        """
        ring = self._cone_ring()
        if ring is None:
            return 0.0
        if len(ring) < 3:
            first, last = ring[0], ring[-1]
            shared = _integer_dot(first, last)
            # Both times two to the same power, so that the root of an integer keeps its digits.
            bits = 2 * max(value.bit_length() for value in (*first, *last)) + 64
            across = math.isqrt((_integer_dot(first, first) * _integer_dot(last, last) - shared**2) << 2 * bits)
            return _integer_angle(across, -(shared << bits)) / (2 * math.pi) or SMALLEST
        return _polygon_area(_ring_edges(ring)) / (4 * math.pi) or SMALLEST

    def corners(self) -> Float[Tensor, "corners inputs"]:
        """The unit vectors along the edges of a cone in space, in order around it; no rows if the cone has none."""
        if self.x.shape[1] + self.bias != 3:
            raise ValueError(
                f"x must have {3 - self.bias} features for the version space to have corners, got {self.x.shape[1]}"
            )
        ring = self._cone_ring()
        if ring is None or len(ring) < 2:
            return self.x.new_zeros(0, 3)
        edges = [[value / max(map(abs, edge)) for value in edge] for edge in _ring_edges(ring)]
        corners = torch.tensor(edges, dtype=torch.double)  # (corners, 3)
        return (corners / corners.norm(dim=1, keepdim=True)).to(self.x)

    @functools.cached_property
    def _separation_of_points(self) -> Separation:
        return separate(self.x, self.y, bias=self.bias)

    def _cone_ring(self) -> list[list[int]] | None:
        """Integers along the edges of the cone that the signed points span, in order; None if there is no unit."""
        if self.x.shape[1] + self.bias not in (2, 3):
            raise ValueError(
                f"x must have {'1 or 2' if self.bias else '2 or 3'} features to measure the version space, "
                f"got {self.x.shape[1]}: draw units and average contains() instead"
            )
        found = self._separation_of_points
        if found.weight is None or found.bias is None:
            return None
        stored = torch.cat([found.weight, found.bias[None]]) if self.bias else found.weight
        inside = list(found.exact or fractions(stored))
        # All signed points have a positive product with `inside`: divided by it, any two of their coordinates that with
        # `inside` are a basis are a flat picture of the cone, whose convex hull has the wanted corners.
        picture = {}
        axes = _other_axes(inside)
        for row in fractions(signed_rows(self.x, self.y, self.bias)):
            height = _integer_dot(row, inside)
            factor = math.lcm(*(value.denominator for value in row))
            picture[tuple(row[axis] / height for axis in axes)] = [int(value * factor) for value in row]
        return [picture[point] for point in _convex_hull(sorted(picture))]


def _other_axes(direction: list[Fraction]) -> list[int]:
    """The axes but one that with the direction are a basis, in space a right-handed one."""
    size = len(direction)
    largest = max(range(size), key=lambda axis: abs(direction[axis]))
    others = [(largest + step) % size for step in range(1, size)]
    return others if direction[largest] > 0 else others[::-1]


def _convex_hull(points: list[tuple[Fraction, ...]]) -> list[tuple[Fraction, ...]]:
    """The corners of the convex hull of sorted points on a line or in the plane, the latter counter-clockwise."""
    if len(points) < 2 or len(points[0]) == 1:
        return points[:1] + points[1:][-1:]
    return _half_hull(points)[:-1] + _half_hull(points[::-1])[:-1]


def _half_hull(points: list[tuple[Fraction, ...]]) -> list[tuple[Fraction, ...]]:
    """The corners met when walking round half the hull with every turn to the left (Andrew's monotone chain)."""
    chain: list[tuple[Fraction, ...]] = []
    for x, y in points:
        while len(chain) >= 2:
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - by) > (by - ay) * (x - bx):
                break
            chain.pop()
        chain.append((x, y))
    return chain


def _ring_edges(ring: list[list[int]]) -> list[list[int]]:
    """The cross products of neighbours on a ring in space."""
    pairs = zip(ring, ring[1:] + ring[:1], strict=True)
    return [[a[j - 2] * b[j - 1] - a[j - 1] * b[j - 2] for j in range(3)] for a, b in pairs]


def _polygon_area(corners: list[list[int]]) -> float:
    """The area that a convex polygon with corners in these directions has on the unit sphere."""
    # Lengths are roots: so many bits more that sums which nearly cancel keep their digits.
    bits = 8 * max(value.bit_length() for corner in corners for value in corner) + 64
    lengths = [math.isqrt(_integer_dot(corner, corner) << 2 * bits) for corner in corners]  # times 2^bits
    (a, A), *others = zip(corners, lengths, strict=True)
    area = 0.0
    for (b, B), (c, C) in itertools.pairwise(others):
        volume = _integer_dot(_ring_edges([a, b])[0], c) << 3 * bits
        shared = _integer_dot(a, b) * C + _integer_dot(b, c) * A + _integer_dot(a, c) * B
        area += 2 * _integer_angle(volume, A * B * C + (shared << 2 * bits))
    return area


def _integer_angle(y: int, x: int) -> float:
    """atan2 of integers of any size."""
    unit = 1 << max(y.bit_length(), x.bit_length())
    return math.atan2(y / unit, x / unit)


def _integer_dot(a: list, b: list) -> Any:
    return sum(map(mul, a, b))
