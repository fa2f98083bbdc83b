"""Curvature enclosed by intervals: at a point, over a box, and where the box is cut."""

import math

import pytest
import torch
from torch import nn

from lemmata.foundations import batch_hessians, box_region, smoothness, strong_convexity

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
