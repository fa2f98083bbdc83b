"""Carlini and Wagner's attack: short, never black, each example with a weight of its own."""

import copy
import math

import pytest
import torch
from tests.robustness.digit_classifier import Changed, classifier, digits
from torch import nn

from lemmata.robustness import Threat, carlini_wagner, deepfool, margin_goal
from lemmata.robustness.penalty_search import from_box, into_box


def affine(seed=0, classes=2):
    generator = torch.Generator().manual_seed(seed)
    model = nn.Linear(5, classes).double().eval()
    model.load_state_dict(
        {"weight": torch.randn(classes, 5, generator=generator), "bias": torch.zeros(classes, dtype=torch.float64)}
    )
    x, a = torch.rand(60, 5, generator=generator).double() - 0.5, (model.weight[1] - model.weight[0]).detach()
    return model, x[(x @ a).abs() / a.norm() > 0.1][:20]


def test_affine_classifiers_to_a_twenty_fifth_of_their_distance():
    model, x = affine()
    y = model(x).argmax(1)
    a = (model.weight[1] - model.weight[0]).detach()
    exact = (x @ a).abs() / a.norm()
    found = carlini_wagner(model, x, y, bounds=(-3.0, 3.0), searches=8, lr=0.02)
    assert bool(found.success.all())
    assert bool(((found.norms >= exact) & (found.norms <= 1.04 * exact)).all())


def test_the_weight_decides_where_it_must():
    model, x = affine()
    y, a = model(x).argmax(1), (model.weight[1] - model.weight[0]).detach()
    least = float((2 * (x @ a).abs() / (a @ a)).min())  # of all examples, so that no c below it serves any
    options = {"bounds": (-3.0, 3.0), "searches": 1, "steps": 300, "patience": 300, "lr": 0.002}
    assert not carlini_wagner(model, x, y, c=0.2 * least, **options).success.any()
    most = float((2 * (x @ a).abs() / (a @ a)).max())
    assert carlini_wagner(model, x, y, c=1.5 * most, **options).success.all()


def test_what_fails_comes_back_as_it_was_and_never_black():
    model, (x, y) = classifier(), digits()
    found = carlini_wagner(model, x, y, c=1e-6, searches=1, steps=5)
    failed = ~found.success
    assert bool(failed.any())
    assert torch.equal(found.examples[failed], x[failed])


def test_short_on_digits_whose_pixels_are_zero_and_one():
    model, (x, y) = classifier(), digits()
    assert bool((x == 0).any())
    assert bool((x == 1).any())
    found, other = carlini_wagner(model, x, y), deepfool(model, x, y)
    assert found.success.double().mean() > 0.99
    assert float(found.norms.mean()) < 1.1 * float(other.norms.mean())
    assert bool(Threat(math.inf, 2).admits(x, found.examples).all())
    assert torch.equal(model(found.examples).argmax(1) != y, found.success)


def test_examples_do_not_depend_on_their_companions():
    model, (x, y) = classifier(), digits(12)
    together, alone = carlini_wagner(model, x, y), [carlini_wagner(model, x[k : k + 1], y[k : k + 1]) for k in range(2)]
    for k, each in enumerate(alone):
        torch.testing.assert_close(each.norms[0], together.norms[k], rtol=0.05, atol=1e-3)
    assert torch.equal(together.examples, carlini_wagner(model, x, y).examples)


def test_examples_that_are_done_ask_no_more():
    model, (x, y) = classifier(), digits(20)
    found = carlini_wagner(model, x, y)
    assert int(found.gradients.max()) <= 5 * 50 + 1
    assert len(found.gradients.unique()) > 3
    wrong = carlini_wagner(model, x, (model(x).argmax(1) + 1) % 10)
    assert int(wrong.gradients.sum()) == 0


def test_targets_confidence_levels_and_other_boxes():
    model, (x, y) = classifier(), digits(12)
    target = (y + 1) % 10
    aimed = carlini_wagner(model, x, y, targeted=target)
    assert aimed.success.double().mean() > 0.9
    assert bool((model(aimed.examples).argmax(1) == target)[aimed.success].all())
    sure = carlini_wagner(model, x, y, confidence=2.0)
    margins = margin_goal(model(sure.examples).detach(), y)
    assert float(margins[sure.success & (sure.norms > 0)].min()) > 1.99
    x = (x * 16).round() / 16
    coarse = carlini_wagner(model, x, y, levels=17)
    assert coarse.success.double().mean() > 0.9
    assert bool((coarse.examples * 16 == (coarse.examples * 16).round()).all())
    wide = Changed(before=lambda images: images / 255)
    assert carlini_wagner(wide, x * 255, y, bounds=(0.0, 255.0)).success.double().mean() > 0.9


def test_the_box_and_its_inverse():
    x = torch.tensor([0.0, 0.25, 1.0]).double()
    assert bool(torch.isfinite(from_box(x)).all())
    torch.testing.assert_close(into_box(from_box(x, shrink=0.0))[1], x[1])
    assert not torch.isfinite(from_box(x, shrink=0.0)).all()
    w = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: into_box(w, (-2.0, 3.0)), w)


def test_bad_choices():
    model, (x, y) = classifier(), digits(2)
    with pytest.raises(ValueError, match="norm must be 2 for Carlini and Wagner's attack, got inf: use deepfool"):
        carlini_wagner(model, x, y, norm=math.inf)
    for name, value in (("c", 0.0), ("lr", 0.0), ("confidence", -1.0), ("searches", 0), ("steps", 0)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            carlini_wagner(model, x, y, **{name: value})


def test_an_image_on_the_boundary_itself_is_moved_off_it():
    model = nn.Linear(2, 2).eval()
    model.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    found = carlini_wagner(model, torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
    assert bool(found.success)
    assert float(found.norms) < 1e-4


def test_half_precision_finds_what_single_precision_finds():
    model, (x, y) = classifier(), digits(10)
    single = carlini_wagner(model, x, y)
    half = carlini_wagner(copy.deepcopy(model).bfloat16(), x.bfloat16(), y)
    assert int(half.success.sum()) == int(single.success.sum())
    assert float(half.norms.median()) < 1.1 * float(single.norms.median())


def test_a_boundary_beyond_the_box_is_told():
    model = nn.Linear(2, 2).eval()
    model.load_state_dict({"weight": torch.tensor([[-1.0, -1.0], [0.0, 0.0]]), "bias": torch.tensor([3.0, 0.0])})
    x, y = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    found = carlini_wagner(model, x, y)
    assert not found.success
    assert found.flags == ("a penalty that no weight brought to zero",)
    assert carlini_wagner(model, x, y, bounds=(0.0, 2.0)).flags == ()
