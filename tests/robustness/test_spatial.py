"""The worst turn and shift of a grid, against each of its images."""

import pytest
import torch
from tests.robustness.digit_classifier import classifier, digits

from lemmata.robustness import spatial_attack
from lemmata.robustness.spatial import turned_and_shifted


def test_it_is_the_worst_of_the_grid():
    model, (x, y) = classifier(), digits()
    found = spatial_attack(model, x, y, degrees=15, pixels=1, angles=3)
    grid = turned_and_shifted(x, 15, 1, 3)
    assert len(grid) == 27
    wrong = torch.stack([model(each).argmax(1) != y for each in grid]).any(0)
    assert torch.equal(found.success, wrong)
    same = torch.stack([(found.examples == each.clamp(0, 1)).flatten(1).all(1) for each in grid]).any(0)
    assert bool((same | (found.examples == x).flatten(1).all(1)).all())
    assert bool((found.queries[wrong & (found.norms > 0)] == 29).all())  # the clean image, the grid, the verification


def test_the_grid_has_the_image_itself_and_whole_shifts():
    x, _ = digits(3)
    grid = turned_and_shifted(x, 20, 1, 3)
    torch.testing.assert_close(grid[9 + 4], x, atol=1e-5, rtol=0)
    torch.testing.assert_close(grid[9][:, :, 1:, 1:], x[:, :, :-1, :-1], atol=1e-5, rtol=0)
    assert float(grid[9][:, :, 0].abs().max()) == 0
    bright = turned_and_shifted(x, 0, 1, 1, fill=-1.0)
    assert float(bright[0][:, :, 0].max()) == -1


def test_radius_levels_and_no_motion():
    model, (x, y) = classifier(), digits()
    near = spatial_attack(model, x, y, eps=0.3)
    assert float(near.norms.max()) <= 0.3
    coarse = spatial_attack(model, (x * 16).round() / 16, y, levels=17)
    assert bool((coarse.examples * 16 == (coarse.examples * 16).round()).all())
    assert coarse.success.double().mean() > 0.5
    still = spatial_attack(model, x, y, degrees=0, pixels=0, angles=1)
    assert torch.equal(still.success, model(x).argmax(1) != y)


def test_bad_choices():
    model, (x, y) = classifier(), digits(2)
    for name, value in (("degrees", -1.0), ("pixels", -1), ("angles", 0)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            spatial_attack(model, x, y, **{name: value})
