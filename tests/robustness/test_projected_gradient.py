"""Projected gradient ascent: the iterates of foolbox and torchattacks, restarts, stops, and what a box does to it."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import Changed, classifier, digits
from torch import nn
from torch.nn import functional

from lemmata.robustness import Threat, cross_entropy_goal, fgsm, iterative_fgsm, least_likely_attack, margin_goal, pgd
from lemmata.robustness.attacked_model import under_attack
from lemmata.robustness.norm_ball import random_perturbation
from lemmata.robustness.projected_gradient import ascent_direction, climb


def wide(count=60):
    """Digits and their classifier in float64."""
    x, y = digits(count)
    return classifier().double(), x.double(), y


def linear(weight):
    """Two classes that one score tells apart, in float64."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(len(weight), 2)).double().eval()
    model[1].load_state_dict({"weight": torch.stack([-weight, weight]) / 2, "bias": torch.zeros(2)})
    return model


def compare(found, theirs, model, x, y, targets=None):
    """Equal where theirs fool the model; elsewhere, and where the input did so at once, ours gives the input back."""
    before, after = model(x).argmax(1), model(theirs).argmax(1)
    fooled = (before == y) & (after != y) if targets is None else (before != targets) & (after == targets)
    assert int(fooled.sum()) >= 5
    assert bool(found.success[fooled].all())
    assert float((found.examples - theirs)[fooled].abs().max()) < 1e-6


