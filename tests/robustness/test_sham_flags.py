"""Signs of sham robustness: none for honest networks, the right one for each sham, and an attack that breaks it."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import Changed, classifier, digits

from lemmata.robustness import BlackBox, apgd, sham_robustness, square_attack, transfer_attack


def quantised(x):
    return (x * 16).round() / 16


def passed_straight(x):
    """A quantiser that pretends to be the identity to whoever asks for its gradient."""
    return x + (quantised(x) - x).detach()


def noisy(x):
    return x + 0.1 * torch.randn_like(x)


SHAMS = {
    "cold": (Changed(behind=lambda z: z / 1e-6), ["zero gradients"]),
    "quantised": (Changed(before=quantised), ["zero gradients", "black box beats white box"]),
    "passed straight": (Changed(before=passed_straight), ["shattered gradients"]),
    "noisy": (Changed(before=noisy), ["random answers"]),
    "softmax": (Changed(behind=lambda z: z.softmax(1)), ["softmax as logits"]),
    "waves": (Changed(behind=lambda z: z + 2 * torch.sin(20 * z)), ["shattered gradients", "more steps still gain"]),
}


def words(flags):
    return {flag.split(":")[0] for flag in flags}


@pytest.mark.parametrize("name", SHAMS)
def test_each_sham_raises_its_flag(name):
    model, expected = SHAMS[name]
    assert words(sham_robustness(model, *digits(), eps=0.1)) >= set(expected)


@pytest.mark.parametrize(("norm", "eps"), [(math.inf, 0.1), (2, 0.6), (1, 2.5)])
def test_honest_networks_raise_none(norm, eps):
    for model in (classifier(), Changed(behind=lambda z: z.log_softmax(1)), Changed(behind=lambda z: z / 10 + 3)):
        assert sham_robustness(model, *digits(), eps=eps, norm=norm, surrogate=classifier(seed=1)) == ()


@pytest.mark.parametrize("name", ["cold", "quantised"])
def test_random_search_and_a_surrogate_break_what_hides_its_gradients(name):
    (x, y), model = digits(), SHAMS[name][0]
    white = int(apgd(model, x, y, 0.2, steps=20).success.sum())
    square = square_attack(BlackBox(model), x, y, 0.2, queries=200)
    carried = transfer_attack(BlackBox(model), x, y, 0.2, surrogate=classifier(seed=1))
    assert square.success.sum() > white + 10
    assert carried.success.sum() > white + 10


def test_the_same_seed_gives_the_same_signs_and_the_model_stays_as_it_was():
    model, (x, y) = SHAMS["noisy"][0], digits(10)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert sham_robustness(model, x, y, eps=0.1) == sham_robustness(model, x, y, eps=0.1)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(each.grad is None and each.requires_grad for each in model.parameters())


def test_a_radius_of_nothing_is_refused():
    with pytest.raises(ValueError, match="eps must be > 0, got 0"):
        sham_robustness(classifier(), *digits(2), eps=0)
