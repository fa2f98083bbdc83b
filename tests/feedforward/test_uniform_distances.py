"""Intervals around uniform distances: that they contain them, in every dtype and number of variables, and refusals."""

import math

import pytest
import torch
from torch import nn

from lemmata.feedforward import MLP, uniform_distance


def zero(x):
    return torch.zeros_like(x[:, 0])


@pytest.mark.parametrize(
    ("f", "region", "lipschitz", "exact"),
    [
        (torch.exp, (0.0, 1.0), 3.0, math.e),  # largest at an end
        (torch.sin, (0.0, 3.0), 1.0, 1.0),  # inside
        (lambda x: (20 * x).sin() - 0.25, (-1.0, 1.0), 20.0, 1.25),  # at several points
        (lambda x: x**2 - 0.5, (-1.0, 1.0), 2.0, 0.5),  # inside and at the ends
        (lambda x: 1e-9 * x, (-1e6, 1e6), 1e-9, 1e-3),
        (lambda x: 1e9 * (x - 1), (1 - 1e-6, 1 + 1e-6), 1e9, 1e3),
        (lambda x: 0 * x, (0.0, 1.0), 0.0, 0.0),
    ],
)
def test_the_interval_contains_the_distance_and_narrows(f, region, lipschitz, exact):
    wide = None
    for points in (10, 100, 1000, 100_000):
        found = uniform_distance(f, lambda x: 0 * x, region, lipschitz, tolerance=1e-6 * exact, points=points)
        assert found.lower <= exact * (1 + 1e-9)
        assert found.upper >= exact * (1 - 1e-9)
        assert found.evaluations <= max(points, 3)  # the ends and the middle are taken in any case
        assert wide is None or found.upper - found.lower <= wide
        wide = found.upper - found.lower
    assert wide <= 2e-6 * exact
    assert float(f(found.point).abs()) == pytest.approx(found.lower, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cones_in_boxes_of_several_variables(n, dtype):
    top = torch.full((n,), 0.3, dtype=dtype)

    def cone(x):
        return 1 - (x - top).norm(dim=1)

    region = (torch.full((n,), -0.25, dtype=dtype), torch.full((n,), 0.75, dtype=dtype))
    found = uniform_distance(cone, zero, region, lipschitz=1.0, tolerance=0.02)
    assert found.lower <= 1.0 <= found.upper
    assert found.upper - found.lower <= 0.02
    assert found.point.dtype == dtype
    assert found.point.shape == (n,)


def test_several_outputs_are_compared_by_their_length():
    circle = lambda x: torch.cat([x.cos(), x.sin()], dim=1)  # noqa: E731
    found = uniform_distance(circle, lambda x: 0 * circle(x), (0.0, 1.0), lipschitz=1.0, tolerance=1e-4)
    assert found.lower == pytest.approx(1.0)
    assert found.upper == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_networks_are_asked_in_their_own_dtype_inside_the_box(dtype):
    f, g = nn.Linear(1, 1).to(dtype), nn.Linear(1, 1).double()
    for net, (slope, constant) in ((f, (2.0, 1.0)), (g, (-1.0, 0.5))):  # 3x + 0.5 apart, largest at the right end
        nn.init.constant_(net.weight, slope)
        nn.init.constant_(net.bias, constant)
    low, high = 0.0, 1 / 3  # which no dtype holds, and float32 and float16 round up
    vectors = (torch.tensor([low], dtype=torch.float64), torch.tensor([high], dtype=torch.float64))
    for region in ((low, high), vectors):
        found = uniform_distance(f, g, region, tolerance=1e-3)
        assert found.lower <= 1.5 + 1e-7 <= found.upper + 2e-7
        assert found.lower > 1.5 - 12 * torch.finfo(dtype).eps * 3  # 8 units of both values, and the rounding of x
        assert found.point.dtype == dtype
        assert float(found.point) <= high


@pytest.mark.parametrize("name", ["relu", "gelu", "sigmoid"])
def test_multilayer_perceptrons_bring_their_own_constant(name):
    torch.manual_seed(1)
    f, g = (MLP(1, 1, widths=(4, 3), activation=name) for _ in range(2))
    found = uniform_distance(f, g, (-1.0, 1.0), tolerance=0.01)
    x = torch.linspace(-1, 1, 999)[:, None]
    seen = float((f(x) - g(x)).detach().abs().max())
    assert found.lower <= seen + 1e-5
    assert found.upper >= seen - 1e-5
    assert found.upper - found.lower <= 0.01
    f.register_forward_hook(lambda *parts: 9 * parts[-1])
    with pytest.raises(ValueError, match="f has a hook or a forward of its own: remove it, or give lipschitz"):
        uniform_distance(f, g, (-1.0, 1.0))
    with pytest.raises(ValueError, match=r"lipschitz must be given, .* and g is none"):
        uniform_distance(g, MLP(1, 1, dropout=0.5), (-1.0, 1.0))


def test_outputs_that_cannot_be_compared_are_refused():
    def two(x):
        return torch.zeros(len(x), 2)

    with pytest.raises(ValueError, match="f and g must have as many outputs as each other, got 2 and 1"):
        uniform_distance(two, torch.sin, (0.0, 1.0), 1.0)
    with pytest.raises(TypeError, match="f must give a tensor, got list"):
        uniform_distance(torch.Tensor.tolist, torch.sin, (0.0, 1.0), 1.0)


def test_a_region_that_a_dtype_cannot_resolve_is_refused():
    with pytest.raises(ValueError, match=r"more than one number of torch\.float32 along each axis: widen it"):
        uniform_distance(nn.Linear(1, 1), torch.sin, (1.0, 1.0 + 1e-12), lipschitz=9.0)


def test_networks_bring_their_own_constant():
    torch.manual_seed(0)
    f, g = (nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)).double() for _ in range(2))
    box = (-torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64))
    found = uniform_distance(f, g, box, tolerance=0.01)
    grid = torch.cartesian_prod(*[torch.linspace(-1, 1, 201, dtype=torch.float64)] * 2)
    seen = float((f(grid) - g(grid)).detach().abs().max())
    assert found.lower >= seen - 0.01
    assert found.upper >= seen
    assert found.upper - found.lower <= 0.01


