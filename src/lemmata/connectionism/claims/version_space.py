"""The version space: an open convex cone, empty iff no unit fits, and never larger with more data."""

import itertools

import torch
from torch import Tensor

from lemmata.connectionism.linear_threshold import augment, dataset_margin
from lemmata.connectionism.perceptron import Perceptron
from lemmata.connectionism.version_space import VersionSpace
from lemmata.judge import all_of, always, at_most, claim, exactly, lie


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


def _separable_points(
    draw, points: int, features: int, bias: bool = True, fraction: float = 0.04
) -> tuple[Tensor, Tensor]:
    """Points labelled by a unit, redrawn until at least this fraction of all units agrees with it."""

    def make():
        x, unit = draw.normal(points, features), draw.normal(features + 1)
        return x, torch.where(x @ unit[:-1] + bias * unit[-1] > 0, 1.0, -1.0).double()

    return draw.until(make, lambda data: VersionSpace(*data, bias=bias).fraction() > fraction)


def _lattice_points(draw) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """All units of small whole numbers, and labelled points that some of them get right and some leave on the edge."""
    units = torch.tensor(list(itertools.product(range(-2, 3), repeat=3)))

    def make():
        return draw.integers(-2, 3, 3, 2).double(), draw.signs(3)

    def telling(data):
        sums = data[1].long() * (units @ augment(data[0]).long().T)
        return bool((sums > 0).all(1).any() and ((sums >= 0).all(1) & (sums > 0).any(1) & (sums == 0).any(1)).any())

    return units, draw.until(make, telling)


def _all_positive(units: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (y.long() * (units @ augment(x).long().T) > 0).all(dim=1)


@claim("perceptron.version_space")
@lie("defined with ties: then (0, 0) always belongs and every data set is separable", space=_WithTies)
@lie("one correct point is enough: a union of half-spaces", space=_AnyPoint)
@lie(
    "closed under every scaling, negative ones too",
    regime="a cone is closed under every positive factor",
    loose="a cone is closed under every positive factor",
    sign=-1.0,
)
@lie("closed under affine combinations, not only convex ones", loose="fewer mixtures are members too", reach=3.0)
def the_version_space_is_an_open_convex_cone(draw, space=VersionSpace, sign=1.0, reach=1.0):
    """Members are the units of positive margin, and the perceptron finds one iff there is one; whole units, also those
    with ties or without a weight, against sums of whole numbers; mixed and scaled, members stay members, also next to
    an edge of the cone."""
    sets = [(draw.integers(-2, 3, 3 + k, 1 + k % 3).double(), draw.signs(3 + k)) for k in range(6)]
    found = [Perceptron(certify=False, max_epochs=3000).fit(x, y) for x, y in sets]
    separated = [each.status_ == "separated" for each in found]
    small, points = _lattice_points(draw)
    labelled = _separable_points(draw, 4, 2)
    flat, units = space(*labelled), draw.normal(4000, 3)
    inside = flat.contains(units[:, :2], units[:, 2])
    margins = torch.stack([dataset_margin(unit[:2], unit[2], *labelled) for unit in units[:60]])
    # Random members, each with another one, and those next to an edge of the cone, each with the next edge's.
    corners = flat.corners()
    edge = corners.lerp(corners.mean(dim=0), 1e-9).repeat(500, 1)
    members, partners = units[inside], units[inside][draw.permutation(int(inside.sum()))]
    members, partners = torch.cat([members, edge]), torch.cat([partners, edge.roll(1, dims=0)])
    weights = draw.uniform(len(members), 1, high=reach)
    changed = sign * draw.uniform(len(members), 1, low=0.1, high=9.0) * (weights * members + (1 - weights) * partners)
    return all_of(
        exactly(inside[:60], margins > 0),
        # The cone is open: a unit with a point on its boundary does not belong. Without a weight, the bias decides.
        exactly(space(*points).contains(small[:, :2].double(), small[:, 2].double()), _all_positive(small, *points)),
        always(flat.contains(changed[:, :2], changed[:, 2])),
        exactly(bool(flat.contains(torch.zeros(2).double(), 0.0)), False),
        exactly([not space(x, y).is_empty for x, y in sets], separated),
        exactly(
            [bool(space(x, y).contains(p.weight_, p.bias_)) for p, (x, y) in zip(found, sets, strict=True)], separated
        ),
    )


@claim("perceptron.version_space_shrinks")
@lie("every new point makes it strictly smaller", least=1e-6)
@lie("more data leave more units", subset=torch.ge)
@lie("a unit need only be right on one of the points", space=_AnyPoint)
def more_data_leave_no_unit_that_was_not_there_before(draw, space=VersionSpace, subset=torch.le, least=0.0):
    """The units that are left are those that are right on all points so far, for each of a stream of points, so that
    they were there before; and the exact fraction that is left. The last point is implied by others."""
    x, y = _separable_points(draw, 5, 2, fraction=0.005)
    same = torch.nonzero(y == y[0])[:, 0]
    x, y = torch.cat([x, x[same].mean(dim=0, keepdim=True)]), torch.cat([y, y[:1]])
    units = draw.normal(10_000, 3)
    right = y * (units @ augment(x).T) > 0  # (units, points)
    spaces = [space(x[:1], y[:1])]
    for k in range(1, len(x)):
        spaces.append(spaces[-1].and_also(x[k : k + 1], y[k : k + 1]))
    inside = torch.stack([each.contains(units[:, :2], units[:, 2]) for each in spaces[1:]])
    before, now = (torch.stack([right[:, : k + new].all(dim=1) for k in range(1, len(x))]) for new in (0, 1))
    left = torch.tensor([each.fraction() for each in spaces], dtype=torch.float64)
    return all_of(
        always(subset(inside, before)),
        exactly(inside, now),
        at_most(1 + left[1:], 1 + left[:-1] - least, attained=True),  # angles are known to rounding of the whole sphere
        always(left[-1] < left[0]),
    )
