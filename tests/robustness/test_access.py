"""Access: what each box gives, refuses and counts."""

import pytest
import torch
from tests.robustness.digit_classifier import classifier, digits
from torch import nn

from lemmata.robustness import BlackBox, GreyBox, WhiteBox, fgsm


def test_a_black_box_answers_and_counts_and_gives_nothing_else():
    model, (x, _) = classifier(), digits(7)
    box = BlackBox(model)
    assert torch.equal(box(x), model(x))
    assert not box(x).requires_grad
    assert box.queries == 14
    for name in ("parameters", "state_dict", "model", "architecture", "named_modules"):
        with pytest.raises(AttributeError, match=f"a black box answers queries, and has no '{name}'"):
            getattr(box, name)


@pytest.mark.parametrize("kind", [BlackBox, GreyBox])
def test_gradients_are_refused_and_attacks_say_what_needs_none(kind):
    with pytest.raises(ValueError, match="box gives no gradients: use square_attack"):
        fgsm(kind(classifier()), *digits(3), eps=0.1)


def test_more_answers_than_allowed_are_refused():
    box = BlackBox(classifier(), limit=5)
    box(digits(4)[0])
    with pytest.raises(ValueError, match="the black box answers 5 queries, and 4 are used up: attack fewer images"):
        box(digits(2)[0])
    box(digits(1)[0])


def test_a_grey_box_has_the_architecture_with_none_of_the_weights():
    norm = nn.BatchNorm2d(4)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.Flatten(), nn.Linear(144, 10)).eval()
    torch.nn.init.constant_(norm.get_buffer("running_mean"), 3.0)
    state = torch.get_rng_state()
    copies = [GreyBox(model).architecture(torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), state)
    assert [type(part) for part in copies[0].children()] == [type(part) for part in model]
    one, same, other = (copy.state_dict() for copy in copies)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["0.weight"], other["0.weight"])
    assert not torch.equal(one["0.weight"], model.state_dict()["0.weight"])
    assert float(one["1.running_mean"].abs().max()) == 0.0
    assert copies[0].training
    assert not model.training


def test_a_white_box_counts_answers_and_gradients():
    box, (x, y) = WhiteBox(classifier()), digits(6)
    found = fgsm(box, x, y, eps=0.1)
    assert box.queries == int(found.queries.sum())
    assert box.gradients == int(found.gradients.sum()) > 0
    assert isinstance(box.model, nn.Module)


def test_bad_models_are_refused():
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x * self.scale

    with pytest.raises(ValueError, match="scale cannot be drawn anew: give its module a method reset_parameters"):
        GreyBox(Bare().eval()).architecture()
    for kind in (BlackBox, GreyBox, WhiteBox):
        with pytest.raises(ValueError, match="in training mode: call"):
            kind(Bare())
