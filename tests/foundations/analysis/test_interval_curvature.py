"""Curvature enclosed by intervals: at a point, over a box, and where the box is cut."""

import math

import pytest
import torch
from torch import nn

from lemmata.foundations import Box, smoothness, strong_convexity
from lemmata.foundations.analysis.function_values import batch_gradients, batch_hessians, batch_values
from lemmata.foundations.analysis.interval_curvature import Jet, curvature_bounds
from lemmata.foundations.analysis.intervals import Interval
from lemmata.foundations.analysis.regions import box_region

DOUBLE = torch.float64


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (lambda x: (x**4 - 3 * x**2).sum(), -1.0, 1.5),
        (lambda x: torch.exp(-x.square()).sum(), -2.0, 2.0),
        (lambda x: 1 / (2 + torch.cos(x)).sum(), -3.0, 3.0),
        (lambda x: torch.log(1 + x.square()).sum(), -2.0, 2.0),
        (lambda x: (1 + x @ x).sqrt(), -1.0, 1.0),
        (lambda x: torch.sigmoid(3 * x).sum() + torch.tanh(x).sum() / 2, -1.0, 1.0),
        (lambda x: nn.functional.softplus(2 - x).mean() - x[0] * 0.5, -1.0, 1.0),
        (lambda x: (torch.ones(1, dtype=DOUBLE) - x).square().sum() * torch.sin(x).sum() ** 3, -1.0, 1.0),
        (lambda x: torch.logsumexp(torch.tensor([[1.0], [-2.0]], dtype=DOUBLE) @ x, 0), -1.0, 1.0),
    ],
)
def test_certified_bounds_enclose_the_curvature_at_every_point(f, low, high):
    grid = torch.linspace(low, high, 2001, dtype=DOUBLE)[:, None]
    bends = batch_hessians(f, grid)[:, 0, 0]
    top, bottom = smoothness(f, (low, high), points=128), strong_convexity(f, (low, high), points=128)
    assert top.certified
    assert top.value >= float(bends.abs().max())
    assert top.value <= 1.1 * float(bends.abs().max())
    assert bottom.value <= float(bends.min()) + 1e-5 * (1 - bottom.certified)


def test_numbers_are_enclosed_in_all_their_digits():
    tenth = smoothness(lambda x: 0.1 * (x**2).sum(), (-1.0, 1.0), points=16)
    assert tenth.certified
    assert tenth.value == pytest.approx(0.2, rel=1e-12)
    wave = smoothness(lambda x: torch.sin(x).sum(), (0.1, 0.2), points=16)
    assert wave.certified
    assert wave.value == pytest.approx(math.sin(0.2), rel=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: nn.functional.softplus(x, 2.0).sum(),
        lambda x: (x**1.5).sum(),
        lambda x: torch.sub(x, x, alpha=2).sum(),
        lambda x: torch.cos(1e7 * x).sum(),
        lambda x: (1 / (x - 1.6)).sum(),
    ],
)
def test_what_intervals_do_not_know_is_never_certified(f):
    assert not smoothness(f, (1.1, 1.9), points=16).certified


def test_a_network_of_tanh_units_has_certified_smoothness():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    box = (-torch.full((2,), 0.5, dtype=DOUBLE), torch.full((2,), 0.5, dtype=DOUBLE))
    found = smoothness(network, box, points=64)
    points = box_region(box).sample(500, torch.Generator().manual_seed(1))
    assert found.certified
    assert float(torch.linalg.eigvalsh(batch_hessians(network, points).detach()).abs().max()) <= found.value


def steps_intervals_know():
    """Functions of three variables, which between them take every step that intervals know."""
    generator = torch.Generator().manual_seed(2)
    matrix, shift = torch.randn(4, 3, generator=generator).double(), torch.randn(4, generator=generator).double()
    along, one = torch.tensor([0.5, 0.7, 0.9], dtype=DOUBLE), torch.ones(3, dtype=DOUBLE)
    functional = nn.functional
    return [
        lambda t: (torch.exp(-0.3 * t.square()) * torch.tanh(matrix @ t)[:3]).sum(),
        lambda t: (one - t).sum() ** 3 + (3 + t[0]) ** -2.0 + (t[1] + 0.1) ** 0 * t[2] ** 1 - t[0] * (t[1] * t[1]),
        lambda t: 0.1 / (2 + torch.cos(2 * t)).sum() - torch.sin(t).mean() * 0.5 + sum(t**5),
        lambda t: torch.log(1.5 + t.square()).sum() / 2.5 + (1 + t @ t).sqrt() + (t @ along + 5) ** 0.5,
        lambda t: (torch.sigmoid(3 * t) / (2 + torch.tanh(t))).sum(),
        lambda t: functional.softplus(functional.linear(t, matrix, bias=shift)).reshape(-1).sum() * t[0],
        lambda t: functional.softplus(functional.linear(t, matrix)).sum() / (t[1:] @ along[1:] + 9).reshape(-1).sum(),
        lambda t: torch.logsumexp(t @ matrix.T + 900 * torch.tensor([1.0, -1.0, 1.0, 1.0]), dim=0),
        lambda t: torch.add(t, 1.0)[1] * t.sum() - (along / (4 + t)).sum(),
    ]


