"""The version space: an open convex cone, empty iff no unit fits, exactly measured, and never larger with more data."""

import math

import torch
from torch import Tensor

from lemmata.connectionism.linear_threshold import augment, dataset_margin
from lemmata.connectionism.perceptron import Perceptron
from lemmata.connectionism.version_space import VersionSpace
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie, probability_is


class _WithTies(VersionSpace):
    @property
    def is_empty(self):
        return False  # the unit (0, 0) is always there

    def contains(self, weight, bias=0.0):
        bias = torch.as_tensor(bias, dtype=weight.dtype)
        return (self.y * (weight @ self.x.T + bias[..., None]) >= 0).all(dim=-1)


class _AnyPoint(VersionSpace):
    def contains(self, weight, bias=0.0):
        bias = torch.as_tensor(bias, dtype=weight.dtype)
        return (self.y * (weight @ self.x.T + bias[..., None]) > 0).any(dim=-1)


class _TurnedOver(VersionSpace):
    def __init__(self, x, y, bias=True):
        super().__init__(x, -y, bias)


def _separable(draw, points: int, features: int, bias: bool = True, share: float = 0.04) -> tuple[Tensor, Tensor]:
    """Points labelled by a unit, redrawn until at least this share of all units agrees with it."""

    def make():
        x, unit = draw.normal(points, features), draw.normal(features + 1)
        return x, torch.where(x @ unit[:-1] + bias * unit[-1] > 0, 1.0, -1.0).double()

    return draw.until(make, lambda data: VersionSpace(*data, bias=bias).fraction() > share)


def _around(draw, points: int) -> Tensor:
    """Points in any order on the unit circle, no two of them close together: all are corners of their cone."""
    turns = 2 * math.pi * (draw.permutation(points) + draw.uniform(points, high=0.5)) / points
    return torch.stack([turns.cos(), turns.sin()], dim=1)


def _agrees(draw, space: VersionSpace, share: float):
    """Whether random directions lie in the space about as often as its share of the sphere says."""
    features = space.x.shape[1]

    def inside(trials):
        units = draw.normal(trials, features + space.bias)
        return space.contains(units[:, :features], units[:, -1]) if space.bias else space.contains(units)

    return probability_is(inside, share, effect=0.02, alpha=2.5e-10)


def _with_a_point_on_a_side(draw) -> Tensor:
    """A triangle, and a point between two of its corners: it cuts nothing off the version space."""
    triangle = draw.normal(3, 2)
    return torch.cat([triangle, triangle[:1].lerp(triangle[1:2], 0.3)])


def _solid_angle(corners: Tensor) -> float:
    """By cutting the polygon into triangles from its first corner (Van Oosterom and Strackee 1983)."""
    a, b, c = corners[:1], corners[1:-1], corners[2:]
    volume = (a * torch.linalg.cross(b, c)).sum(dim=1)
    return float(2 * torch.atan2(volume, 1 + (a * b).sum(1) + (b * c).sum(1) + (a * c).sum(1)).sum())


