"""Landscapes: their minima, saddles, smoothness and limits are what they say; figures; unknown names."""

import math

import pytest
import torch

from lemmata.optim import LANDSCAPES, descent_path, landscape

NAMES = sorted(LANDSCAPES)


def slope(place, at):
    at = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(place(at), at)[0]


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


def test_landscapes_take_any_dtype_and_batch():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert landscape("beale")(torch.zeros(2, 3, 2, dtype=dtype)).dtype is dtype
    assert landscape("valley")(torch.ones(2, 3, 2)).shape == (2, 3)


def test_bad_input_is_answered(unchecked):
    with pytest.raises(ValueError, match="name must be one of"):
        landscape("alps")
    with pytest.raises(ValueError, match="x must have 2 coordinates"):
        landscape("valley")(torch.zeros(3))
