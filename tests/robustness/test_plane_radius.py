"""The exact radius, against a fine grid, a straight line, and attacks that cannot be nearer."""

import math

import pytest
import torch
from torch import nn

from lemmata.robustness.linear_boundary import linear_distance
from lemmata.robustness.plane_radius import exact_radius
from lemmata.robustness.projected_gradient import pgd


def drawn_network(seed=0, classes=3):
    """Boundaries in the middle of the box."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, classes)).double()
    with torch.no_grad():
        for values in model.parameters():
            values.mul_(2)
        model[-1].bias -= model(torch.rand(500, 2).double()).mean(0)
    return model.eval()


def points(n=12):
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_no_point_of_a_grid_is_wrong_within_the_radius_and_one_just_beyond_is(norm):
    model, x = drawn_network(), points()
    y = model(x).argmax(1)
    found = exact_radius(model, x, y, norm)
    axis = torch.linspace(0, 1, 201).double()
    grid = torch.cartesian_prod(axis, axis)
    away = torch.linalg.vector_norm(grid - x[:, None], ord=norm, dim=-1)
    nearest = away.masked_fill(model(grid).argmax(1) == y[:, None], math.inf).amin(1)
    assert (nearest >= found.radius - 1e-12).all()
    assert (nearest <= found.radius + 0.02).all()
    logits = model(found.nearest)
    assert torch.allclose(logits.amax(1), logits.gather(1, y[:, None])[:, 0], atol=1e-10)
    assert torch.allclose(torch.linalg.vector_norm(found.nearest - x, ord=norm, dim=1), found.radius)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_of_a_linear_model_it_is_the_distance_of_the_line(norm):
    torch.manual_seed(0)
    model = nn.Linear(2, 3).double().eval()
    x = points()
    wide = exact_radius(model, x, model(x).argmax(1), norm, bounds=(-60.0, 60.0))
    assert torch.allclose(wide.radius, linear_distance(model.weight, model.bias, x, norm).distances)


def test_attacks_succeed_beyond_the_radius_and_nowhere_within():
    model, x = drawn_network(seed=2), points()
    y = model(x).argmax(1)
    radius = exact_radius(model, x, y).radius
    for row in range(len(x)):
        one = x[row : row + 1], y[row : row + 1]
        assert not pgd(model, *one, eps=float(radius[row]) * (1 - 1e-9), restarts=3).success.any()
    ahead = float(radius.median())
    assert pgd(model, x, y, eps=1.2 * ahead, restarts=10).success.any()


def test_wrong_answers_are_at_zero_and_what_cannot_be_reached_at_infinity():
    model, x = drawn_network(), points()
    wrong = (model(x).argmax(1) + 1) % 3
    assert (exact_radius(model, x, wrong).radius == 0).all()
    with torch.no_grad():
        list(model.parameters())[-1].add_(torch.tensor([1e4, 0.0, 0.0]).double())
    found = exact_radius(model, x, torch.zeros(len(x), dtype=torch.long))
    assert found.radius.isinf().all()
    assert torch.equal(found.nearest, x)


def test_a_region_where_the_logits_are_equal_is_reached_at_its_border():
    model = nn.Sequential(nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 2)).double().eval()
    values = [torch.tensor([[1.0, 0.0]]), torch.tensor([-0.5]), torch.tensor([[1.0], [-1.0]]), torch.zeros(2)]
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), values, strict=True):
            parameter.copy_(value)
    found = exact_radius(model, torch.tensor([[0.75, 0.2]]).double(), torch.tensor([0]), norm=2)
    assert math.isclose(float(found.radius), 0.25, rel_tol=1e-12)


def test_bad_input_is_answered_in_a_sentence():
    model, x = drawn_network(), points()
    y = model(x).argmax(1)
    with pytest.raises(ValueError, match="norm must be 1, 2 or inf, got 3"):
        exact_radius(model, x, y, norm=3)
    with pytest.raises(ValueError, match=r"call model\.eval"):
        exact_radius(model.train(), x, y)