@claim("perceptron.version_space")
@lie("defined with ties: then (0, 0) always belongs and every data set is separable", space=_WithTies)
@lie("one correct point is enough: a union of half-spaces", space=_AnyPoint)
@lie("the units that err on every point", space=_TurnedOver)
@lie(
    "closed under every scaling, negative ones too",
    regime="a cone is closed under every positive factor",
    loose="a cone is closed under every positive factor",
    sign=-1.0,
)
@lie("closed under affine combinations, not only convex ones", loose="fewer mixtures are members too", reach=3.0)
@lie("the whole sphere has the angle 2 pi", sphere=2 * math.pi)
def the_version_space_is_an_open_convex_cone(draw, space=VersionSpace, sign=1.0, reach=1.0, sphere=4 * math.pi):
    """Members are the units of positive margin, and the perceptron finds one iff there is one; mixed and scaled they
    stay members; the exact share of the sphere against random units, the polygon of its corners, and the sum over all
    labellings."""
    sets = [(draw.integers(-2, 3, 3 + k, 1 + k % 3).double(), draw.signs(3 + k)) for k in range(6)]
    found = [Perceptron(certify=False, max_epochs=3000).fit(x, y) for x, y in sets]
    fits = [each.status_ == "separated" for each in found]

    labelled = _separable(draw, 4, 2)
    flat, solid = space(*labelled), space(*_separable(draw, 3, 3, bias=False), bias=False)
    line, plane = space(*_separable(draw, 3, 1)), space(*_separable(draw, 3, 2, bias=False), bias=False)
    units = draw.normal(4000, 3)
    inside = flat.contains(units[:, :2], units[:, 2])
    margins = torch.stack([dataset_margin(unit[:2], unit[2], *labelled) for unit in units[:60]])
    # Random members, each with another one, and those next to an edge of the cone, each with the next edge's.
    corners = flat.corners()
    edge = corners.lerp(corners.mean(dim=0), 1e-9).repeat(500, 1)
    members, partners = units[inside], units[inside][draw.permutation(int(inside.sum()))]
    members, partners = torch.cat([members, edge]), torch.cat([partners, edge.roll(1, dims=0)])
    weights = draw.uniform(len(members), 1, high=reach)
    changed = sign * draw.uniform(len(members), 1, low=0.1, high=9.0) * (weights * members + (1 - weights) * partners)

    ring = _around(draw, 9)
    round_cone = space(ring, torch.ones(9))
    stretched = space(augment(ring) * draw.uniform(9, 1, low=0.1, high=10.0), torch.ones(9), bias=False)
    square = torch.tensor([[1.0, 1.0], [0, 1], [-1, 1], [-1, -1], [1, -1]], dtype=torch.float64)
    some = [space(square[:k], torch.ones(k)) for k in (1, 2, 5)] + [space(square[:3], torch.tensor([1, -1, 1]))]
    points = draw.normal(3, 2)
    labels = 2.0 * torch.cartesian_prod(*[torch.arange(2.0)] * 3).double() - 1
    shares = sum(space(points, y).fraction() for y in labels)
    return all_of(
        exactly([not space(x, y).is_empty for x, y in sets], fits),
        exactly([bool(space(x, y).contains(p.weight_, p.bias_)) for p, (x, y) in zip(found, sets, strict=True)], fits),
        exactly(inside[:60], margins > 0),
        always(flat.contains(changed[:, :2], changed[:, 2])),
        exactly(bool(flat.contains(torch.zeros(2).double(), 0.0)), False),
        close(shares * 4 * math.pi / sphere, 1.0),
        *(close(each.fraction(), _solid_angle(each.corners()) / sphere) for each in (flat, round_cone)),
        exactly([tuple(each.corners().shape) for each in (round_cone, *some)], [(k, 3) for k in (9, 0, 2, 4, 0)]),
        exactly(len(space(_with_a_point_on_a_side(draw), torch.ones(4)).corners()), 3),
        exactly([some[0].fraction(), some[3].fraction()], [0.5, 0.0]),
        close(stretched.fraction(), round_cone.fraction()),
        exactly(some[0].contains(ring[:1].new_tensor([[2, -1], [1, -1], [0, 1]])), torch.tensor([True, False, True])),
        at_least((flat.y[:, None] * augment(flat.x)) @ corners.T, -1e-14 * flat.x.abs().max()),
        close(corners.norm(dim=1), 1.0),
        *(_agrees(draw, each, each.fraction()) for each in (flat, solid, line, plane)),
    )


def _outlines(spaces: list[VersionSpace]) -> list[Line]:
    """Each version space as a polygon on the sphere, seen from straight above the middle of the last one."""
    middle = torch.nn.functional.normalize(spaces[-1].corners().sum(dim=0), dim=0)
    across = torch.linalg.qr(middle[:, None], mode="complete").Q[:, 1:]
    steps = torch.linspace(0, 1, 9, dtype=torch.float64)[:-1, None, None]
    lines = []
    for each in spaces:
        corners = each.corners()
        if len(corners) < 3:
            continue
        sides = (1 - steps) * corners + steps * corners.roll(-1, dims=0)
        path = torch.nn.functional.normalize(sides.transpose(0, 1).reshape(-1, 3), dim=1)
        seen = torch.cat([path, path[:1]]) @ across
        lines.append(Line(seen[:, 0], seen[:, 1], label=f"{len(each.x)} points"))
    return lines


@claim("perceptron.version_space_shrinks")
@lie("every new point makes it strictly smaller", least=1e-6)
@lie("more data leave more units", order=-1)
@lie("a unit need only be right on one of the points", space=_AnyPoint)
def more_data_leave_no_unit_that_was_not_there_before(draw, space=VersionSpace, order=1, least=0.0):
    """Whether the units that are left are right on all points before the new one, for each of a stream of points, and
    the exact share that is left; the last point is implied by others."""
    x, y = _separable(draw, 5, 2, share=0.005)
    same = torch.nonzero(y == y[0])[:, 0]
    x, y = torch.cat([x, x[same].mean(dim=0, keepdim=True)]), torch.cat([y, y[:1]])
    units = draw.normal(10_000, 3)
    right = y * (units @ augment(x).T) > 0
    spaces = [space(x[:1], y[:1])]
    for k in range(1, len(x)):
        spaces.append(spaces[-1].and_also(x[k : k + 1], y[k : k + 1]))
    inside = torch.stack([each.contains(units[:, :2], units[:, 2]) for each in spaces[1:]])
    allowed = torch.stack([right[:, :k].all(dim=1) for k in range(1, len(x))])
    shares = torch.tensor([each.fraction() for each in spaces], dtype=torch.float64)
    (larger, smaller), (more, less) = (allowed, inside)[::order], (shares[:-1], shares[1:])[::order]
    return all_of(
        always(larger | ~smaller),
        at_most(1 + less, 1 + more - least, attained=True),  # angles are known to rounding of the whole sphere
    ).showing(Figure("What each new point leaves", "", "", _outlines([VersionSpace(e.x, e.y) for e in spaces])))
