"""One step and several along the gradient: float32 and other boxes, targets, and what they refuse."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import classifier, digits
from torch import nn

from lemmata.robustness import Threat, fgsm, iterative_fgsm, least_likely_attack, pgd

ATTACKS = (fgsm, iterative_fgsm, least_likely_attack)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(("norm", "eps"), [(1, 12.0), (2, 1.5), (math.inf, 0.2)])
def test_examples_are_inside_and_wrong_in_every_norm(attack, norm, eps):
    (x, y), model = digits(60), classifier()
    found = attack(model, x, y, eps, norm)
    assert bool(Threat(eps, norm).admits(x, found.examples).all())
    assert torch.equal(found.success, model(found.examples).argmax(1) != y)
    assert int(found.success.sum()) > 0


@pytest.mark.parametrize("attack", ATTACKS)
def test_one_channel_images_and_plain_vectors_are_attacked_alike(attack):
    (x, y), model = digits(20), classifier()
    flat = attack(model, x.flatten(1), y, 0.15).examples
    assert torch.equal(flat.view_as(x), attack(model, x, y, 0.15).examples)


def test_a_box_of_the_model_is_a_box_of_the_attack():
    (x, y), network = digits(30), classifier().double()
    scaled = nn.Sequential(Scaled(), network).eval()
    ours, scaled = fgsm(network, x.double(), y, 0.15), fgsm(scaled, 2 * x.double() - 1, y, 0.3, bounds=(-1.0, 1.0))
    assert torch.equal(ours.success, scaled.success)
    assert torch.allclose(2 * ours.examples - 1, scaled.examples)


class Scaled(nn.Module):
    def forward(self, x):
        return (x + 1) / 2


def test_many_steps_are_projected_ascent_from_the_input():
    (x, y), model = digits(30), classifier()
    several = iterative_fgsm(model, x, y, 0.1, steps=7, step=0.03)
    assert torch.equal(several.examples, pgd(model, x, y, 0.1, steps=7, step=0.03, random_start=False).examples)
    assert several.gradients.max() == 7


def test_a_step_is_never_longer_than_the_radius():
    (x, y), model = digits(30), classifier()
    assert torch.equal(iterative_fgsm(model, x, y, 0.1, steps=1).success, fgsm(model, x, y, 0.1).success)


def test_the_least_likely_class_is_the_target_of_a_targeted_step():
    (x, y), model = digits(100), classifier()
    x, y = x[model(x).argmax(1) == y], y[model(x).argmax(1) == y]
    least = model(x).argmin(1)
    for steps, aimed in ((1, fgsm), (20, iterative_fgsm)):
        settings = {} if steps == 1 else {"steps": steps}
        towards, found = (
            aimed(model, x, y, 0.3, targeted=least, **settings),
            least_likely_attack(model, x, y, 0.3, steps=steps),
        )
        assert int(towards.success.sum()) >= 3
        assert torch.allclose(towards.examples[towards.success], found.examples[towards.success])
        assert bool(found.success[towards.success].all())
        assert int(found.success.sum()) > int(towards.success.sum())  # any wrong answer will do


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_drawn_and_one_image_is_enough(attack):
    (x, y), model, generator = digits(3), classifier(), torch.Generator().manual_seed(1)
    before = generator.get_state()
    with_it, without = attack(model, x[:1], y[:1], 0.4, generator=generator), attack(model, x[:1], y[:1], 0.4)
    assert torch.equal(generator.get_state(), before)
    assert torch.equal(with_it.examples, without.examples)


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_refused():
    (x, y), model = digits(4), classifier()
    with pytest.raises(ValueError, match="least_likely_attack chooses its targets itself"):
        least_likely_attack(model, x, y, 0.1, targeted=3)
    for attack in (iterative_fgsm, least_likely_attack):
        with pytest.raises(ValueError, match="steps must be >= 1, got 0"):
            attack(model, x, y, 0.1, steps=0)
        with pytest.raises(ValueError, match="step must be >= 0"):
            attack(model, x, y, 0.1, step=-1.0)
    for attack in ATTACKS:
        with pytest.raises(ValueError, match="eps must be finite"):
            attack(model, x, y, math.inf)
        with pytest.raises(ValueError, match="norm must be 1, 2 or inf"):
            attack(model, x, y, 0.1, 3)
