"""DeepFool: exact on affine classifiers, short on networks, and where the box stands in the way."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import classifier, digits
from torch import nn

from lemmata.robustness import Threat, deepfool, linear_distance, pgd

ANYWHERE = (-100.0, 100.0)


def affine(weight, bias):
    model = nn.Linear(weight.shape[1], len(weight)).double().eval()
    model.load_state_dict({"weight": weight, "bias": bias})
    return model


@pytest.mark.parametrize("norm", [2, math.inf])
def test_affine_classifiers_need_one_step_and_the_exact_distance(norm):
    generator = torch.Generator().manual_seed(0)
    weight, bias, x = (torch.randn(shape, generator=generator).double() for shape in ((4, 6), (4,), (40, 6)))
    model = affine(weight, bias)
    y = model(x).argmax(1)
    exact = linear_distance(weight, bias, x, norm).distances
    once = deepfool(model, x, y, norm=norm, bounds=ANYWHERE, steps=1, halvings=0)
    torch.testing.assert_close(once.norms, 1.02 * exact, rtol=1e-3, atol=1e-3)
    back = deepfool(model, x, y, norm=norm, bounds=ANYWHERE)
    assert bool(back.success.all())
    assert bool(((back.norms >= exact) & (back.norms <= 1.001 * exact + 1e-4)).all())


def test_the_class_at_the_least_distance_not_at_the_least_coefficient():
    # gaps 1 and 4, norms of the differences 1 and 3: distances 1 and 4/3, the coefficients would say 1 and 4/9
    model = affine(torch.tensor([[0.0, 0], [1, 0], [0, 3]]).double(), torch.tensor([4.0, 3, 0]).double())
    found = deepfool(model, torch.zeros(1, 2).double(), torch.tensor([0]), bounds=ANYWHERE)
    assert model(found.examples).argmax() == 1
    assert abs(float(found.norms) - 1) < 1e-3


@pytest.mark.parametrize("norm", [2, math.inf])
def test_digits_whose_background_is_at_the_end_of_the_box(norm):
    model, (x, y) = classifier(), digits()
    found = deepfool(model, x, y, norm=norm)
    assert found.success.double().mean() > 0.99
    assert found.flags == ()
    assert bool(Threat(math.inf, norm).admits(x, found.examples).all())
    assert torch.equal(model(found.examples).argmax(1) != y, found.success)
    radius = float(found.norms.median())
    assert pgd(model, x, y, radius, norm, steps=40).success.double().mean() < 0.65


def test_the_own_and_the_last_class_can_be_aimed_at():
    model, (x, y) = classifier(), digits()
    targets = torch.where(y == 9, 0, 9)
    found = deepfool(model, x, y, targeted=targets)
    assert found.success.double().mean() > 0.9
    assert bool((model(found.examples).argmax(1) == targets)[found.success].all())
    near = deepfool(model, x, y)
    assert bool((near.norms <= found.norms + 0.05)[found.success & near.success].double().mean() > 0.9)


def test_levels_radius_batches_and_the_same_bits():
    model, (x, y) = classifier(), digits()
    x = (x * 16).round() / 16  # the digits have 17 levels
    coarse = deepfool(model, x, y, levels=17)
    assert coarse.success.double().mean() > 0.9
    assert bool((coarse.examples * 16 == (coarse.examples * 16).round()).all())
    free = deepfool(model, x, y)
    near = deepfool(model, x, y, eps=float(free.norms.median()))
    assert 0.3 < near.success.double().mean() < 0.7
    assert torch.equal(near.examples[~near.success], x[~near.success])
    assert torch.equal(free.examples, deepfool(model, x, y).examples)
    one = deepfool(model, x[:1], y[:1])
    torch.testing.assert_close(one.norms, free.norms[:1], rtol=1e-2, atol=1e-3)


def test_what_is_wrong_at_once_and_what_has_no_gradient():
    model, x = classifier(), digits(4)[0]
    wrong = deepfool(model, x, (model(x).argmax(1) + 1) % 10)
    assert torch.equal(wrong.examples, x)
    assert int(wrong.gradients.sum()) == 0

    class Flat(nn.Module):
        def forward(self, x):
            return torch.stack([0 * x.flatten(1).sum(1) + 1, 0 * x.flatten(1).sum(1)], 1)

    flat = deepfool(Flat().eval(), x, torch.zeros(4, dtype=torch.long), steps=3)
    assert not flat.success.any()
    assert torch.equal(flat.examples, x)
    assert "gradients that are exactly zero" in flat.flags


def test_bad_choices():
    model, (x, y) = classifier(), digits(2)
    with pytest.raises(ValueError, match="norm must be 2 or inf for DeepFool, got 1"):
        deepfool(model, x, y, norm=1)
    with pytest.raises(ValueError, match="steps must be"):
        deepfool(model, x, y, steps=0)
    with pytest.raises(ValueError, match="overshoot must be"):
        deepfool(model, x, y, overshoot=-0.1)


def test_an_image_on_the_boundary_itself_is_moved_off_it():
    found = deepfool(affine(torch.eye(2), torch.zeros(2)).float(), torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
    assert bool(found.success)
    assert float(found.norms) < 1e-4


def test_who_never_arrives_is_told():
    """The boundary lies beyond the corner of the box, where every step ends."""
    model = affine(torch.tensor([[-1.0, -1.0], [0.0, 0.0]]).double(), torch.tensor([3.0, 0.0]).double())
    found = deepfool(model, torch.tensor([[0.5, 0.5]]).double(), torch.tensor([0]))
    assert not found.success
    assert found.flags == ("steps that reached no boundary",)
    assert deepfool(model, torch.tensor([[0.5, 0.5]]).double(), torch.tensor([0]), bounds=(0.0, 2.0)).flags == ()
