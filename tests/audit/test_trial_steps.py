"""Steps on a copy: what they say, and that neither the model nor its optimiser notices."""

import copy
import math

import pytest
import torch
from torch import nn

from lemmata.audit.clock import Clock
from lemmata.audit.learning_form import learning_form
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject, Training
from lemmata.audit.trial_steps import STEPS, Trial, tried


def subject_of(model: nn.Module, **training) -> Subject:
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    return Subject(model, as_sample((x, x.sum(1, keepdim=True))), training=Training(**training))


def run(model: nn.Module, factor: float = 1.0, clock: Clock | None = None, **training) -> Trial:
    subject = subject_of(model, **training)
    with learning_form(subject, 64) as form:
        return tried(form, subject.training, clock or Clock(60.0), factor)


def test_the_losses_are_those_of_the_optimiser():
    torch.manual_seed(1)
    model = nn.Linear(3, 1)
    trial = run(model, lr=0.1, momentum=0.9)
    by_hand, x = copy.deepcopy(model), subject_of(model).train
    optimizer = torch.optim.SGD(by_hand.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(by_hand(x.x), x.targets)
        assert trial.losses[step] == pytest.approx(loss.item(), rel=1e-4, abs=1e-7)
        loss.backward()
        optimizer.step()
    assert len(trial.losses) == STEPS + 1
    assert not trial.rises
    assert not trial.ruins


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "rmsprop", "adagrad"])
def test_sensible_steps_lower_the_loss_and_absurd_ones_ruin_it(name: str):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    calm = run(model, lr=0.01, optimizer=name)
    assert calm.losses[-1] < calm.losses[0]
    wild = run(model, lr=0.01, optimizer=name, factor=3000.0)
    assert wild.rises
    assert wild.ruins


@pytest.mark.parametrize("maker", [torch.optim.SGD, torch.optim.Adam, torch.optim.NAdam])
def test_the_model_and_its_optimiser_stay_as_they_were(maker):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = maker(model.parameters(), lr=0.01)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    before, state = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    trial = run(model, lr=0.01, optimizer=maker.__name__.lower(), running=optimizer)
    assert trial.losses[-1] < trial.losses[0]
    after = optimizer.state_dict()
    assert str(after) == str(state)
    # The trial moves batch statistics of its copy only; the network's own are counted in copies too.
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items() if "running" not in name)


def test_a_half_precision_model_is_tried_with_its_own_optimiser():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).bfloat16()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(torch.ones(4, 3).bfloat16()).sum().backward()
    optimizer.step()
    trial = run(model, lr=0.01, optimizer="adam", running=optimizer)
    assert trial.losses[-1] < trial.losses[0]
    assert optimizer.state[model[0].weight]["exp_avg"].dtype == torch.bfloat16


def test_time_ends_a_trial_early():
    ticks = iter(range(1000))
    trial = run(nn.Linear(3, 1), lr=0.01, clock=Clock(20.0, now=lambda: float(next(ticks))))
    assert 2 < len(trial.losses) < STEPS


def test_what_rises_and_what_ruins():
    assert not Trial([1.0, 1.1, 1.15], 2.0).rises
    assert Trial([1.0, 5.0, 0.1], 2.0).rises
    assert not Trial([1.0, 5.0, 0.1], 2.0).ruins
    assert Trial([1.0, 5.0, 3.1], 2.0).ruins
    assert not Trial([1.0, 5.0, 2.9], 2.0).ruins
    assert not Trial([1.0, 19.0, 0.1], 2.0).destroys
    assert Trial([1.0, 21.0, 0.1], 2.0).destroys
    assert Trial([1.0, math.nan], 2.0).rises
    assert Trial([1.0, math.nan], 2.0).ruins
    assert Trial([0.0, 0.1], 2.0).rises
    assert not Trial([0.0, 1e-7], 2.0).rises
    assert not Trial([-2.0, -1.9], -1.0).rises  # a negative log-likelihood may be negative
    assert Trial([-2.0, 1.0], -1.0).ruins
