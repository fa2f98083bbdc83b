"""The version space: known angles, degenerate data, batches, bad input."""

import math

import mpmath
import pytest
import torch

from lemmata.connectionism.linear_threshold import augment
from lemmata.connectionism.version_space import VersionSpace
from lemmata.judge import Draw


def space(x, y, bias=True):
    return VersionSpace(torch.tensor(x, dtype=torch.double), torch.tensor(y), bias)


def test_known_fractions_of_the_sphere():
    assert space([[3.0, 4.0]], [1]).fraction() == pytest.approx(1 / 2)  # a hemisphere
    assert space([[1.0, 0.0], [-1.0, 0.0]], [1, 1]).fraction() == pytest.approx(1 / 4)  # a lune of a right angle
    assert space(torch.eye(3).tolist(), [1, -1, 1], bias=False).fraction() == pytest.approx(1 / 8)  # an octant
    assert space([[0.0], [1.0]], [-1, 1]).fraction() == pytest.approx(1 / 8)  # a line: 45 of 360 degrees
    assert space([[1.0, 0.0], [0.0, 1.0]], [1, 1], bias=False).fraction() == pytest.approx(1 / 4)


def test_repeated_and_implied_points_change_nothing():
    once = space([[1.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]], [1, -1, -1])
    implied = once.and_also(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [-1.0, 1.0]]), torch.tensor([1, -1, -1]))
    assert implied.fraction() == pytest.approx(once.fraction(), rel=1e-12)
    assert space([[1.0, 2.0]] * 3, [1] * 3).fraction() == pytest.approx(1 / 2)
    assert space([[2.0]] * 3, [1] * 3).fraction() == pytest.approx(1 / 2)


def test_an_empty_version_space_has_no_size_and_no_corners():
    exclusive_or = space([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [1, 1, -1, -1])
    assert exclusive_or.is_empty
    assert exclusive_or.fraction() == 0.0
    assert exclusive_or.corners().shape == (0, 3)
    assert not exclusive_or.contains(torch.randn(100, 2), torch.randn(100)).any()


def test_corners_are_where_two_points_become_undecided():
    octant = space(torch.eye(3).tolist(), [1, 1, 1], bias=False)
    assert torch.allclose(octant.corners().sort(dim=0).values, torch.eye(3).double().sort(dim=0).values)
    lune = space([[1.0, 0.0], [-1.0, 0.0]], [1, 1]).corners()
    assert torch.allclose(lune.abs(), torch.tensor([[0.0, 1.0, 0.0]] * 2).double())
    assert torch.allclose(lune[0], -lune[1])
    assert space([[3.0, 4.0]], [1]).corners().shape == (0, 3)
    assert space([[3.0, 4.0]] * 2, [1, 1]).corners().shape == (0, 3)
    assert space([[1.0, 2.0, 4.0], [0.1, 0.2, 0.4]], [1, 1], bias=False).corners().shape == (0, 3)
    # In binary 0.3 is not three times 0.1: two directions, and an edge that is known exactly.
    assert space([[1.0, 2.0, 3.0], [0.1, 0.2, 0.3]], [1, 1], bias=False).corners().shape == (2, 3)


def test_a_narrow_space_is_measured_as_well_as_a_wide_one():
    width = 1e-6
    narrow = space([[1.0, 0.0], [-1.0, width]], [1, 1], bias=False)
    assert narrow.fraction() == pytest.approx(math.atan(width) / (2 * math.pi), rel=1e-6)


@pytest.mark.parametrize("k", range(16))
def test_neighbours_on_a_line_leave_the_angle_between_them(k):
    """The thresholds between n and n + 1 fill the angle whose tangent is 1 / (n^2 + n + 1)."""
    n = 10**k
    pair = space([[float(n)], [float(n + 1)]], [-1, 1])
    assert not pair.is_empty
    assert pair.fraction() == pytest.approx(math.atan(1 / (n * n + n + 1)) / (2 * math.pi), rel=1e-15)


def perimeter_fraction(rows):
    """By another way: a cone in space fills 2 pi less the angles between neighbours on its dual, here in 60 digits."""
    with mpmath.workdps(60):
        units = [mpmath.matrix(row) / mpmath.norm(mpmath.matrix(row)) for row in rows]
        pairs = zip(units, units[1:] + units[:1], strict=True)
        angles = [2 * mpmath.atan2(mpmath.norm(a - b), mpmath.norm(a + b)) for a, b in pairs]
        return float((2 * mpmath.pi - sum(angles)) / (4 * mpmath.pi))


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-9, 1e-15])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_a_thin_cone_in_space_is_measured_to_the_last_digits(width, far):
    x = torch.tensor([[far, 0.0], [far + 2, 0.0], [far + 1, -width]], dtype=torch.float64)
    y = torch.tensor([1, 1, -1])
    thin = VersionSpace(x, y)
    truth = perimeter_fraction((y[:, None] * augment(x)).tolist())
    assert thin.fraction() == pytest.approx(truth, rel=1e-14)
    assert thin.corners().shape == (3, 3)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_the_space_is_known_at_any_scale(scale):
    pair = space([[0.0], [scale]], [-1, 1])
    assert not pair.is_empty
    assert pair.fraction() == pytest.approx(math.atan2(scale, 1) / (2 * math.pi))
    triangle = space([[0.0, 0.0], [scale, 0.0], [0.0, scale]], [1, -1, -1])
    assert 0 < triangle.fraction() < 1 / 2
    assert triangle.corners().shape == (3, 3)
    assert space([[scale, 0.0, 0.0], [0.0, 1 / 3, 0.0], [0, 0, 1.0]], [1, 1, 1], bias=False).fraction() == 1 / 8


