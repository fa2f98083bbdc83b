"""Landscapes: their minima, saddles, smoothness and limits are what they say; figures; unknown names."""

import math

import pytest
import scipy.optimize
import torch

from lemmata.optim import LANDSCAPES, Landscape, descent_path, landscape
from lemmata.optim.landscapes import banded

NAMES = sorted(LANDSCAPES)


def slope(place, at):
    at = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(place(at), at)[0]


FORMULAS = {
    "valley": lambda x, y: x**2 / 2 + 10 * y**2,
    "turned": lambda x, y: (x + y) ** 2 / 4 + 5 * (x - y) ** 2,
    "rosenbrock": lambda x, y: scipy.optimize.rosen([x, y]),
    "double_well": lambda x, y: x**4 - 2 * x**2 + 1 + y**2,
    "saddle": lambda x, y: x**2 / 2 + math.cos(y) - 1,
    "beale": lambda x, y: sum((c - x * (1 - y**k)) ** 2 for k, c in ((1, 1.5), (2, 2.25), (3, 2.625))),
    "ripples": lambda x, y: x**2 + 3 * math.sin(x) ** 2 + y**2 + 3 * math.sin(y) ** 2,
}


@pytest.mark.parametrize("name", NAMES)
def test_each_is_its_formula(name):
    points = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = [FORMULAS[name](x, y) for x, y in points.tolist()]
    assert landscape(name)(points).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_window_is_a_square_with_all_there_is_to_see(name):
    place = landscape(name)
    left, right, bottom, top = place.window
    assert right - left == top - bottom  # so that a step looks as long upwards as across
    for x, y in (place.start, *place.minima, *place.saddles):
        assert left < x < right
        assert bottom < y < top
    across, up, values = place.grid(7)
    assert (across[0].item(), across[-1].item(), up[0].item(), up[-1].item()) == place.window
    assert values.shape == (7, 7)
    assert values[2, 5] == place(torch.stack([across[5], up[2]]))  # rows upwards


def test_a_grid_has_cells_as_high_as_they_are_wide():
    flat = Landscape("flat", "Flat", lambda x: x[..., 1], (0.0, 4.0, -1.0, 1.0), (0.0, 0.0))
    assert flat.grid(21)[2].shape == (10, 21)
    thin = Landscape("thin", "Thin", lambda x: x[..., 1], (0.0, 4.0, 0.0, 0.01), (0.0, 0.0))
    assert thin.grid(21)[2].shape == (2, 21)


def test_no_step_is_too_long_where_nothing_bends_upwards():
    def of(curvature):
        minima = ((0.0, 0.0),)
        return Landscape("bowl", "Bowl", lambda x: curvature * x.square().sum(-1) / 2, window, (0.0, 0.0), minima)

    window = (-1.0, 1.0, -1.0, 1.0)

    assert of(0.5).limit() == pytest.approx(4)
    assert of(0.0).limit() == of(-1.0).limit() == math.inf
    assert Landscape("none", "None", torch.sum, window, (0.0, 0.0)).limit() == math.inf


def test_every_band_of_colour_holds_as_many_values():
    values = torch.randperm(60, generator=torch.Generator().manual_seed(0)).double().reshape(6, 10) ** 3
    shown = banded(values, bands=6)
    levels, counts = shown.unique(return_counts=True)
    assert levels.tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert max(counts.tolist()) - min(counts.tolist()) <= 1
    order = values.flatten().argsort()
    assert (shown.flatten()[order].diff() >= 0).all()
    assert banded(torch.ones(1, 1)).item() == 0


@pytest.mark.parametrize("name", NAMES)
def test_minima_and_saddles_are_where_they_are_said_to_be(name):
    place = landscape(name)
    for at in place.minima:
        assert float(slope(place, at).norm()) < 1e-12
        assert float(torch.linalg.eigvalsh(place.hessian(torch.tensor(at, dtype=torch.float64)))[0]) > 0.1
        assert float(place(torch.tensor(at, dtype=torch.float64))) <= float(place.grid()[2].min()) + 1e-12
    for at in place.saddles:
        values = torch.linalg.eigvalsh(place.hessian(torch.tensor(at, dtype=torch.float64)))
        assert float(slope(place, at).norm()) < 1e-12
        assert float(values[0]) < 0 < float(values[-1])


@pytest.mark.parametrize("name", [name for name in NAMES if math.isfinite(LANDSCAPES[name].smoothness)])
def test_the_smoothness_bounds_every_hessian_and_is_reached(name):
    place = landscape(name)
    points = torch.randn(300, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
    points[0] = 0.0
    largest = torch.linalg.eigvalsh(torch.vmap(place.hessian)(points)).abs().max()
    assert float(largest) == pytest.approx(place.smoothness, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("share", "stays"), [(0.9, True), (1.1, False)])
def test_descent_stays_at_a_minimum_below_the_limit_and_leaves_it_above(name, share, stays):
    place = landscape(name)
    for k, at in enumerate(place.minima):
        start = torch.tensor(at, dtype=torch.float64) + torch.tensor([1e-7, 3e-8])
        lr = share * place.limit(k)
        path = descent_path(place, start, 150, lambda p, lr=lr: torch.optim.SGD(p, lr=lr))
        moved = (path - torch.tensor(at, dtype=torch.float64)).norm(dim=-1)
        assert bool(moved[-1] < moved[0]) == stays


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_shows_bands_a_path_and_the_minima(name):
    place = landscape(name)
    path = descent_path(
        place, torch.tensor(place.start, dtype=torch.float64), 20, lambda p: torch.optim.SGD(p, lr=1e-3)
    )
    heat, line, points = place.figure({"descent": path}, columns=21).marks
    assert min(map(min, heat.values)) == 0
    assert max(map(max, heat.values)) == 1
    assert 5 <= len({value for row in heat.values for value in row}) <= 14
    assert line.x[0] == place.start[0]
    assert len(points.x) == len(place.minima)
    left, right, bottom, top = place.window
    assert left < place.start[0] < right
    assert bottom < place.start[1] < top


def test_a_path_is_drawn_until_it_leaves_the_window():
    path = torch.tensor([[0.0, 0.0], [1.0, 0.0], [100.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    assert landscape("valley").figure({"out": path}).marks[1].x == [0.0, 1.0]
    for edge in ([4.5, 0.0], [-4.5, 0.0], [0.0, 4.5], [0.0, -4.5]):
        there = torch.tensor([[0.0, 0.0], edge, [1.01 * value for value in edge], [0.0, 0.0]], dtype=torch.float64)
        line = landscape("valley").figure({"out": there}).marks[1]
        assert [*zip(line.x, line.y, strict=True)] == [(0.0, 0.0), tuple(edge)]


def test_landscapes_take_any_dtype_and_batch():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert landscape("beale")(torch.zeros(2, 3, 2, dtype=dtype)).dtype is dtype
    assert landscape("valley")(torch.ones(2, 3, 2)).shape == (2, 3)


def test_bad_input_is_answered(unchecked):
    with pytest.raises(ValueError, match="name must be one of"):
        landscape("alps")
    with pytest.raises(ValueError, match="x must have 2 coordinates"):
        landscape("valley")(torch.zeros(3))
