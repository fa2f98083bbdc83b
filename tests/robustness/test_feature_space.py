"""Attacks with a bound on features: inside the bound, as strong as in pixels, and free where features are blind."""

import copy

import pytest
import torch
from tests.robustness.digit_classifier import classifier, digits
from torch import nn

from lemmata.robustness import feature_attack, pgd


def test_features_that_are_pixels_give_the_attack_in_the_2_norm():
    model, (x, y) = classifier(), digits()
    found, projected = feature_attack(model, x, y, 0.6), pgd(model, x, y, 0.6, 2, steps=100)
    assert abs(int(found.success.sum()) - int(projected.success.sum())) <= 3
    assert float(found.norms.max()) <= 0.6 + 1e-5


def test_a_network_of_another_seed_keeps_its_features():
    model, (x, y) = classifier(), digits()
    other = classifier(seed=1)[:3].eval()
    found = feature_attack(model, x, y, 1.0, features=other)
    far = (other(found.examples) - other(x)).detach().flatten(1).norm(dim=1)
    assert float(far.max()) <= 1.0 + 1e-4
    assert found.success.any()
    assert torch.equal(model(found.examples).argmax(1) != y, found.success)
    assert torch.equal(found.examples, feature_attack(model, x, y, 1.0, features=other).examples)
    assert all(parameter.requires_grad and parameter.grad is None for parameter in other.parameters())


def test_pixels_are_not_bounded_where_the_features_are_blind():
    model, (x, y) = classifier(), digits()
    found = feature_attack(model, x, y, 1e-3, features=lambda images: images[:, :, :1], steps=60)
    assert found.success.double().mean() > 0.6
    assert float((found.examples - x)[:, :, :1].flatten(1).norm(dim=1).max()) <= 1e-3 + 1e-6
    assert float(found.norms.max()) > 0.1


def test_radius_zero_changes_nothing_that_the_features_see():
    model, (x, y) = classifier(), digits()
    assert torch.equal(feature_attack(model, x, y, 0, steps=5).examples, x)


def test_half_precision():
    model, (x, y) = copy.deepcopy(classifier()).bfloat16(), digits(10)
    found = feature_attack(model, x.bfloat16(), y, 1.0, steps=20)
    assert found.examples.dtype is torch.bfloat16
    assert int(found.success.sum()) >= 5


def test_bad_choices():
    model, (x, y) = classifier(), digits(2)
    with pytest.raises(ValueError, match="eps must be"):
        feature_attack(model, x, y, -1.0)
    with pytest.raises(ValueError, match="features is in training mode: call"):
        feature_attack(model, x, y, 1.0, features=nn.Linear(8, 8))