@pytest.mark.parametrize("norm", [2, math.inf])
@pytest.mark.parametrize("targeted", [False, True])
def test_iterates_are_those_of_foolbox(norm, targeted):
    foolbox = pytest.importorskip("foolbox", reason="foolbox is not installed")
    (model, x, y), eps = wide(), {2: 1.0, math.inf: 0.15}[norm]
    targets = (y + 1) % 10
    attacks = {2: foolbox.attacks.L2PGD, math.inf: foolbox.attacks.LinfPGD}
    wanted = foolbox.criteria.TargetedMisclassification(targets) if targeted else foolbox.criteria.Misclassification(y)
    attack = attacks[norm](abs_stepsize=eps / 5, steps=12, random_start=False)
    theirs = attack.run(foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu"), x, wanted, epsilon=eps)
    aim = targets if targeted else None
    found = pgd(model, x, y, eps, norm, steps=12, step=eps / 5, random_start=False, targeted=aim)
    compare(found, theirs, model, x, y, aim)


@pytest.mark.parametrize("name", ["PGD", "PGDL2", "FGSM", "BIM"])
def test_iterates_are_those_of_torchattacks(name):
    torchattacks = pytest.importorskip("torchattacks", reason="torchattacks is not installed")
    model, x, y = wide()
    plain = {"steps": 10, "random_start": False}
    theirs, found = {
        "PGD": (
            lambda: torchattacks.PGD(model, 0.15, 0.03, 10, False),
            lambda: pgd(model, x, y, 0.15, step=0.03, **plain),
        ),
        "PGDL2": (
            lambda: torchattacks.PGDL2(model, 1.0, 0.2, 10, False),
            lambda: pgd(model, x, y, 1.0, 2, step=0.2, **plain),
        ),
        "FGSM": (lambda: torchattacks.FGSM(model, 0.15), lambda: fgsm(model, x, y, 0.15)),
        "BIM": (
            lambda: torchattacks.BIM(model, 0.15, 0.03, 10),
            lambda: iterative_fgsm(model, x, y, 0.15, steps=10, step=0.03),
        ),
    }[name]
    compare(found(), theirs()(x, y), model, x, y)


@pytest.mark.parametrize("norm", [2, math.inf])
def test_iterates_are_those_of_a_plain_loop_in_which_each_image_is_alone(norm):
    (model, x, y), eps = wide(20), {2: 1.0, math.inf: 0.15}[norm]
    results = []
    for image, label in zip(x, y, strict=True):
        delta = torch.zeros_like(image)
        for _ in range(9):
            leaf = (image + delta).requires_grad_()
            (gradient,) = torch.autograd.grad(functional.cross_entropy(model(leaf[None]), label[None]), leaf)
            if norm == 2:
                delta = delta + eps / 4 * gradient / gradient.norm()
                delta = delta * min(1.0, eps / float(delta.norm()))
            else:
                delta = (delta + eps / 4 * gradient.sign()).clamp(-eps, eps)
            delta = (image + delta).clamp(0, 1) - image
        results.append(image + delta)
    found = pgd(model, x, y, eps, norm, steps=9, step=eps / 4, random_start=False)
    compare(found, torch.stack(results), model, x, y)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_the_same_seed_gives_the_same_bits_and_another_another_example(norm):
    (x, y), model = digits(10), classifier()
    runs = [
        pgd(model, x, y, {1: 8.0, 2: 1.5, math.inf: 0.25}[norm], norm, steps=2, restarts=2, generator=generator)
        for generator in (None, None, torch.Generator().manual_seed(8))
    ]
    assert torch.equal(runs[0].examples, runs[1].examples)
    assert not torch.equal(runs[0].examples, runs[2].examples)
    assert bool(runs[2].success.any())


@pytest.mark.parametrize(("norm", "eps"), [(1, 4.0), (2, 0.6), (math.inf, 0.08)])
def test_every_example_is_inside_whatever_the_step(norm, eps):
    (x, y), model = digits(40), classifier()
    for step in (eps / 10, 10 * eps):
        found = pgd(model, x, y, eps, norm, steps=3, step=step, restarts=2)
        assert bool(Threat(eps, norm).admits(x, found.examples).all())


def test_more_restarts_fool_no_fewer_and_their_paths_are_in_one_batch():
    (x, y), model = digits(60), classifier()
    one, four = (pgd(model, x, y, 0.08, steps=4, restarts=restarts) for restarts in (1, 4))
    assert bool((four.success | ~one.success).all())
    asked = four.gradients[model(x).argmax(1) == y]
    assert asked.unique().tolist() == [16]
    margins = [margin_goal(model(found.examples), y)[one.success] for found in (one, four)]
    assert bool((margins[1] >= margins[0] - 1e-4).all())


def test_an_early_stop_asks_no_more_about_what_is_fooled():
    (x, y), model = digits(60), classifier()
    whole, early = (pgd(model, x, y, 0.1, steps=20, restarts=3, early_stop=stop) for stop in (False, True))
    assert bool((early.success | ~whole.success).all())
    assert int(early.gradients.sum()) < 0.7 * int(whole.gradients.sum())
    failed = ~early.success
    assert torch.equal(early.gradients[failed], whole.gradients[failed])
    assert bool((margin_goal(model(early.examples), y)[early.success] > 0).all())


def test_an_example_that_was_found_and_left_again_is_kept():
    x, y = torch.full((1, 2), 0.5), torch.zeros(1).long()

    def narrow(images):  # wrong only where the first pixel is about 0.62
        score = 0.05 - (images[:, :1] - 0.62).abs() + 0 * images[:, 1:]
        return torch.cat([-score, score], 1)

    found = pgd(
        narrow, x, y, 0.4, steps=3, step=0.1, random_start=False, goal=lambda z, y, t: (1 + 0 * z[:, 0]) * z[:, 1]
    )
    assert found.success.tolist() == [True]


def test_in_the_1_norm_the_box_does_not_stop_the_ascent():
    weight = torch.tensor([5.0, 4.0, -3.0, 2.0, 1.0, 0.5]).double()
    x = torch.tensor([[0.9, 0.5, 0.2, 0.4, 0.5, 0.5]]).double()
    best = (
        weight @ torch.tensor([0.1, 0.5, -0.2, 0.2, 0.0, 0.0]).double()
    )  # the budget goes where the slope is steepest
    score = float(x[0] @ weight)
    model = linear(weight)
    shifted = nn.Sequential(model, Shift(score + 0.5 * float(best)))
    found = pgd(shifted.eval(), x, torch.zeros(1).long(), 1.0, norm=1, steps=60, random_start=False)
    assert found.success.tolist() == [True]
    assert float((found.examples - x)[0] @ weight) > 0.9 * float(best)
    assert float(found.norms) <= 1.0


class Shift(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, logits):
        return logits - torch.tensor([-self.by, self.by], dtype=logits.dtype) / 2


def test_examples_on_a_grid_stay_adversarial_when_they_are_saved():
    (x, y), model = digits(40), classifier()
    x = (x * 255).round() / 255
    for attack in (fgsm, iterative_fgsm, pgd, least_likely_attack):
        found = attack(model, x, y, 40 / 255, levels=256)
        saved = (found.examples * 255).round().to(torch.uint8)
        again = model(saved.float() / 255)
        assert torch.equal(again.argmax(1) != y, found.success)
        assert int(found.success.sum()) >= 5


def test_the_search_sees_the_grid_so_that_it_does_not_stop_at_what_saving_undoes():
    (x, y), model = digits(60), classifier()
    x = (x * 15).round() / 15
    whole, early = (pgd(model, x, y, 2 / 15, levels=16, steps=30, early_stop=stop) for stop in (False, True))
    assert torch.equal(early.success, whole.success)
    assert int(early.success.sum()) >= 10


def test_a_target_is_reached_or_the_input_comes_back():
    (x, y), model = digits(40), classifier()
    found = pgd(model, x[y != 3], y[y != 3], 0.2, targeted=3)
    assert torch.equal(model(found.examples).argmax(1) == 3, found.success)
    assert int(found.success.sum()) >= 5
    assert torch.equal(found.examples[~found.success], x[y != 3][~found.success])


def test_random_starts_are_drawn_by_the_generator_alone():
    (x, y), model = digits(6), classifier()
    generator, twin = (torch.Generator().manual_seed(2) for _ in range(2))
    _ = pgd(model, x, y, 0.3, generator=generator, steps=1)
    rows = model(x).argmax(1) == y
    random_perturbation(x[rows], 0.3, math.inf, twin)
    assert torch.equal(generator.get_state(), twin.get_state())


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_path_of_steps_of_length_zero_is_its_random_start(norm):
    (x, y), model = digits(6), classifier()
    with under_attack(model, x, y, Threat(0.5, norm)) as attacked:
        start = climb(attacked, 1, 0, torch.Generator().manual_seed(4))[attacked.rows]
    begun = x[attacked.rows]
    drawn = random_perturbation(begun, 0.5, norm, torch.Generator().manual_seed(4))
    assert torch.allclose(start, (begun + drawn).clamp(0, 1), atol=1e-6)


@pytest.mark.parametrize("attack", [pgd, iterative_fgsm])
def test_a_step_that_is_not_given_is_two_and_a_half_radii_for_all(attack):
    (x, y), model, plain = digits(30), classifier(), {} if attack is iterative_fgsm else {"random_start": False}
    found = attack(model, x, y, 0.2, steps=8, **plain)
    assert torch.equal(found.examples, attack(model, x, y, 0.2, steps=8, step=0.0625, **plain).examples)
    assert not torch.equal(found.examples, attack(model, x, y, 0.2, steps=8, step=0.05, **plain).examples)


def test_in_the_1_norm_a_step_is_shared_by_the_largest_values_that_can_move():
    gradient = torch.tensor([[3.0, -2.0, 1.0, 0.0, -4.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    images = torch.tensor([[1.0, 0.5, 0.5, 0.5, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5]])
    whole = [ascent_direction(gradient, images, Threat(1, 1), share)[0].tolist() for share in (0.01, 0.4, 1.0)]
    assert whole == [[0, -1, 0, 0, 0], [0, -0.5, 0.5, 0, 0], [0, -0.5, 0.5, 0, 0]]
    assert ascent_direction(gradient, images, Threat(1, 1)).abs().sum(1).tolist() == [1.0, 0.0]
    wide = torch.arange(1.0, 301.0)[None]
    assert ascent_direction(wide, torch.zeros(1, 300), Threat(1, 1)).nonzero()[:, 1].tolist() == [297, 298, 299]


def test_a_saturated_loss_is_told_and_another_goal_finds_the_way():
    (x, y), hot = digits(30), Changed(behind=lambda z: 1e4 * z)
    goals = (cross_entropy_goal, margin_goal)
    masked, margin = (pgd(hot, x, y, 0.2, random_start=False, goal=goal) for goal in goals)
    assert masked.flags == ("gradients that are exactly zero",)
    assert margin.flags == ()
    assert int(margin.success.sum()) > int(masked.success.sum())


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_refused():
    (x, y), model = digits(4), classifier()
    for settings, message in [
        ({"restarts": 3, "random_start": False}, "restarts=3 need random_start=True"),
        ({"restarts": 0}, "restarts must be >= 1"),
        ({"steps": 0}, "steps must be >= 1"),
        ({"step": -0.1}, "step must be >= 0"),
        ({"norm": 0}, "norm must be 1, 2 or inf"),
        ({"eps": math.inf}, "eps must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            pgd(model, x, y, **{"eps": 0.1, **settings})
