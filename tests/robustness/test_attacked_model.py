"""A classifier under attack: counted, verified, refused where it cannot be attacked, and given back as it was found."""

import math

import pytest
import torch
from tests.robustness.digit_classifier import Changed, classifier, digits
from torch import nn

from lemmata.robustness import Threat, fgsm, pgd
from lemmata.robustness.attacked_model import fixed_generator, under_attack
from lemmata.robustness.goals import cross_entropy_goal


class Counting(nn.Module):
    """Draws, counts and keeps running averages, as models in the wild do."""

    def __init__(self):
        super().__init__()
        self.network, self.norm, self.calls = classifier(), nn.BatchNorm2d(1), 0
        self.eval()

    def forward(self, x):
        self.calls += 1
        return self.network(self.norm(x)) + 0 * torch.rand(len(x), 10)


def test_a_model_comes_back_as_it_was_found():
    (x, y), model = digits(8), Counting()
    model.network[1].weight.requires_grad_(False)
    model.network[1].bias.grad = torch.ones(64)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    found = pgd(model, x, y, 0.2, steps=3)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (model.calls, model.training, found.examples.requires_grad) == (0, False, False)
    assert torch.equal(model.network[1].bias.grad, torch.ones(64))
    assert (model.network[3].bias.grad, x.grad) == (None, None)
    assert [each.weight.requires_grad for each in (model.network[1], model.network[3])] == [False, True]


def test_a_model_comes_back_after_an_error_too():
    x, y = digits(4)
    model = Changed(behind=lambda z: z.exp().exp().exp().exp())
    with pytest.raises(ValueError, match="logits must be finite: look for NaN"):
        fgsm(model, x, y, 0.1)
    assert all(each.requires_grad for each in model.parameters())


def test_successes_are_real_and_failures_are_the_input():
    (x, y), model = digits(100), classifier()
    for attack, settings in ((fgsm, {}), (pgd, {"steps": 5})):
        found = attack(model, x, y, 0.12, **settings)
        wrong = model(found.examples).argmax(1) != y
        assert torch.equal(found.success, wrong)
        assert 10 <= int(found.success.sum()) < 100
        assert torch.equal(found.examples[~found.success], x[~found.success])
        assert found.norms[~found.success].abs().max() == 0
        assert bool(Threat(0.12).admits(x, found.examples).all())


def test_what_is_wrong_already_costs_nothing_and_stays():
    (x, _), model = digits(20), classifier()
    y = (model(x).argmax(1) + (torch.arange(20) < 5)) % 10
    found = pgd(model, x, y, 0.1, steps=4)
    assert bool(found.success[:5].all())
    assert found.norms[:5].abs().max() == 0
    assert found.gradients.tolist() == [0] * 5 + [4] * 15
    assert found.queries.tolist() == [2] * 5 + [4 + 3] * 15  # at first, at last, to verify
    assert str(found).startswith(f"{int(found.success.sum())} of 20 answered wrongly")


def test_radius_zero_changes_no_accuracy():
    (x, y), model = digits(30), Counting()
    found = pgd(model, x, y, 0, steps=2)
    assert torch.equal(found.success, model(x).argmax(1) != y)
    assert torch.equal(found.examples, x)


def test_answers_do_not_depend_on_the_company():
    (x, y), model = digits(12), classifier()
    together = fgsm(model, x, y, 0.1)
    alone = [fgsm(model, x[i : i + 1], y[i : i + 1], 0.1) for i in range(12)]
    assert torch.equal(together.examples, torch.cat([each.examples for each in alone]))
    assert torch.equal(together.success, torch.cat([each.success for each in alone]))


def test_candidates_that_leave_the_ball_are_brought_back_before_they_count():
    (x, y), model = digits(20), classifier()
    with under_attack(model, x, y, Threat(0.05)) as attacked:
        found = attacked.result(1 - x, "a sign")
    assert float(found.norms.max()) <= 0.05
    assert found.flags == ("a sign",)


def test_zero_and_infinite_gradients_are_told():
    x, y = digits(6)
    flat = Changed(behind=lambda z: z + (z.sign() - z).detach() - z + z.detach())
    assert fgsm(flat, x, y, 0.3).flags == ("gradients that are exactly zero",)
    steep = Changed(before=lambda x: (x - x.detach()).sqrt() + x)
    assert "gradients that are not finite" in fgsm(steep, x, y, 0.1).flags


def test_half_precision_answers_and_a_plain_function_will_do():
    (x, y), network = digits(10), classifier()
    found = fgsm(lambda x: network(x).bfloat16(), x, y, 0.2)
    assert found.examples.dtype == torch.float32
    assert torch.equal(fgsm(lambda x: network(x), x, y, 0.2).examples, fgsm(network, x, y, 0.2).examples)


def test_a_search_in_half_precision_is_verified_in_the_models_own():
    (x, y), network = digits(10), classifier()
    with under_attack(network, x, y, Threat(0.2), autocast=torch.bfloat16) as attacked:
        _, gradient, _ = attacked.gradient(x, cross_entropy_goal)
        found = attacked.result(x + 0.2 * gradient.sign())
    assert torch.equal(found.success, network(found.examples).argmax(1) != y)


def test_a_generator_that_is_not_given_begins_at_the_same_place():
    first, again = (torch.rand(3, generator=fixed_generator(None)) for _ in range(2))
    assert torch.equal(first, again)
    given = torch.Generator().manual_seed(4)
    assert fixed_generator(given) is given


@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_attacked_is_refused_in_one_sentence():
    (x, y), model = digits(4), classifier()
    training = classifier()
    training[2].train()
    linear = nn.Sequential(nn.Flatten(), nn.Linear(64, 1)).eval()
    for broken, error, message in [
        ((training, x, y), ValueError, r"the model is in training mode \(2\): call model.eval\(\)"),
        ((classifier().train(), x, y), ValueError, "training mode: call"),
        ((linear, x, y), ValueError, r"wrap it: torch.cat\(\[-z, z\], dim=1\)"),
        ((lambda x: x, x, y), ValueError, r"logits \(batch, classes\), got \(4, 1, 8, 8\)"),
        ((lambda x: model(x).detach(), x, y), ValueError, "gives no gradient of its logits: use square_attack"),
        ((model, x.double(), y), TypeError, r"x is torch.float64, and the model's weights are torch.float32: use x.to"),
        ((model, x, y[:3]), ValueError, r"y must be \(4,\), one class for each example"),
        ((model, x, y + 8), ValueError, "y must hold classes from 0 to 9"),
        ((model, x, y - 10), ValueError, "y must hold classes from 0, got"),
        ((model, x, y.float()), TypeError, r"use y.long\(\)"),
        ((model, x, y, 0.1, math.inf, (0, 1), y), ValueError, "targeted must name another class than y"),
        ((model, x, y, 0.1, math.inf, (0, 1), 10), ValueError, "targeted must hold classes from 0 to 9, got 10"),
        ((model, x, y, -0.1), ValueError, "eps must be >= 0"),
        ((model, x, y, math.inf), ValueError, "eps must be finite"),
        ((model, x, y, 0.1, 0), ValueError, "norm must be 1, 2 or inf"),
    ]:
        with pytest.raises(error, match=message):
            fgsm(*broken, **({} if len(broken) > 3 else {"eps": 0.1}))
