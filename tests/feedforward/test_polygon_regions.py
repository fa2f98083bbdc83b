"""Polygons of ReLU networks: against clipping in fractions, every bound on rounding against its worst case."""

import itertools
from fractions import Fraction

import pytest
import torch
from torch import nn

from lemmata.feedforward import linear_regions, polygon_regions
from lemmata.feedforward.polygon_regions import (
    PolygonCutter,
    Polygons,
    _certified_determinant,
    _corner_values,
    _crossing_point,
    _cut_sides,
    _join_polygons,
    _side_before,
    box_polygon,
)
from lemmata.feedforward.relu_program import Coefficients, program

LOW, HIGH = (-2.0, -1.0), (1.0, 3.0)
CPU = torch.device("cpu")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def coarse(*sizes, seed):
    """Weights in quarters, so that many lines meet in points, and along sides."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for a, b in itertools.pairwise(sizes):
        layer = nn.Linear(a, b, dtype=torch.float64)
        layer.weight.data = torch.randint(-3, 4, (b, a), generator=generator).double() / 4
        layer.bias.data = torch.randint(-2, 3, (b,), generator=generator).double() / 4
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers)


def clipped(polygon, line):
    """Sutherland and Hodgman in fractions: the part of a polygon where a x + b y + c is not negative."""
    a, b, c = line
    found = []
    for (x, y), (u, v) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        here, there = a * x + b * y + c, a * u + b * v + c
        if here >= 0:
            found.append((x, y))
        if here * there < 0:
            share = here / (here - there)
            found.append((x + share * (u - x), y + share * (v - y)))
    return found


def area(polygon):
    return sum(x * v - u * y for (x, y), (u, v) in zip(polygon, polygon[1:] + polygon[:1], strict=True)) / 2


def in_fractions(model):
    """Every pattern of active units with the area on which it holds, by clipping at one unit after the other."""
    (left, low), (right, high) = ([Fraction(v) for v in corner] for corner in (LOW, HIGH))
    regions = [([(left, low), (right, low), (right, high), (left, high)], [[1, 0, 0], [0, 1, 0]], ())]
    for layer in model:
        if isinstance(layer, nn.ReLU):
            continue
        weight, bias = layer.weight.tolist(), layer.bias.tolist()
        after = []
        for polygon, rows, pattern in regions:
            units = [
                [
                    sum(Fraction(w) * row[t] for w, row in zip(ws, rows, strict=True)) + (t == 2) * Fraction(b)
                    for t in range(3)
                ]
                for ws, b in zip(weight, bias, strict=True)
            ]
            cut = [(polygon, [], pattern)]
            for unit in units:
                halves = []
                for part, kept, found in cut:
                    above, below = clipped(part, unit), clipped(part, [-v for v in unit])
                    # A unit that is 0 on all of it is not active.
                    if len(above) > 2 and area(above) > 0 and any(unit):
                        halves.append((above, [*kept, unit], (*found, True)))
                    if len(below) > 2 and area(below) > 0:
                        halves.append((below, [*kept, [Fraction(0)] * 3], (*found, False)))
                cut = halves
            after += cut
        regions = after
    return {pattern: area(polygon) for polygon, _, pattern in regions}


@pytest.mark.parametrize("seed", range(12))
def test_regions_are_those_of_clipping_in_fractions(seed):
    model = coarse(2, 4, 3, seed=seed)
    regions = linear_regions(model, list(zip(LOW, HIGH, strict=True)))
    exact = in_fractions(model)
    patterns = torch.cat(regions.patterns, 1).tolist()
    assert sorted(map(tuple, patterns)) == sorted(exact)
    assert len(regions) == len(exact)
    for corners, size, pattern in zip(regions.corners.tolist(), regions.sizes.tolist(), patterns, strict=True):
        own = corners[:size]
        assert area(own) == pytest.approx(float(exact[tuple(pattern)]), rel=1e-9, abs=1e-12)
        assert corners[size:] == [corners[0]] * (len(corners) - size)  # filled up with the first


@pytest.mark.parametrize("at_once", [1, 50])
def test_parts_that_are_cut_at_a_time_change_nothing(at_once, monkeypatch):
    model = coarse(2, 4, 3, seed=1)
    whole = linear_regions(model, [(-2, 1), (-1, 3)])
    monkeypatch.setattr(polygon_regions, "AT_ONCE", at_once)
    parts = linear_regions(model, [(-2, 1), (-1, 3)])
    assert sorted(map(tuple, torch.cat(parts.patterns, 1).tolist())) == sorted(
        map(tuple, torch.cat(whole.patterns, 1).tolist())
    )


def test_the_box_goes_against_the_clock_and_each_side_has_its_line():
    box = box_polygon(LOW, HIGH, CPU)
    corners = box.corners[0]
    assert corners.tolist() == [[-2, -1], [1, -1], [1, 3], [-2, 3]]
    assert box.sources.tolist() == [[-1, -2, -3, -4]]
    assert _side_before(box).tolist() == [[-4, -1, -2, -3]]
    for side in range(4):
        a, b, c = box.lines[0, side].tolist()
        for x, y in corners[[side, (side + 1) % 4]].tolist():
            assert a * x + b * y + c == 0
    assert not box.bound.any()
    assert not box.line_bound.any()
    assert box.used.all()


def test_sides_know_the_unit_that_made_them():
    """One line through the box: its unit vanishes at both new corners, and each half has it once as a source."""
    model = coarse(2, 3, seed=3)
    cutter = PolygonCutter(program(model), LOW, HIGH)
    polygons, patterns, _ = cutter.run(box_polygon(LOW, HIGH, CPU))
    weight, bias = model[0].weight.data, model[0].bias.data
    for row in range(len(polygons.size)):
        size = int(polygons.size[row])
        for side in range(size):
            source = int(polygons.sources[row, side])
            if source < 0:
                continue
            ends = polygons.corners[row, [side, (side + 1) % size]]
            assert (ends @ weight[source] + bias[source]).abs().max() < 1e-12
            torch.testing.assert_close(
                polygons.lines[row, side], torch.cat([weight[source], bias[source][None]]), rtol=0, atol=0
            )
    assert len(patterns) == 1


def test_exact_signs_do_not_depend_on_the_order_of_the_lines():
    cutter = PolygonCutter(program(coarse(2, 3, seed=0)), LOW, HIGH)
    first, second = [Fraction(v) for v in (1, 2, -3)], [Fraction(v) for v in (2, -1, -1)]  # they meet at (1, 1)
    for unit, sign in (([1, 1, -2], 0), ([1, 1, -1], 1), ([1, 0, -2], -1), ([0, 3, -2], 1)):
        for lines in ([first, second], [second, first]):
            assert cutter._exact_sign(lines, [Fraction(v) for v in unit]) == sign
    assert cutter.exact.asked == 8


def test_rows_of_several_lists_are_filled_up_with_their_first_corner():
    box = box_polygon(LOW, HIGH, CPU)
    triangle = Polygons(
        box.corners[:, :3], box.bound[:, :3], box.lines[:, :3], box.line_bound[:, :3], box.sources[:, :3], box.size - 1
    )
    both = _join_polygons([triangle, box])
    assert both.size.tolist() == [3, 4]
    assert both.corners[0, 3].tolist() == both.corners[0, 0].tolist()
    assert both.sources.tolist() == [[-1, -2, -3, -1], [-1, -2, -3, -4]]
    assert both.used.tolist() == [[True, True, True, False], [True] * 4]


# --- Bounds: never exceeded by the worst of the errors they allow, and not much larger ---

SIGNS = (-1, 0, 1)


def single(corner=None, off=0.0, line=None, line_off=None):
    """One corner, and the side that begins there."""
    zeros = torch.zeros(1, 1, 3, dtype=torch.float64)
    corner = zeros[..., :2] if corner is None else corner[None, None]
    line, line_off = (zeros if part is None else part[None, None] for part in (line, line_off))
    bound = torch.full((1, 1), off, dtype=torch.float64)
    return Polygons(corner, bound, line, line_off, torch.tensor([[0]]), torch.tensor([1]))


def exactly(tensor):
    return [Fraction(v) for v in tensor.flatten().tolist()]


@pytest.mark.parametrize("share", [0.0, 1e-10, 1e-3])
@pytest.mark.parametrize("seed", range(3))
def test_determinants_are_as_wrong_as_they_may_be(share, seed):
    values = normal(4, seed=seed)
    errors = share * values.abs() * torch.tensor([1.0, 0.5, 0.0, 2.0], dtype=torch.float64)
    terms = [(v[None], e[None]) for v, e in zip(values, errors, strict=True)]
    found, bound = _certified_determinant(*terms)
    worst = 0
    for signs in itertools.product(SIGNS, repeat=4):
        a, b, c, d = (v + s * e for v, s, e in zip(exactly(values), signs, exactly(errors), strict=True))
        worst = max(worst, abs(a * b - c * d - Fraction(found.item())))
    assert worst <= Fraction(bound.item())
    rounding = 4 * 2.0**-52 * float((values[0] * values[1]).abs() + (values[2] * values[3]).abs())
    assert bound.item() <= 1.01 * float(worst) + rounding


@pytest.mark.parametrize("share", [1e-12, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_units_at_corners_are_as_wrong_as_they_may_be(share, seed):
    corner, unit = normal(2, seed=seed), normal(3, seed=seed + 10)
    errors = share * torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    placed = single(corner, share * 3)
    values, bounds = _corner_values(placed, Coefficients(unit[None, None], errors[None, None], 1.0))
    worst = 0
    for signs in itertools.product(SIGNS, repeat=5):
        (a, b, c), (x, y) = exactly(unit), exactly(corner)
        da, db, dc = (s * e for s, e in zip(signs, exactly(errors), strict=False))
        dx, dy = (s * Fraction(placed.bound.item()) for s in signs[3:])
        true = (a + da) * (x + dx) + (b + db) * (y + dy) + c + dc
        worst = max(worst, abs(true - Fraction(values.item())))
    assert worst <= Fraction(bounds.item())
    assert bounds.item() <= 1.01 * float(worst) + 1e-14


@pytest.mark.parametrize("share", [1e-12, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_crossings_are_as_far_off_as_they_may_be(share, seed):
    side, line = normal(3, seed=seed), normal(3, seed=seed + 20)
    errors = [share * normal(3, seed=seed + more).abs() for more in (40, 60)]
    polygons = single(line=side, line_off=errors[0])
    place, off = _crossing_point(polygons, (line[None], errors[1][None]))
    worst = 0
    for signs in itertools.product((-1, 1), repeat=6):
        moved = [
            v + s * e
            for v, s, e in zip(
                exactly(side) + exactly(line), signs, exactly(errors[0]) + exactly(errors[1]), strict=True
            )
        ]
        a, b, c, d, e, f = moved
        weight = a * e - b * d
        true = (b * f - c * e) / weight, (c * d - a * f) / weight
        worst = max(worst, *(abs(t - p) for t, p in zip(true, exactly(place), strict=True)))
    assert worst <= Fraction(off.item())
    assert off.item() <= 4 * float(worst) + 1e-13  # the two errors of a quotient do not always add up


def test_parallel_lines_cross_nowhere():
    side = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    polygons = single(line=side)
    assert _crossing_point(polygons, (2 * side[None], torch.zeros(1, 3).double()))[1].isinf().all()


@pytest.mark.parametrize("share", [1e-12, 1e-4])
@pytest.mark.parametrize("ends", [(1.0, -2.0), (-0.3, 0.1), (2.0, -1.5)])
def test_cuts_between_corners_are_as_far_off_as_they_may_be(share, ends):
    corners = torch.tensor([[[0.5, -1.0], [2.0, 0.25]]], dtype=torch.float64)
    offs = share * torch.tensor([[0.01, 0.02]], dtype=torch.float64)
    values = torch.tensor([list(ends)], dtype=torch.float64)
    bounds = share * torch.tensor([[1.0, 0.5]], dtype=torch.float64) * values.abs()
    box = box_polygon(LOW, HIGH, CPU)
    polygons = Polygons(corners, offs, box.lines[:, :2], box.line_bound[:, :2], box.sources[:, :2], box.size - 2)
    place, off = _cut_sides(polygons, torch.tensor([[1, 0]]), values, bounds)
    worst = 0
    for signs in itertools.product((-1, 1), repeat=4):
        v = [x + s * e for x, s, e in zip(exactly(values), signs, exactly(bounds), strict=False)]
        d = [s * e for s, e in zip(signs[2:], exactly(offs), strict=True)]
        share_of = v[0] / (v[0] - v[1])
        for axis in range(2):
            start, end = (Fraction(corners[0, i, axis].item()) + d[i] for i in range(2))
            true = start + share_of * (end - start)
            worst = max(worst, abs(true - Fraction(place[0, 0, axis].item())))
    assert worst <= Fraction(off[0, 0].item())
    assert off[0, 0].item() <= 8 * float(worst) + 1e-14
    # Both directions of a side give the same place.
    torch.testing.assert_close(place[0, 0], place[0, 1], rtol=0, atol=1e-14)


def test_a_cut_whose_ends_are_in_doubt_is_not_placed():
    box = box_polygon(LOW, HIGH, CPU)
    values, bounds = torch.tensor([[1.0, -1.0, 0.0, 0.0]]).double(), torch.tensor([[1.5, 0.6, 0.0, 0.0]]).double()
    off = _cut_sides(box, torch.tensor([[1, 2, 3, 0]]), values, bounds)[1]
    assert off[0, 0].isinf()
    assert off[0, 2].isinf()  # nothing rises from 0 to 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_what_is_exact_is_only_rounded(scale):
    """Without errors in what is given, bounds are a few units in the last place of the largest term."""
    corner, unit = normal(2, seed=1) * scale, normal(3, seed=2)
    _, bounds = _corner_values(single(corner), Coefficients(unit[None, None], torch.zeros(1, 1, 3).double(), 1.0))
    size = float((unit[:2] * corner).abs().sum() + unit[2].abs())
    assert 2.0**-52 * size <= bounds.item() <= 2.0**-50 * size
    corners = torch.stack([corner, corner + scale])[None]
    box = box_polygon(LOW, HIGH, CPU)
    side = Polygons(
        corners, torch.zeros(1, 2).double(), box.lines[:, :2], box.line_bound[:, :2], box.sources[:, :2], box.size - 2
    )
    _, off = _cut_sides(side, torch.tensor([[1, 0]]), torch.tensor([[1.0, -1.0]]).double(), torch.zeros(1, 2).double())
    size = float(corners.abs().amax(-1).sum())
    assert 2.0**-52 * size <= off[0, 0].item() <= 2.0**-49 * size


@pytest.mark.parametrize("seed", range(3))
def test_drawn_weights_leave_nothing_in_doubt(seed):
    """Units vanish at both corners of the sides that they made, which is known and not computed."""
    layers = []
    for depth, (a, b) in enumerate(itertools.pairwise((2, 4, 4, 4))):
        layer = nn.Linear(a, b, dtype=torch.float64)
        layer.weight.data, layer.bias.data = (
            normal(b, a, seed=10 * seed + depth),
            normal(b, seed=100 + seed + depth) / 2,
        )
        layers += [layer, nn.ReLU()]
    regions = linear_regions(nn.Sequential(*layers), [(-2, 2), (-2, 2)])
    assert len(regions) > 10
    assert regions.exact_decisions == 0