def over(f, low, high):
    """The enclosures of a function, its gradient and its Hessian over a box."""
    n = len(low)
    found = f(Jet(Interval(low, high), Interval(torch.eye(n)), Interval(torch.zeros(n, n, n))))
    return found.value, found.slope, found.bend


@pytest.mark.parametrize("f", steps_intervals_know())
def test_derivatives_are_enclosed_at_a_point_and_over_a_box(f):
    x = torch.tensor([0.3, -0.4, 0.1], dtype=DOUBLE)
    points = torch.cat([x[None], Box(x - 0.1, x + 0.1).corners()])
    for at_point, over_box, of in zip(
        over(f, x, x), over(f, x - 0.1, x + 0.1), (batch_values, batch_gradients, batch_hessians), strict=True
    ):
        values = of(f, points)
        size = float(values[0].abs().max()) + 1
        for end in (at_point.low, at_point.high):
            torch.testing.assert_close(end.reshape(values[0].shape), values[0], rtol=0, atol=1e-9 * size)
        low, high = over_box.low.reshape(values[0].shape), over_box.high.reshape(values[0].shape)
        assert ((low <= values) & (values <= high)).all()
        assert (high - low).max() <= 100 * size


def box(low, high):
    return Box(torch.tensor(low, dtype=DOUBLE), torch.tensor(high, dtype=DOUBLE))


def test_over_a_whole_box_the_bound_is_that_of_the_enclosed_matrix():
    """Told that what was seen is enormous, it has nothing to cut: the Hessian is [[6x, 3], [3, 6y]]."""
    whole = curvature_bounds(
        lambda t: t[0] ** 3 + t[1] ** 3 + 3 * t[0] * t[1], box([0.0, 1.0], [1.0, 4.0]), 1e9, "largest"
    )
    low, high = torch.linalg.eigvalsh(torch.tensor([[3.0, 3.0], [3.0, 15.0]], dtype=DOUBLE)).tolist()
    assert whole == pytest.approx((low - 9, high + 9), abs=1e-12)
    bowl = curvature_bounds(lambda t: torch.exp(t.square()).sum(), box([-1.0], [1.0]), 1e9, "largest")
    assert bowl is not None
    assert bowl[0] == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize("f", [lambda t: torch.sub(t, t, alpha=2).sum(), lambda t: t.abs().sum()])
def test_unknown_steps_have_no_bound(f):
    assert curvature_bounds(f, box([0.0], [1.0]), 1.0, "largest") is None


def test_a_box_is_cut_along_what_matters_to_one_part_in_a_hundred():
    """One variable matters little, and its side of the box is the longest."""

    def bowl_of_one(t):
        return 5 * t[1] ** 2 + t[1] * torch.exp(-t[1])

    grid, sides = torch.linspace(1.0, 2.0, 101, dtype=DOUBLE), box([2500.0, 1.0], [3000.0, 2.0])
    bends = 10 + (grid - 2) * torch.exp(-grid)
    low, high = float(bends.min()), float(bends.max())
    least = curvature_bounds(lambda t: bowl_of_one(t) + 20 * t[0] ** 2, sides, low, "least")
    largest = curvature_bounds(bowl_of_one, sides, high, "largest")
    steepest = curvature_bounds(lambda t: -1e-3 * bowl_of_one(t), sides, 1e-3 * high, "largest")
    assert least is not None
    assert largest is not None
    assert steepest is not None
    assert 0.989 * low <= least[0] <= low
    assert high <= largest[1] <= 1.011 * high
    assert -1.011 * high <= 1e3 * steepest[0] <= -high


def bell(t):
    return torch.exp(-t.square()).sum() + 0.1 * (torch.ones(1, dtype=DOUBLE) - t).sum() ** 3


def fraction(t):
    return 1 / (2 + torch.cos(2 * t)).sum() - torch.sin(t).sum() * 0.5


@pytest.mark.parametrize("f", [bell, fraction])
def test_certified_smoothness_is_near_the_largest_curvature(f):
    grid = torch.linspace(-0.2, 0.2, 401, dtype=DOUBLE)[:, None]
    steepest, found = float(batch_hessians(f, grid).abs().max()), smoothness(f, (-0.2, 0.2), points=32)
    assert found.certified
    assert steepest <= found.value <= 1.1 * steepest
