"""One pixel: all of them tried, or a population that evolves."""

import pytest
import torch
from tests.robustness.digit_classifier import classifier, digits
from torch import nn

from lemmata.robustness import single_pixel_attack


def test_every_pixel_at_both_ends_is_tried():
    model, (x, y) = classifier(), digits()
    found = single_pixel_attack(model, x, y)
    for k in range(10):
        tried = x[k].expand(128, 1, 8, 8).clone().flatten(1)
        tried[torch.arange(128), torch.arange(128) % 64] = (torch.arange(128) // 64).float()
        wrong = model(tried.view(-1, 1, 8, 8)).argmax(1) != y[k]
        assert bool(found.success[k]) == bool(wrong.any())
    assert found.success.any()
    assert not found.success.all()
    assert bool(((found.examples != x).flatten(1).sum(1) <= 1).all())
    assert int(found.gradients.sum()) == 0


def test_evolution_finds_most_of_them_with_the_same_bits():
    model, (x, y) = classifier(), digits()
    all_of_them, evolved = single_pixel_attack(model, x, y), single_pixel_attack(model, x, y, search="evolution")
    assert (evolved.success & all_of_them.success).sum() >= 0.7 * all_of_them.success.sum()
    assert bool(((evolved.examples != x).flatten(1).sum(1) <= 1).all())
    assert torch.equal(evolved.examples, single_pixel_attack(model, x, y, search="evolution").examples)


@pytest.mark.parametrize("search", ["exhaustive", "evolution"])
def test_a_pixel_of_a_colour_image_has_three_values(search):
    class Blue(nn.Module):
        def forward(self, x):  # wrong where one pixel is blue and neither red nor green
            blue = (x[:, 2] - x[:, 0] - x[:, 1]).flatten(1).amax(1)
            return torch.stack([0.6 - blue, torch.zeros_like(blue)], 1)

    x = torch.full((2, 3, 4, 4), 0.5)
    found = single_pixel_attack(Blue().eval(), x, torch.tensor([0, 0]), search=search)
    assert found.success.all()
    assert bool((found.norms == 1).all())


def test_targets_levels_vectors_and_no_pixel():
    model, (x, y) = classifier(), digits()
    target = (y + 1) % 10
    aimed = single_pixel_attack(model, x, y, targeted=target)
    assert bool((model(aimed.examples).argmax(1) == target)[aimed.success].all())
    coarse = single_pixel_attack(model, (x * 16).round() / 16, y, levels=17, search="evolution")
    assert bool((coarse.examples * 16 == (coarse.examples * 16).round()).all())
    flat = single_pixel_attack(model[1:].eval(), x.flatten(1), y)
    assert torch.equal(flat.success, single_pixel_attack(model, x, y).success)
    assert torch.equal(single_pixel_attack(model, x, y, eps=0).examples, x)


def test_bad_choices():
    model, (x, y) = classifier(), digits(2)
    for name, value, message in (
        ("eps", 2, "eps must be 1"), ("norm", 2, "norm must be 0"), ("search", "random", "search must be"),
        ("population", 3, "population must be"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            single_pixel_attack(model, x, y, **{name: value})
    with pytest.raises(ValueError, match="x must be"):
        single_pixel_attack(model, x[:, 0], y)