def test_membership_is_decided_on_the_numbers_as_they_are_stored():
    point = torch.tensor([[1 + 1e-9, 1.0]], dtype=torch.float64)
    ahead, behind = (VersionSpace(point, torch.tensor([label]), bias=False) for label in (1, -1))
    level = torch.tensor([1.0, -1.0])  # float32, in which the point would lie on the boundary
    assert bool(ahead.contains(level))
    assert not bool(behind.contains(level))
    hidden = space([[1e16, 1.5, -1e16, -1.75]], [1], bias=False)
    assert not bool(hidden.contains(torch.ones(4)))
    assert bool(hidden.contains(-torch.ones(4)))
    far = space([[1e13], [1e13 + 1]], [-1, 1])
    assert far.contains(torch.ones(3, 1).double(), -1e13 - torch.tensor([0.0, 0.5, 1.0]).double()).tolist() == [
        False, True, False,
    ]  # fmt: skip
    huge = space([[1e308, 1e308, -1e308]], [1], bias=False)  # a sum beyond the range on the way
    assert huge.contains(torch.tensor([[1.0, 1, 1], [1, 1, 3]], dtype=torch.double)).tolist() == [True, False]


def test_membership_is_for_single_units_and_batches_of_any_shape():
    above = space([[0.0, 1.0]], [1])
    assert above.contains(torch.tensor([0.0, 1.0]), 0.5).shape == ()
    assert bool(above.contains(torch.tensor([0.0, 1.0])))
    assert not bool(above.contains(torch.tensor([1.0, 0.0])))  # on the boundary
    assert above.contains(torch.ones(4, 5, 2), torch.zeros(4, 5)).shape == (4, 5)
    assert above.contains(torch.ones(3, 2, dtype=torch.float32)).dtype == torch.bool


def test_adding_points_keeps_the_old_space_as_it_was():
    before = space([[0.0, 1.0]], [1])
    after = before.and_also(torch.tensor([[1.0, 0.0]]), torch.tensor([-1]))
    assert repr(before) == "VersionSpace(points=1, features=2, bias=True)"
    assert repr(after) == "VersionSpace(points=2, features=2, bias=True)"


def test_float32_data_are_measured_in_double():
    x, y = torch.tensor([[0.0, 1.0], [1.0, 0.25], [-1.0, 0.5]]), torch.tensor([1, -1, 1])
    assert VersionSpace(x, y).fraction() == VersionSpace(x.double(), y).fraction()
    assert VersionSpace(x, y).corners().dtype == torch.float32


@pytest.mark.usefixtures("unchecked")
def test_dimensions_without_an_exact_size_are_refused():
    with pytest.raises(ValueError, match=r"x must have 1 or 2 features to measure .* got 3: draw units and average"):
        VersionSpace(torch.zeros(1, 3), torch.ones(1)).fraction()
    with pytest.raises(ValueError, match=r"x must have 2 or 3 features to measure .* got 1"):
        VersionSpace(torch.ones(1, 1), torch.ones(1), bias=False).fraction()
    with pytest.raises(ValueError, match="x must have 2 features for the version space to have corners, got 1"):
        VersionSpace(torch.ones(1, 1), torch.ones(1)).corners()


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"x must be a \(points, features\) tensor"):
        VersionSpace(torch.zeros(2), torch.ones(2))
    with pytest.raises(ValueError, match="y must hold only -1"):
        VersionSpace(torch.zeros(2, 2), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="x must be finite"):
        VersionSpace(torch.full((1, 2), float("nan")), torch.ones(1))
    with pytest.raises(TypeError, match="bias must be True or False"):
        VersionSpace(torch.zeros(1, 2), torch.ones(1), bias=0.0)  # type: ignore[arg-type]
    known = space([[0.0, 1.0]], [1])
    with pytest.raises(ValueError, match=r"weight must have 2 features on its last axis, got shape \(3,\)"):
        known.contains(torch.zeros(3))
    with pytest.raises(ValueError, match="weight must be finite"):
        known.contains(torch.tensor([0.0, float("nan")]))
    with pytest.raises(ValueError, match="bias must be finite"):
        known.contains(torch.zeros(2), float("inf"))
    with pytest.raises(ValueError, match=r"x must have 2 features on its last axis, got shape \(\d, 1\)"):
        known.and_also(torch.zeros(1, 1), torch.ones(1))
    with pytest.raises(ValueError, match="bias must be 0 in a version space with bias=False"):
        space([[0.0, 1.0]], [1], bias=False).contains(torch.zeros(2), 1.0)


