r"""The version space: all linear threshold units that classify a data set correctly, and what fraction of all they are.

The size is exact for data in the plane. The cone of units is the dual of the cone spanned by the signed points
$z_i = y_i(x_i, 1)$, and a convex cone in space and its dual obey

$$ \text{solid angle of the dual} + \text{perimeter of the cone on the unit sphere} = 2\pi $$

so it suffices to find the points $z_i$ that are corners of their own cone and to add up the angles between neighbours.
"""

import functools
import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lemmata import validate
from lemmata.connectionism.separability import Separation, separate, signed_rows
from lemmata.marks import system

__all__ = ["VersionSpace"]


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
        """Whether each unit classifies every point correctly; a point on a unit's boundary counts as an error."""
        weight = validate.last_axis("weight", validate.floating("weight", weight), self.x.shape[1])
        bias = validate.floating("bias", torch.as_tensor(bias, dtype=weight.dtype, device=weight.device))
        if bias.ndim and bias.shape != weight.shape[:-1]:
            raise ValueError(f"bias must be one number for each unit, got shape {tuple(bias.shape)}")
        if bias.any() and not self.bias:
            raise ValueError("bias must be 0 in a version space with bias=False")
        activation = weight @ self.x.to(weight).T + bias[..., None]  # (..., features) -> (..., points)
        return (self.y.to(weight) * activation > 0).all(dim=-1)

    def and_also(self, x: Float[Tensor, "points features"], y: Tensor) -> "VersionSpace":
        """The version space of these data and more: the intersection, never larger than this one."""
        x = validate.last_axis("x", validate.matrix("x", x), self.x.shape[1])
        y = validate.labels("y", y, like=x)
        return type(self)(torch.cat([self.x, x.to(self.x)]), torch.cat([self.y, y.to(self.y)]), self.bias)

    @property
    def is_empty(self) -> bool:
        """Whether no unit classifies all points correctly, that is whether the data are not linearly separable."""
        return not self._separation.separable

    def fraction(self) -> float:
        r"""The fraction of all directions $(w, b)$ that lie in the version space: its angle over $2\pi$ or $4\pi$.

        $$ \frac{2\pi - \sum_k \angle(z_k, z_{k+1})}{4\pi} \ \text{ in space}, \qquad
           \frac{\pi - \angle(z_1, z_2)}{2\pi} \ \text{ in the plane} $$

        over the corners $z_k$, in order, of the cone that the signed points span.
        """
        ring = self._ring()
        if ring is None:
            return 0.0
        # In the plane the way round goes there and back.
        angles = _angles(ring, ring.roll(-1, dims=0)).sum().item()
        return (2 * math.pi - angles) / (4 * math.pi)

    def corners(self) -> Float[Tensor, "corners inputs"]:
        """The unit vectors along the edges of a cone in space, in order around it; no rows if the cone has none."""
        if self.x.shape[1] + self.bias != 3:
            raise ValueError(
                f"x must have {3 - self.bias} features for the version space to have corners, got {self.x.shape[1]}"
            )
        ring = self._ring()
        if ring is None:
            return self.x.new_zeros(0, 3)
        edges = torch.linalg.cross(ring, ring.roll(-1, dims=0))  # (corners, 3)
        # The same point twice has no edge.
        edges = edges[edges.norm(dim=1) > 64 * torch.finfo(torch.double).eps]
        corners = edges / edges.norm(dim=1, keepdim=True)
        # Points on one side of the dual hull give the same corner again, up to rounding.
        fresh = (corners - corners.roll(1, dims=0)).norm(dim=1) > 1e-9
        return (corners[fresh] if fresh.any() else corners[:1]).to(self.x)

    @functools.cached_property
    def _separation(self) -> Separation:
        return separate(self.x, self.y, bias=self.bias)

    def _ring(self) -> Tensor | None:
        """Unit vectors along the edges of the cone that the signed points span, in order; None if there is no unit."""
        rows = signed_rows(self.x, self.y, self.bias).double()  # (points, inputs)
        if rows.shape[1] not in (2, 3):
            raise ValueError(
                f"x must have {'1 or 2' if self.bias else '2 or 3'} features to measure the version space exactly, "
                f"got {self.x.shape[1]}: draw units and average contains() instead"
            )
        found = self._separation
        if found.weight is None or found.bias is None:
            return None
        inside = torch.cat([found.weight, found.bias[None]]) if self.bias else found.weight
        # All signed points have a positive product with `inside`: scaled to the plane where it is 1, they are a flat
        # picture of their cone, whose convex hull has the wanted corners.
        picture = (rows / (rows @ inside)[:, None]) @ _across(inside)  # (points, inputs - 1)
        ring = rows[_hull(picture)]  # (corners, inputs)
        return ring / ring.norm(dim=1, keepdim=True)


def _angles(a: Tensor, b: Tensor) -> Tensor:
    """The angle between unit vectors, row by row, accurate for small and for obtuse angles alike."""
    return 2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1))


def _across(direction: Tensor) -> Tensor:
    """A basis, as columns, of everything perpendicular to a direction; in space right-handed with it."""
    basis = torch.linalg.qr(direction[:, None], mode="complete").Q[:, 1:]
    if len(direction) == 3:
        basis[:, 1] = torch.linalg.cross(direction, basis[:, 0])
    return basis


def _hull(points: Tensor) -> list[int]:
    """The corners of the convex hull of points on a line or in the plane, counter-clockwise; none for one point."""
    order = sorted(range(len(points)), key=lambda i: points[i].tolist())
    if points.shape[1] == 1:
        return [order[0], order[-1]]
    lower, upper = _chain(points, order), _chain(points, order[::-1])
    return lower[:-1] + upper[:-1]


def _chain(points: Tensor, order: list[int]) -> list[int]:
    """The corners met when walking round half the hull with every turn to the left (Andrew's monotone chain)."""
    chain: list[int] = []
    for i in order:
        while len(chain) >= 2:
            (ax, ay), (bx, by) = (
                (points[chain[-1]] - points[chain[-2]]).tolist(),
                (points[i] - points[chain[-1]]).tolist(),
            )
            if ax * by - ay * bx > 0:
                break
            chain.pop()
        chain.append(i)
    return chain
