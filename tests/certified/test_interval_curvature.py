"""Curvature enclosed by intervals: at a point, over a box, and where the box is cut."""

import math

import pytest
import torch
from torch import nn

from lemmata.certified.interval_curvature import curvature_bounds
from lemmata.foundations import Box, smoothness, strong_convexity
from lemmata.foundations.analysis.function_values import batch_hessians
from lemmata.foundations.analysis.regions import box_region

DOUBLE = torch.float64


def box(low, high):
    return Box(torch.tensor(low, dtype=DOUBLE), torch.tensor(high, dtype=DOUBLE))


def bounds(f, box, seen, aim):
    return curvature_bounds(f, box.low, box.high, seen, aim)


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
        lambda x: torch.cos(1e7 * x).sum(),
        lambda x: (1 / (x - 1.6)).sum(),
    ],
)
def test_what_intervals_do_not_know_is_never_certified(f):
    assert not smoothness(f, (1.1, 1.9), points=16).certified


MATRIX, OTHER = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double(), torch.tensor([[2.0, -1.0], [1.0, 3.0]]).double()
ONES = torch.ones(2, dtype=DOUBLE)


def by_alias(x):
    y = 1 * x
    z = y
    z *= 2
    return (y**2 + z**2).sum()


def in_place(step):
    def changed(x):
        y = 1 * x
        step(y)
        return (y + x.square()).sum()

    return changed


def hooked():
    layer = nn.Identity()
    layer.register_forward_pre_hook(lambda layer, given: (2 * given[0],))
    layer.register_forward_hook(lambda layer, given, found: 3 * found)
    return lambda x: layer(x.square()).sum()


class Tripled(nn.Identity):
    def forward(self, x):
        return 3 * x