def test_constants_of_two_networks_are_added():
    f, g = nn.Linear(1, 1, dtype=torch.float64), nn.Linear(1, 1, dtype=torch.float64)
    for layer, slope in ((f, 3.0), (g, -2.0)):
        layer.weight.data.fill_(slope)
        layer.bias.data.zero_()
    assert uniform_distance(f, g, (-1.0, 2.0)).lower == pytest.approx(10.0)  # with 3 or 2 alone it were refused


def test_what_rounding_may_have_done_is_on_both_sides():
    three, one = (lambda x, value=value: torch.full_like(x, value) for value in (3.0, 1.0))
    found = uniform_distance(three, one, (0.0, 1.0), lipschitz=0.0, tolerance=1.0)
    assert found.lower == 2 - 8 * 2**-52 * 4
    assert 2 + 8 * 2**-52 * 4 < found.upper < 2 + 16 * 2**-52 * 4
    narrow = tuple(torch.tensor([end]) for end in (0.0, 1.0))
    assert uniform_distance(three, one, narrow, lipschitz=0.0, tolerance=1.0).lower == 2 - 8 * 2**-23 * 4


@pytest.mark.parametrize(("offset", "dtype"), [(1e8, torch.float64), (1e4, torch.float32)])
def test_a_top_between_two_floats_is_not_missed(offset, dtype):
    def cone(x):
        return 1 - ((x.double() - offset) - 0.3).abs()

    region = (torch.tensor([offset], dtype=dtype), torch.tensor([offset + 1], dtype=dtype))
    found = uniform_distance(cone, lambda x: 0 * x.double(), region, lipschitz=1.0, tolerance=0.0, points=2000)
    assert found.lower < 1 <= found.upper
    assert (
        found.upper - found.lower < 4 * torch.finfo(dtype).eps * offset * (16 if dtype == torch.float64 else 1) + 1e-5
    )


@pytest.mark.parametrize(("points", "taken"), [(16, 9), (17, 17), (20, 17), (33, 33)])
def test_no_more_points_are_taken_than_allowed(points, taken):
    flat = uniform_distance(lambda x: 0 * x, lambda x: 0 * x, (0.0, 1.0), lipschitz=1.0, tolerance=0.0, points=points)
    assert flat.evaluations == taken  # two ends, then 1, 2, 4, ... middles


def test_a_constant_that_the_values_contradict_is_refused():
    with pytest.raises(ValueError, match=r"lipschitz must be at least \d.*got 0.01: f - g rises faster"):
        uniform_distance(torch.exp, lambda x: 0 * x, (0.0, 1.0), lipschitz=0.01, tolerance=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"lipschitz": None}, ValueError, "lipschitz must be given, a constant of f - g"),
        ({"lipschitz": -1.0}, ValueError, "lipschitz must be >= 0, got -1.0"),
        ({"tolerance": -1.0}, ValueError, "tolerance must be >= 0"),
        ({"points": 0}, ValueError, "points must be >= 1"),
        ({"region": (1.0, 0.0)}, ValueError, "low must be below high"),
        ({"f": lambda x: x.sum()}, ValueError, r"f must give \(points,\) or \(points, outputs\) for 2 points"),
        ({"g": lambda x: 1 / x}, ValueError, r"g must be finite in the region, but is not at \[0.0\]"),
    ],
)
def test_bad_input_is_refused(unchecked, change, error, message):
    usual = {"f": torch.sin, "g": torch.cos, "region": (0.0, 1.0), "lipschitz": 2.0}
    with pytest.raises(error, match=message):
        uniform_distance(**(usual | change))
