"""APGD: as strong as projected gradient without a step to tune, at any scale of the logits."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import Changed, classifier, digits
from torch import nn

from lemmata.robustness import Threat, apgd, dlr_goal, pgd
from lemmata.robustness.adaptive_gradient import checkpoints

BALLS = ((math.inf, 0.1), (2, 0.6), (1, 2.5))


@pytest.mark.parametrize(("norm", "eps"), BALLS)
def test_it_finds_as_many_as_projected_gradient_with_the_same_gradients(norm, eps):
    model, (x, y) = classifier(), digits()
    ours, theirs = apgd(model, x, y, eps, norm, steps=40), pgd(model, x, y, eps, norm, steps=40)
    assert 0.3 < theirs.success.double().mean() < 0.97  # else it shows nothing
    assert ours.success.sum() >= theirs.success.sum() - 1
    assert bool(Threat(eps, norm).admits(x, ours.examples).all())
    assert torch.equal(model(ours.examples).argmax(1) != y, ours.success)


def test_the_ratio_of_logits_sees_through_their_scale():
    x, y = digits()
    cold, plain = Changed(behind=lambda logits: logits * 1e6), classifier()
    entropy, ratio = apgd(cold, x, y, 0.1, steps=20), apgd(cold, x, y, 0.1, steps=20, goal=dlr_goal)
    assert "gradients that are exactly zero" in entropy.flags
    assert entropy.success.sum() < ratio.success.sum() == apgd(plain, x, y, 0.1, steps=20, goal=dlr_goal).success.sum()


def test_an_interior_maximum_is_found_where_the_first_step_is_too_long():
    class Hill(nn.Module):
        def forward(self, x):  # wrong only within 0.01 of (0.62, 0.38), where a step of 2 eps = 0.4 never stands
            near = (x - torch.tensor([0.62, 0.38])).square().sum(1)
            return torch.stack([near - 1e-4, torch.zeros_like(near)], 1)

    found = apgd(Hill().eval(), torch.full((1, 2), 0.5), torch.tensor([0]), 0.2, steps=60)
    assert found.success.item()
    torch.testing.assert_close(found.examples, torch.tensor([[0.62, 0.38]]), atol=0.01, rtol=0)


def test_steps_are_judged_where_the_paper_says():
    assert sorted(checkpoints(100))[:6] == [22, 41, 57, 70, 80, 87]
    assert max(checkpoints(100)) <= 100
    assert checkpoints(1) == {1}


def test_restarts_go_on_with_what_is_left():
    model, (x, y) = classifier(), digits()
    one, three = (apgd(model, x, y, 0.07, steps=10, restarts=n) for n in (1, 3))
    assert bool((three.success | ~one.success).all())
    assert torch.equal(three.queries[one.success], one.queries[one.success])
    assert bool((three.queries[~three.success] > 2 * one.queries[~three.success]).all())


def test_targets_levels_and_the_same_bits():
    model, (x, y) = classifier(), digits()
    x = (x * 255).round() / 255
    found = apgd(model, x, y, 40 / 255, targeted=(y + 1) % 10, levels=256, steps=30)
    assert found.success.double().mean() > 0.2
    assert torch.equal(model(found.examples).argmax(1)[found.success], ((y + 1) % 10)[found.success])
    torch.testing.assert_close(found.examples * 255, (found.examples * 255).round(), atol=1e-4, rtol=0)
    seeds = [apgd(model, x, y, 0.07, steps=5, generator=torch.Generator().manual_seed(s)).examples for s in (1, 1, 2)]
    assert torch.equal(seeds[0], seeds[1])
    assert not torch.equal(seeds[0], seeds[2])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"steps": 0}, "steps must be >= 1"), ({"restarts": 0}, "restarts must be >= 1"), ({"norm": 3}, "norm must be")],
)
def test_bad_arguments_are_named(arguments, said):
    with pytest.raises(ValueError, match=said):
        apgd(classifier(), *digits(2), **{"eps": 0.1, **arguments})


def test_the_ratio_of_logits_is_flat_only_where_nothing_is_left_to_find():
    assert apgd(classifier(), *digits(), 0.3, steps=10, goal=dlr_goal).flags == ()