def test_a_bias_that_does_not_fit_the_units_is_refused(unchecked):
    space = VersionSpace(torch.tensor([[1.0, 2.0]]), torch.tensor([1]))
    with pytest.raises(ValueError, match="one number for each unit"):
        space.contains(torch.ones(5, 2), torch.ones(5, 1))


def test_points_on_a_side_of_the_hull_add_no_corner():
    triangle = torch.tensor([[0.125, 0.25], [1.5, 0.5], [0.5, 1.75]], dtype=torch.float64)
    on_a_side = 0.25 * triangle[:1] + 0.75 * triangle[1:2]
    assert len(VersionSpace(torch.cat([triangle, on_a_side]), torch.ones(4)).corners()) == 3


def separable(draw, points, features, bias=True):
    """Points labelled by a unit, redrawn until at least a twenty-fifth of all units agrees with it."""

    def make():
        x, unit = draw.normal(points, features), draw.normal(features + 1)
        return VersionSpace(x, torch.where(x @ unit[:-1] + bias * unit[-1] > 0, 1.0, -1.0).double(), bias)

    return draw.until(make, lambda made: made.fraction() > 0.04)


@pytest.mark.parametrize(("points", "features", "bias"), [(4, 2, True), (3, 3, False), (3, 1, True), (3, 2, False)])
def test_random_units_lie_inside_as_often_as_the_fraction_says(points, features, bias):
    draw, trials = Draw("inside"), 40_000
    made = separable(draw, points, features, bias)
    units = draw.normal(trials, features + bias)
    inside = made.contains(units[:, :features], units[:, -1]) if bias else made.contains(units)
    # Six standard deviations of a frequency, which is never wider than sqrt(1/4 / trials).
    assert inside.double().mean().item() == pytest.approx(made.fraction(), abs=3 / trials**0.5)


def solid_angle(corners):
    """Of the cone over a polygon on the sphere, cut into triangles from its first corner (Van Oosterom, Strackee)."""
    a, b, c = corners[:1], corners[1:-1], corners[2:]
    volume = (a * torch.linalg.cross(b, c)).sum(1).abs()
    return float(2 * torch.atan2(volume, 1 + (a * b).sum(1) + (b * c).sum(1) + (a * c).sum(1)).sum())


def around(draw, points):
    """Points in any order on the unit circle, no two of them close together: all are corners of their cone."""
    turns = 2 * math.pi * (draw.permutation(points) + draw.uniform(points, high=0.5)) / points
    return torch.stack([turns.cos(), turns.sin()], dim=1)


def test_the_fraction_is_the_angle_of_the_polygon_of_its_corners():
    draw = Draw("angle")
    ring = VersionSpace(around(draw, 9), torch.ones(9))
    turns = torch.atan2(ring.x[:, 1], ring.x[:, 0]).argsort()
    assert ring.fraction() == pytest.approx(perimeter_fraction(augment(ring.x)[turns].tolist()), rel=1e-14)
    for made in (separable(draw, 4, 2), ring):
        corners = made.corners()
        assert made.fraction() == pytest.approx(solid_angle(corners) / (4 * math.pi), rel=1e-12)
        assert torch.allclose(corners.norm(dim=1), torch.ones(len(corners)).double(), rtol=1e-12)
        assert ((made.y[:, None] * augment(made.x)) @ corners.T).min() > -1e-14 * made.x.abs().max()
    assert ring.corners().shape == (9, 3)
    lengths = draw.uniform(9, 1, low=0.1, high=10.0)
    stretched = VersionSpace(augment(ring.x) * lengths, torch.ones(9), bias=False)
    assert stretched.fraction() == pytest.approx(ring.fraction(), rel=1e-12)


def test_the_fractions_of_all_labellings_add_up_to_one():
    points = Draw("labellings").normal(3, 2)
    labels = 2.0 * torch.cartesian_prod(*[torch.arange(2.0)] * 3).double() - 1
    assert sum(VersionSpace(points, y).fraction() for y in labels) == pytest.approx(1.0, rel=1e-12)


def test_a_square_has_four_corners_and_two_points_two():
    square = torch.tensor([[1.0, 1.0], [0, 1], [-1, 1], [-1, -1], [1, -1]], dtype=torch.float64)
    assert [VersionSpace(square[:k], torch.ones(k)).corners().shape[0] for k in (1, 2, 5)] == [0, 2, 4]
    assert VersionSpace(square[:3], torch.tensor([1, -1, 1])).corners().shape == (0, 3)
