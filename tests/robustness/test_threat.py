"""Ball, box and grid: nothing lies outside by a single unit in the last place, and nothing is refused by rounding."""

import math

import pytest
import torch

from lemmata.robustness import Threat


def images(*shape, seed=0, dtype=torch.float32):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("norm", "eps"), [(1, 3.0), (2, 0.5), (math.inf, 0.1), (math.inf, 8 / 255)])
def test_what_comes_back_is_inside_without_any_tolerance(norm, eps, dtype):
    x, noise = images(64, 1, 8, 8, dtype=dtype), images(64, 1, 8, 8, seed=1, dtype=dtype) - 0.5
    threat = Threat(eps, norm)
    found = threat.inside(x, x + noise)
    assert found.dtype == dtype
    assert bool((threat.norms(x, found) <= eps).all())
    assert torch.equal(found, found.clamp(0, 1))
    assert bool(threat.admits(x, found).all())
    far = threat.norms(x, threat.project(x.double(), (x + noise).double()))
    lost = far - threat.norms(x, found)
    assert float(lost.max()) <= 64 * 8 * torch.finfo(dtype).eps  # what is inside is not thrown away


def test_one_unit_beyond_the_radius_is_outside():
    x = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    beyond = torch.tensor([[0.75, 0.5], [math.nextafter(0.75, 1.0), 0.5]], dtype=torch.float64)
    assert Threat(0.25).admits(x.expand(2, 2), beyond).tolist() == [True, False]
    assert Threat(0.5).admits(x, torch.tensor([[math.nextafter(1.0, 2.0), 0.5]], dtype=x.dtype)).tolist() == [False]
    assert Threat(0.5).admits(x, torch.tensor([[math.nan, 0.5]], dtype=x.dtype)).tolist() == [False]


def test_a_pixel_that_rounding_left_beyond_the_box_may_stay_there():
    x = torch.tensor([[1.0 + 1e-7, 0.5]])
    Threat(0.1).check(x)
    assert Threat(0.1).admits(x, x).tolist() == [True]
    assert torch.equal(Threat(0).inside(x, x - 0.5), x)
    assert torch.equal(Threat(0, norm=2).inside(torch.cat([x, x / 2]), torch.zeros(2, 2)), torch.cat([x, x / 2]))


@pytest.mark.parametrize(("norm", "eps"), [(1, 2.0), (2, 0.3), (math.inf, 8 / 255)])
def test_on_a_grid_every_example_is_one_that_8_bits_hold(norm, eps):
    x = (images(32, 1, 8, 8) * 255).round() / 255
    threat = Threat(eps, norm, levels=256)
    threat.check(x)
    found = threat.inside(x, x + 0.4 * (images(32, 1, 8, 8, seed=1) - 0.5))
    whole = found.double() * 255
    assert float((whole - whole.round()).abs().max()) < 1e-4
    assert bool(threat.admits(x, found).all())
    assert bool((found != x).flatten(1).any(1).all())
    assert threat.admits(x, found + 0.3 / 255).sum() == 0


def test_the_radius_of_8_levels_allows_8_levels():
    x = torch.full((1, 4), 100 / 255)
    found = Threat(8 / 255, levels=256).inside(x, x + 1.0)
    assert (found * 255).round().tolist() == [[108.0] * 4]


def test_a_grid_may_begin_below_zero():
    grid = torch.linspace(-1, 1, 5)
    threat = Threat(0.7, bounds=(-1.0, 1.0), levels=5)
    threat.check(grid[None])
    found = threat.inside(grid[None], grid[None] + torch.tensor([[0.7, 0.9, -0.4, -0.6, 0.2]]))
    assert found.tolist() == [[-0.5, 0.0, 0.0, 0.0, 1.0]]
    assert threat.admits(grid[None], found - 0.25).tolist() == [False]
    with pytest.raises(ValueError, match="must lie on the grid of 5 levels"):
        threat.check(grid[None] * 0.9)


def test_changed_pixels_are_counted_and_too_many_are_taken_back():
    x = torch.zeros(2, 1, 3, 3)
    candidates = x.clone()
    candidates[0, 0, 1, 1], candidates[1, 0, 0, :2] = 2.0, 1.0
    found = Threat(1, norm=0).inside(x, candidates)
    assert found[0, 0, 1, 1] == 1.0  # cut to the box
    assert torch.equal(found[1], x[1])


def test_a_batch_of_one_and_other_boxes():
    x = torch.tensor([[-0.9, 0.2, 0.9]])
    found = Threat(0.5, bounds=(-1.0, 1.0)).inside(x, x + 3.0)
    assert torch.allclose(found, torch.tensor([[-0.4, 0.7, 1.0]]))
    assert torch.equal(Threat(0).inside(x.clamp(0, 1), x.clamp(0, 1) + 1), x.clamp(0, 1))
    assert torch.equal(Threat().inside(x.clamp(0, 1), torch.ones(1, 3)), torch.ones(1, 3))


@pytest.mark.usefixtures("unchecked")
def test_bad_threats_and_bad_images_say_what_to_do():
    for settings, message in [
        ({"eps": -0.1}, "eps must be >= 0"),
        ({"eps": math.nan}, "eps must be finite"),
        ({"norm": 3}, "norm must be 1, 2 or inf"),
        ({"bounds": (1, 0)}, "bounds must be > 1, got 0"),
        ({"levels": 1}, "levels must be >= 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            Threat(**settings)
    x = images(2, 3)
    for wrong, error, message in [
        ((255 * x).to(torch.uint8), TypeError, r"use x.float\(\) / 255"),
        (255 * x, ValueError, "put the normalisation inside the model"),
        (x - 0.5, ValueError, "must lie in bounds"),
        (x[0], ValueError, r"use x\[None\]"),
        (x * math.nan, ValueError, "x must be finite"),
        ([0.1], TypeError, "x must be a tensor"),
    ]:
        with pytest.raises(error, match=message):
            Threat(0.1).check(wrong)
    with pytest.raises(ValueError, match="must lie on the grid of 256 levels"):
        Threat(0.1, levels=256).check(x)
