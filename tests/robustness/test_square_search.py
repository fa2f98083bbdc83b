"""The square attack: scores alone, in every norm, on images, rows and numbers."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import Changed, classifier, digits
from torch import nn

from lemmata.robustness import BlackBox, Threat, apgd, square_attack


@pytest.mark.parametrize(("norm", "eps"), [(math.inf, 0.15), (2, 1.2), (1, 6.0)])
def test_it_needs_scores_alone_and_comes_near_what_gradients_find(norm, eps):
    (x, y), box = digits(), BlackBox(classifier())
    found = square_attack(box, x, y, eps, norm, queries=300)
    known = apgd(classifier(), x, y, eps, norm, steps=40)
    assert found.success.sum() > 0.5 * known.success.sum() > 0
    assert bool(Threat(eps, norm).admits(x, found.examples).all())
    assert int(found.gradients.sum()) == 0
    assert box.queries == int(found.queries.sum())
    assert int(found.queries.max()) <= 302  # one before, one to verify


def test_in_the_maximum_norm_every_change_goes_to_the_ball_or_the_box():
    x, y = digits(10)
    found = square_attack(classifier(), x, y, 0.1, queries=50)
    moved = found.examples[found.success & (found.norms > 0)]
    origin = x[found.success & (found.norms > 0)]
    ends = ((moved - origin).abs() - 0.1).abs() < 1e-6
    assert bool((ends | (moved == 0) | (moved == 1)).all())


@pytest.mark.parametrize("shape", [(6,), (3, 5), (2, 1, 4), (3, 6, 6)])
def test_it_takes_examples_of_any_shape(shape):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 3)).eval()
    x = torch.rand(8, *shape)
    y = model(x).argmax(1)
    for norm in (1, 2, math.inf):
        found = square_attack(model, x, y, 0.6, norm, queries=100)
        assert found.examples.shape == x.shape
        assert bool(Threat(0.6, norm).admits(x, found.examples).all())
    assert found.success.sum() >= apgd(model, x, y, 0.6).success.sum() - 1  # the last norm is the largest


def test_what_hides_gradients_does_not_stop_it():
    x, y = digits()
    quantised = Changed(before=lambda x: (x * 16).round() / 16)
    assert int(apgd(quantised, x, y, 0.15, steps=20).success.sum()) <= 6  # by the random start alone
    assert int(square_attack(quantised, x, y, 0.15, queries=300).success.sum()) > 20


def test_the_same_seed_gives_the_same_bits_and_levels_are_kept():
    model, (x, y) = classifier(), digits(10)
    x = (x * 255).round() / 255
    drawn = [
        square_attack(model, x, y, 0.1, levels=256, queries=40, generator=torch.Generator().manual_seed(s))
        for s in (1, 1)
    ]
    assert torch.equal(drawn[0].examples, drawn[1].examples)
    torch.testing.assert_close(drawn[0].examples * 255, (drawn[0].examples * 255).round(), atol=1e-4, rtol=0)
    with pytest.raises(ValueError, match="queries must be >= 1"):
        square_attack(model, x, y, 0.1, queries=0)
