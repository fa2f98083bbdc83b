"""One perturbation for all: its norm, and that it works on images that it never saw."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import classifier, digits

from lemmata.robustness import perturbation_norms, universal_attack


@pytest.mark.parametrize(("norm", "eps", "least"), [(math.inf, 0.3, 0.35), (2, 2.0, 0.35), (1, 12.0, 0.1)])
def test_it_stays_in_its_ball_and_works_on_others(norm, eps, least):
    model, x = classifier(), digits(300)[0]
    answers = model(x).argmax(1)
    found = universal_attack(model, x[:200], answers[:200], eps, norm, epochs=10)
    assert found.perturbation.shape == x.shape[1:]
    assert float(perturbation_norms(found.perturbation[None], norm)) <= eps * (1 + 1e-5)
    moved = (x[200:] + found.perturbation).clamp(0, 1)
    assert (model(moved).argmax(1) != answers[200:]).double().mean() > least
    assert torch.equal(model(found.examples).argmax(1) != answers[:200], found.success)


def test_the_same_bits_and_another_generator():
    model, (x, y) = classifier(), digits()
    one, two = (universal_attack(model, x, y, 0.2, epochs=2, batch_size=7) for _ in range(2))
    assert torch.equal(one.perturbation, two.perturbation)
    other = universal_attack(model, x, y, 0.2, epochs=2, batch_size=7, generator=torch.Generator().manual_seed(5))
    assert not torch.equal(one.perturbation, other.perturbation)


def test_towards_one_class_and_at_radius_zero():
    model, (x, y) = classifier(), digits(100)
    x, y = x[y != 8], y[y != 8]
    found = universal_attack(model, x, y, 0.4, targeted=8, epochs=10)
    assert (model(found.examples).argmax(1) == 8).double().mean() > 0.4
    assert torch.equal(universal_attack(model, x, y, 0.0, epochs=1).examples, x)


def test_bad_choices():
    model, (x, y) = classifier(), digits(2)
    with pytest.raises(ValueError, match="eps must be finite for a universal perturbation"):
        universal_attack(model, x, y, math.inf)
    with pytest.raises(ValueError, match="batch_size must be"):
        universal_attack(model, x, y, 0.1, batch_size=0)