# Each with its largest curvature on [-1, 1]^2; NAN where there must be no certificate.
NAN = math.nan
TRAPS = {
    "keyword": (lambda x: torch.add(ONES, x.square(), alpha=3).sum(), 6.0),
    "keyword of a difference": (lambda x: torch.sub(ONES, x.square(), alpha=1.9).sum(), 3.8),
    "alias": (by_alias, NAN),
    "exp_": (in_place(torch.exp_), NAN),
    "square_": (in_place(torch.square_), NAN),
    "method": (in_place(lambda y: y.exp_()), NAN),
    "entry": (in_place(lambda y: y[0].mul_(2)), NAN),
    "out": (lambda x: torch.add(x, x, out=torch.empty(0).double()).square().sum() if x.is_meta else x.sum(), NAN),
    "matrix product": (lambda x: ((x * MATRIX) @ OTHER)[0].square().sum(), 80.2278299076186),
    "linear of a matrix": (lambda x: nn.functional.linear(x * MATRIX, OTHER.T)[0].square().sum(), 80.2278299076186),
    "matrix product of two": (lambda x: ((x[:, None] * ONES) @ (x[None] * ONES[:, None]))[0, 0] * 4, 16.0),
    "sum of products": (lambda x: torch.einsum("i,ij,j->", x, MATRIX, x), 5 + 34**0.5),
    "comparison": (lambda x: ((0 * x == 0) * 5 * x.square()).sum(), NAN),
    "where": (lambda x: torch.where(x > 2, x, x.square()).sum(), NAN),
    "branch on the type": (lambda x: (3 if isinstance(x, torch.Tensor) else 1) * x.square().sum(), 6.0),
    "branch on a value": (lambda x: x.square().sum() if x.is_meta and x[0] > 0 else 3 * x.square().sum(), NAN),
    "look at a value": (lambda x: x.square().sum() * (x.tolist()[0] ** 0 if x.is_meta else 1), NAN),
    "hooks": (hooked(), 12.0),
    "own forward": (lambda x: Tripled()(x.square()).sum(), 6.0),
    "rounded quotient": (lambda x: torch.div(ONES, x + 3, rounding_mode="floor").sum() + x.square().sum(), NAN),
    "random": (lambda x: (torch.rand(1).double() * x if x.is_meta else x).square().sum(), NAN),
    "halved digits": (lambda x: (x + x.half() ** 2).sum(), NAN),
    "beside the data": (lambda x: (torch.full((2,), 3.0, device=x.device, dtype=x.dtype) * x).square().sum(), 18.0),
    "joined": (lambda x: torch.cat([x, ONES]).square().sum() + torch.stack([x[0] ** 2, ONES[0]]).sum(), 4.0),
    "kept axes": (lambda x: (MATRIX * x).square().mean(1, keepdim=True).sum(0, keepdim=True), 20.0),
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_every_step_is_taken_for_what_it_is_or_refused(trap):
    f, exact = TRAPS[trap]
    found = bounds(f, box([-1.0, -1.0], [1.0, 1.0]), exact, "largest")
    if math.isnan(exact):
        assert found is None
    else:
        assert found is not None
        assert exact * (1 - 1e-15) <= max(-found[0], found[1]) <= exact * (1 + 1e-9)


def test_softplus_is_known_up_to_its_threshold():
    """Beyond it torch's own is a straight line: on [2, 3] with a threshold of 1 it adds no curvature."""
    for arguments in ((1.0, 1.0), (1.0, 2.5), (2.0,)):
        f = lambda x, arguments=arguments: (nn.functional.softplus(x, *arguments) + 5 * x.square()).sum()  # noqa: E731
        assert bounds(f, box([2.0], [3.0]), 10.0, "least") is None
        found = strong_convexity(f, (2.0, 3.0), points=16)
        assert not found.certified
    inside = smoothness(lambda x: nn.functional.softplus(x, 1.0, 1.01).sum(), (-1.0, 1.0), points=16)
    assert inside.certified
    assert 0.25 <= inside.value <= 0.2500001


def test_what_intervals_took_for_another_function_is_not_certified():
    """The search does not see such a step through autograd, the intervals do: their answers contradict each other."""

    def bent(x):
        return (x.square() if x.is_meta else 3 * x.square()).sum()

    for dtype in (torch.float32, DOUBLE):
        box = (-torch.ones(1, dtype=dtype), torch.ones(1, dtype=dtype))
        top, bottom = smoothness(bent, box, points=16), strong_convexity(lambda x: -bent(x), box, points=16)
        assert (top.certified, bottom.certified) == (False, False)
        assert (top.value, bottom.value) == pytest.approx((6.0, -6.0), rel=1e-5)


def test_a_contradiction_of_one_part_in_a_hundred_is_seen_in_single_precision():
    """Where the quotient between two points, which single precision puts far apart, would not show it."""

    def steep(x):
        return ((1 if x.is_meta else 1.01) * torch.exp(x)).sum()

    assert not smoothness(steep, (-torch.ones(1), torch.ones(1)), points=16).certified
    assert smoothness(lambda x: torch.exp(x).sum(), (-torch.ones(1), torch.ones(1)), points=16).certified


def test_a_network_of_tanh_units_has_certified_smoothness():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    box = (-torch.full((2,), 0.5, dtype=DOUBLE), torch.full((2,), 0.5, dtype=DOUBLE))
    found = smoothness(network, box, points=64)
    points = box_region(box).sample(500, torch.Generator().manual_seed(1))
    assert found.certified
    assert float(torch.linalg.eigvalsh(batch_hessians(network, points).detach()).abs().max()) <= found.value


def test_over_a_whole_box_the_bound_is_that_of_the_enclosed_matrix():
    """Told that what was seen is enormous, it has nothing to cut: the Hessian is [[6x, 3], [3, 6y]]."""
    whole = bounds(lambda t: t[0] ** 3 + t[1] ** 3 + 3 * t[0] * t[1], box([0.0, 1.0], [1.0, 4.0]), 1e9, "largest")
    low, high = torch.linalg.eigvalsh(torch.tensor([[3.0, 3.0], [3.0, 15.0]], dtype=DOUBLE)).tolist()
    assert whole == pytest.approx((low - 9, high + 9), abs=1e-12)
    bowl = bounds(lambda t: torch.exp(t.square()).sum(), box([-1.0], [1.0]), 1e9, "largest")
    assert bowl is not None
    assert bowl[0] == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize("f", [lambda t: t.abs().sum(), lambda t: torch.tensor(1.0), lambda t: 0 * t, lambda t: 1.0])
def test_unknown_steps_have_no_bound(f):
    assert bounds(f, box([0.0, 0.0], [1.0, 1.0]), 1.0, "largest") is None


def test_a_box_is_cut_along_what_matters_to_one_part_in_a_hundred():
    """One variable matters little, and its side of the box is the longest."""

    def bowl_of_one(t):
        return 5 * t[1] ** 2 + t[1] * torch.exp(-t[1])

    grid, sides = torch.linspace(1.0, 2.0, 101, dtype=DOUBLE), box([2500.0, 1.0], [3000.0, 2.0])
    bends = 10 + (grid - 2) * torch.exp(-grid)
    low, high = float(bends.min()), float(bends.max())
    least = bounds(lambda t: bowl_of_one(t) + 20 * t[0] ** 2, sides, low, "least")
    largest = bounds(bowl_of_one, sides, high, "largest")
    steepest = bounds(lambda t: -1e-3 * bowl_of_one(t), sides, 1e-3 * high, "largest")
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
