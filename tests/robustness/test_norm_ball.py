"""Norms, projections and directions of perturbations: example by example, at every scale, against slower ways."""

import math

import pytest
import torch

from lemmata.robustness import perturbation_norms, project_ball, steepest_direction
from lemmata.robustness.norm_ball import norm_of, random_perturbation

NORMS = (1, 2, math.inf)


def drawn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_the_norm_is_that_of_each_example_and_pixels_are_counted_once_for_all_channels():
    images = torch.zeros(2, 3, 4, 4)
    images[0, :, 1, 2], images[1, 0, 0, 0], images[1, 2, 3, 3] = 0.5, -2.0, 1.0
    assert perturbation_norms(images, norm=0).tolist() == [1.0, 2.0]
    assert perturbation_norms(images).tolist() == [0.5, 2.0]
    assert perturbation_norms(images, norm=1).tolist() == [1.5, 3.0]
    assert perturbation_norms(images, norm=2).tolist() == pytest.approx([0.75**0.5, 5**0.5])
    assert perturbation_norms(torch.tensor([[0.0, 2.0, -1.0]]), norm=0).tolist() == [2.0]


@pytest.mark.parametrize("norm", NORMS)
def test_examples_do_not_share_a_norm(norm):
    near, far = 0.01 * drawn(1, 2, 3, 3), 100 * drawn(1, 2, 3, 3, seed=1)
    both = project_ball(torch.cat([near, far]), eps=1.0, norm=norm)
    assert torch.equal(both[:1], near)
    assert torch.allclose(both[1:], project_ball(far, eps=1.0, norm=norm))
    directions = steepest_direction(torch.cat([near, far]), norm)
    assert perturbation_norms(directions, norm).tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("values", [1, 2, 7])
def test_the_projection_onto_the_1_norm_is_that_of_a_bisection(values):
    z = drawn(50, values) * torch.logspace(-3, 3, 50)[:, None]
    low, high = torch.zeros(50, 1).double(), z.abs().amax(1, keepdim=True)
    for _ in range(200):
        middle = (low + high) / 2
        outside = (z.abs() - middle).clamp(min=0).sum(1, keepdim=True) > 0.7
        low, high = torch.where(outside, middle, low), torch.where(outside, high, middle)
    slower = torch.where(z.abs().sum(1, keepdim=True) <= 0.7, z, z.sign() * (z.abs() - high).clamp(min=0))
    assert torch.allclose(project_ball(z, eps=0.7, norm=1), slower, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_projections_change_nothing_twice_and_bring_radius_zero_to_zero(norm):
    z = drawn(20, 3, 4)
    once = project_ball(z, eps=1.3, norm=norm)
    assert torch.allclose(project_ball(once, eps=1.3, norm=norm), once, rtol=0, atol=1e-15)
    assert project_ball(z, eps=0, norm=norm).abs().max() == 0
    assert project_ball(0 * z, eps=0, norm=norm).abs().max() == 0


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("norm", [1, 1.5, 2, 7, math.inf])
def test_no_direction_of_length_one_climbs_faster(norm, scale):
    gradient = scale * drawn(6, 5, dtype=torch.float32)
    direction = steepest_direction(gradient, norm)
    assert perturbation_norms(direction, norm).tolist() == pytest.approx([1.0] * 6)
    others = drawn(6, 500, 5, seed=1, dtype=torch.float32)
    others = others / torch.linalg.vector_norm(others, ord=norm, dim=-1, keepdim=True)
    climbed = (gradient[:, None] / scale * others).sum(-1).amax(1)
    assert bool(((gradient / scale * direction).sum(1) >= climbed - 1e-5).all())


@pytest.mark.parametrize("norm", [1, 1.5, 2, math.inf])
def test_a_zero_gradient_has_no_direction(norm):
    assert steepest_direction(torch.zeros(2, 3), norm).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("norm", NORMS)
def test_random_perturbations_fill_the_ball_evenly_and_repeat_themselves(norm):
    like = torch.zeros(20_000, 3, dtype=torch.float64)
    found = random_perturbation(like, 0.7, norm, torch.Generator().manual_seed(3))
    volume = (perturbation_norms(found, norm) / 0.7) ** 3  # fraction of the ball that is nearer: uniform
    assert float(volume.max()) <= 1
    assert volume.quantile(torch.tensor([0.1, 0.5, 0.9]).double()).tolist() == pytest.approx([0.1, 0.5, 0.9], abs=0.015)
    assert found.mean(0).abs().max() < 0.01
    assert torch.equal(found, random_perturbation(like, 0.7, norm, torch.Generator().manual_seed(3)))


@pytest.mark.usefixtures("unchecked")
def test_words_and_numbers_for_norms():
    assert norm_of("inf") == math.inf
    for wrong in (0, 3, True, "two", math.nan):
        with pytest.raises(ValueError, match="norm must be 1, 2 or inf"):
            norm_of(wrong)
    with pytest.raises(ValueError, match="eps must be >= 0, got -1"):
        project_ball(torch.ones(1, 2), eps=-1)
    with pytest.raises(ValueError, match=r"norm must be >= 1, got 0\.5"):
        steepest_direction(torch.ones(1, 2), norm=0.5)
