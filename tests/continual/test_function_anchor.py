"""Function anchors: divergences of answers, answers of then, and bad choices."""

import math

import pytest
import torch
from tests.continual.small import network, stream
from torch.nn import functional

from lemmata.continual import FunctionAnchor, kl_of_logits


def told(**words):
    strategy = FunctionAnchor(network(), **words)
    strategy.stream = stream()
    return strategy


def test_it_is_the_divergence_of_torch():
    old, new = torch.randn(5, 4).double(), torch.randn(5, 4).double()
    wanted = functional.kl_div(new.log_softmax(1), old.log_softmax(1), log_target=True, reduction="none").sum(1)
    assert torch.allclose(kl_of_logits(old, new), wanted, rtol=1e-12)


def test_equal_answers_cost_nothing_and_have_no_slope():
    logits = torch.randn(5, 4).double().requires_grad_()
    found = kl_of_logits(logits.detach() + 3.0, logits)  # logits are equal up to a constant
    assert float(found.detach().abs().max()) < 1e-14
    found.sum().backward()
    assert float(logits.grad.abs().max()) < 1e-14


def test_classes_that_are_hidden_leave_it_and_its_gradient_finite():
    hidden = torch.tensor([0.0, 0.0, -math.inf])
    new = torch.randn(4, 3).requires_grad_()
    found = kl_of_logits(torch.randn(4, 3) + hidden, new + hidden)
    found.sum().backward()
    assert bool(found.isfinite().all())
    assert bool(new.grad.isfinite().all())


def test_the_gradient_is_that_of_differences():
    old, new = torch.randn(2, 3).double(), torch.randn(2, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: kl_of_logits(old, v), new)


def test_answers_are_those_of_then_and_the_penalty_is_added_up_over_tasks():
    strategy = told(strength=3.0, size=1000)
    tasks = strategy.stream
    for task in tasks.tasks[:2]:
        strategy.after_task(task.train)
    batch = tasks[2].train
    plain = functional.cross_entropy(strategy.model(batch.x), batch.y)
    assert torch.allclose(strategy.loss(batch), plain, atol=1e-6)  # nothing has changed yet
    with torch.no_grad():
        strategy.model[2].bias[0] += 1.0
    each = [kl_of_logits(anchor.logits, strategy.model(anchor.x)).mean() for anchor in strategy.anchors]
    wanted = functional.cross_entropy(strategy.model(batch.x), batch.y) + 3.0 * (each[0] + each[1])
    assert torch.allclose(strategy.penalty(strategy.anchors), each[0] + each[1])
    strategy.anchors = [anchor[: len(batch)] for anchor in strategy.anchors]
    assert torch.allclose(strategy.loss(batch), wanted, rtol=1e-5)


def test_any_divergence_will_do():
    strategy = told(divergence=lambda u, v: (u - v).square().sum(1), size=5)
    strategy.after_task(strategy.stream[0].train)
    with torch.no_grad():
        strategy.model[2].bias += 2.0
    assert float(strategy.penalty(strategy.anchors).detach()) == pytest.approx(12.0, rel=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [({"strength": -1.0}, "strength must be >= 0, got -1.0"), ({"size": 0}, "size must be >= 1, got 0")],
)
def test_bad_choices_are_refused_in_a_sentence(words, message):
    with pytest.raises(ValueError, match=message):
        FunctionAnchor(network(), **words)
