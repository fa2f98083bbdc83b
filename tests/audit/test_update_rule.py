"""The limits of stability, against what torch's optimisers do on a parabola, and rates from an optimiser's state."""

import pytest
import torch
from torch import nn

from lemmata.audit.learning_form import learning_form
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject, Training
from lemmata.audit.update_rule import kind_of, limit_of, update_rule
from lemmata.optim import GradientDescent, HeavyBall, Nesterov

RULES = {
    "gradient descent": (("sgd",), lambda w, lr: torch.optim.SGD(w, lr=lr)),
    "heavy ball": (("sgd", 0.9), lambda w, lr: torch.optim.SGD(w, lr=lr, momentum=0.9)),
    "our heavy ball": (("sgd", 0.5), lambda w, lr: HeavyBall(w, lr=lr, momentum=0.5)),
    "nesterov": (("sgd", 0.9, True), lambda w, lr: torch.optim.SGD(w, lr=lr, momentum=0.9, nesterov=True)),
    "our nesterov": (("nesterov", 0.5), lambda w, lr: Nesterov(w, lr=lr, momentum=0.5)),
    "adam": (("adam", 0.9), lambda w, lr: torch.optim.Adam(w, lr=lr, betas=(0.9, 1 - 1e-12), eps=0.0)),
    "rmsprop": (("rmsprop", 0.9), lambda w, lr: torch.optim.RMSprop(w, lr=lr, alpha=1 - 1e-12, momentum=0.9, eps=0.0)),
}


@pytest.mark.parametrize("name", RULES)
def test_steps_are_stable_exactly_below_the_limit(name: str):
    how, make = RULES[name]
    limit, _ = limit_of(*how)
    ends = []
    for share in (0.98, 1.02):
        w = torch.ones(1, dtype=torch.float64, requires_grad=True)
        optimizer = make([w], share * limit / 2.0)  # a parabola of curvature 2
        if how[0] == "adam":
            zero, one = torch.zeros_like(w), torch.ones_like(w)
            optimizer.state[w] = {"step": torch.tensor(1e15), "exp_avg": zero, "exp_avg_sq": one}
        elif how[0] == "rmsprop":
            optimizer.state[w] = {"step": torch.tensor(1.0), "square_avg": torch.ones_like(w)} | {
                "momentum_buffer": torch.zeros_like(w)
            }
        path = []
        while len(path) < 400 and (not path or path[-1] < 1e4):
            optimizer.zero_grad()
            w.square().sum().backward()
            optimizer.step()
            path.append(w.abs().item())
        ends.append(max(path[-20:]))
    assert ends[0] < 1e-3
    assert ends[1] > 1e3


def subject_of(model: nn.Module, training: Training) -> Subject:
    torch.manual_seed(0)
    x = torch.randn(64, 3, dtype=next(model.parameters()).dtype)
    return Subject(model, as_sample((x, x.sum(1, keepdim=True))), training=training)


def test_rates_come_from_the_state_of_the_optimiser():
    model = nn.Linear(3, 1).double()
    optimizer = torch.optim.Adam(
        [{"params": [model.weight], "lr": 0.1}, {"params": [model.bias], "lr": 0.2}], betas=(0.9, 0.99), eps=1e-3
    )
    model(torch.ones(2, 3).double()).sum().backward()
    for _ in range(60):
        optimizer.step()  # the corrected mean square of equal gradients is their square: 2 for each weight and the bias
    subject = subject_of(model, Training(0.1, "adam", betas=(0.9, 0.99), running=optimizer))
    with learning_form(subject, 64) as form:
        rule = update_rule(form, subject.training)
    assert rule is not None
    assert rule.limit == pytest.approx(38)
    assert torch.allclose(rule.rates["model.weight"], torch.full((1, 3), 0.1 / 2.001).double())
    assert torch.allclose(rule.rates["model.bias"], torch.full((1,), 0.2 / 2.001).double())


def test_a_young_state_is_not_gone_by():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    subject = subject_of(model, Training(1e-3, "adam", running=optimizer))
    with learning_form(subject, 64) as form:
        rule = update_rule(form, subject.training)
    assert rule is not None
    assert rule.source == "the gradients at these weights"


def test_adagrad_is_told_by_its_own_sum_only():
    model = nn.Linear(3, 1).double()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, lr_decay=0.01, eps=0.0)
    model(torch.ones(2, 3).double()).sum().backward()
    for _ in range(50):
        optimizer.step()
    for running, known in ((None, False), (optimizer, True)):
        subject = subject_of(model, Training(0.1, "adagrad", running=running))
        with learning_form(subject, 64) as form:
            rule = update_rule(form, subject.training)
        assert (rule is not None) == known
    assert rule is not None
    wanted = 0.1 / (1 + 49 * 0.01) / (50 * 2.0**2) ** 0.5  # fifty gradients of size 2
    assert torch.allclose(rule.rates["model.weight"], torch.full((1, 3), wanted).double())


def test_without_a_state_the_mean_squares_are_those_of_the_gradients_here():
    model = nn.Linear(3, 1).double()
    subject = subject_of(model, Training(0.1, "rmsprop", batch_size=8, eps=0.0))
    with learning_form(subject, 64) as form:
        rule = update_rule(form, subject.training)
    squares = []
    for first in range(0, 64, 8):
        part = subject.train[first : first + 8]
        loss = nn.functional.mse_loss(model(part.x), part.targets)
        squares.append(torch.autograd.grad(loss, model.weight)[0].square())
    assert rule is not None
    assert torch.allclose(rule.rates["model.weight"], 0.1 / torch.stack(squares).mean(0).sqrt())


def test_decay_is_added_where_the_optimiser_adds_it():
    for maker, coupled in ((torch.optim.Adam, True), (torch.optim.AdamW, False), (torch.optim.SGD, True)):
        model = nn.Linear(3, 1)
        optimizer = maker(model.parameters(), lr=0.5, weight_decay=0.1)
        subject = subject_of(model, Training(0.5, maker.__name__.lower(), running=optimizer))
        with learning_form(subject, 64) as form:
            rule = update_rule(form, subject.training)
        assert rule is not None
        assert (rule.decay, rule.decoupled) == ((0.1, 0.0) if coupled else (0.0, pytest.approx(0.05)))


def test_unknown_optimisers_and_those_of_other_models_have_no_rule():
    model, other = nn.Linear(3, 1), nn.Linear(3, 1)
    for optimizer in (torch.optim.NAdam(model.parameters()), torch.optim.SGD(other.parameters(), lr=0.1)):
        subject = subject_of(model, Training(0.1, "x", running=optimizer))
        with learning_form(subject, 64) as form:
            assert update_rule(form, subject.training) is None


def test_kinds_are_found_by_family():
    weights = [nn.Parameter(torch.zeros(1))]
    assert kind_of(Training(0.1, "sgd", running=GradientDescent(weights, lr=0.1))) == "sgd"
    assert kind_of(Training(0.1, "adamw", running=torch.optim.AdamW(weights))) == "adamw"
    assert kind_of(Training(0.1)) == "sgd"
    assert kind_of(Training(0.1, "lion")) == ""
