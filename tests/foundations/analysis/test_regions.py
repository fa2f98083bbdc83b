"""Boxes: samples, corners, nearest points, pairs and the search."""

import math

import pytest
import torch

from lemmata.foundations import Box
from lemmata.foundations.analysis.regions import box_region


def test_a_box_samples_inside_and_has_its_corners():
    box = Box(torch.tensor([0.0, -1.0]), torch.tensor([1.0, 1.0]))
    sample = box.sample(100, torch.Generator().manual_seed(0))
    assert torch.equal(box.clip(sample), sample)
    assert box.corners().shape == (4, 2)
    wide = Box(torch.zeros(9), torch.ones(9))
    assert wide.corners().shape == (64, 9)
    assert box_region(box) is box


def test_a_pair_of_points_near_a_side_keeps_its_direction():
    box = Box(torch.zeros(2), torch.ones(2))
    first, second = box.pair(torch.tensor([0.0, 0.3]), torch.tensor([1.0, -1.0]), 0.1)
    assert torch.allclose(second - first, torch.tensor([0.2, -0.2]) / math.sqrt(2))
    assert torch.equal(torch.stack(box.pair(box.centre, torch.zeros(2))), torch.stack([box.low, box.high]))


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


WIDTHS = torch.tensor([1.0, 5.0, 1.0, 1.0, 1.0, 2.0, 3.0, 0.5], dtype=torch.float64)


@pytest.fixture
def wide_box(generator):
    low = 10 * torch.randn(8, generator=generator, dtype=torch.float64)
    return Box(low, low + WIDTHS)


def test_a_sample_fills_the_box(wide_box, generator):
    share = (wide_box.sample(500, generator) - wide_box.low) / wide_box.width
    assert (share >= 0).all()
    assert (share <= 1).all()
    # The least of 500 uniform numbers exceeds 1/20 with probability 0.95^500 = 7e-12.
    assert (share.amin(0) < 0.05).all()
    assert (share.amax(0) > 0.95).all()


def test_corners_are_corners_in_six_coordinates_and_have_opposites(wide_box):
    corners = wide_box.corners()
    assert len({tuple(corner) for corner in corners.tolist()}) == 64
    assert ((corners == wide_box.low) | (corners == wide_box.high))[:, :6].all()
    torch.testing.assert_close((corners + corners.flip(0)) / 2, wide_box.centre.expand(64, 8))
    torch.testing.assert_close(wide_box.centre - wide_box.low, WIDTHS / 2)


def test_clipping_gives_the_nearest_point(wide_box, generator):
    """Seen from the nearest point of a convex set, no point of the set lies towards what was projected."""
    far = wide_box.centre + 5 * torch.randn(100, 8, generator=generator, dtype=torch.float64)
    nearest, sample = wide_box.clip(far), wide_box.sample(500, generator)
    assert ((far - nearest)[:, None] * (sample - nearest[:, None])).sum(-1).max() <= 1e-9


def test_the_search_finds_the_best_point(generator):
    box = Box(torch.tensor([-3.0, 0.0, 7.0]).double(), torch.tensor([-2.0, 5.0, 8.0]).double())
    goal = torch.tensor([0.12, 0.87, 0.4], dtype=torch.float64)
    found = box.worst(lambda x: -((x - box.low) / box.width - goal).abs().amax(1), 64, generator)
    assert ((found - box.low) / box.width - goal).abs().max() < 5e-3


def test_pairs_lie_inside_apart_along_the_direction(wide_box, generator):
    direction = torch.randn(8, generator=generator, dtype=torch.float64)
    apart = 2 * 0.3 * 0.5 * direction / direction.norm()  # twice 0.3 of the least width
    for place in (wide_box.centre, *wide_box.corners()[:3]):
        first, second = wide_box.pair(place, 3 * direction, 0.3)
        assert torch.equal(wide_box.clip(first), first)
        assert torch.equal(wide_box.clip(second), second)
        torch.testing.assert_close(second - first, apart, rtol=0, atol=1e-13)
    first, second = wide_box.pair(wide_box.centre, direction, 0.3)
    torch.testing.assert_close((first + second) / 2, wide_box.centre)
    first, second = wide_box.pair(wide_box.centre, torch.eye(8, dtype=torch.float64)[2])
    assert torch.equal(second != first, torch.arange(8) == 2)


def test_without_a_share_rounding_and_bending_of_a_quotient_balance():
    """Quotients of the square lose to rounding alone, those of the third power to bending too."""
    one, other = box_region((torch.tensor(1.0), torch.tensor(3.0))).pair(torch.tensor([1.9]), torch.ones(1))
    torch.testing.assert_close((other**2 - one**2) / (other - one), other + one, rtol=0, atol=1e-3)
    for place in torch.linspace(1.1, 1.9, 9, dtype=torch.float64):
        near, beside = box_region((1.0, 2.0)).pair(place[None], torch.ones(1).double())
        assert float((beside**2 - near**2) / (beside - near) - 2 * place) == pytest.approx(0.0, abs=1e-11)
        assert float((beside**3 - near**3) / (beside - near) - 3 * place**2) == pytest.approx(0.0, abs=1e-6)
