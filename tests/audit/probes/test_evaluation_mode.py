"""Evaluation mode: a model left in training mode, one that draws always, and statistics that do not fit."""

import copy

import pytest
import torch
from tests.audit.probes.usage import alarms, asked, diabetes, digits, named, perceptron, trained
from torch import nn
from torch.nn import functional

from lemmata.audit.auditing import audit

PROBE = "evaluation_mode"


def dropping():
    return nn.Sequential(
        nn.Flatten(), nn.Dropout(0.4), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.8), nn.Linear(64, 10)
    )


def normed(momentum: float = 0.1):
    norm = nn.BatchNorm1d(64, momentum=momentum)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), norm, nn.ReLU(), nn.Linear(64, 10))


class Always(nn.Module):
    """A dropout that is always on."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.second(functional.dropout(self.first(x.flatten(1)).relu(), 0.8))


@pytest.fixture(scope="module")
def dropped():
    torch.manual_seed(0)
    return trained(dropping(), digits()[0], steps=300)


def accuracy(model, test):
    with torch.no_grad():
        return (model(test[0]).argmax(1) == test[1]).float().mean().item()


def test_left_in_training_mode(dropped):
    train, test = digits()
    found = named(asked(dropped.train(), train, test, probe=PROBE), "evaluation mode")
    assert (found.severity, found.weight) == ("alarm", 7)
    twin = copy.deepcopy(dropped).eval()
    assert found.numbers["best_accuracy"] == pytest.approx(accuracy(twin, test))
    assert found.numbers["accuracy"] == pytest.approx(accuracy(dropped.train(), test), abs=0.05)  # other draws
    assert [one.severity for one in asked(twin, train, test, probe=PROBE)] == ["fine"]


def test_a_part_left_in_training_mode(dropped):
    train, test = digits()
    model = copy.deepcopy(dropped).eval()
    model[4].train()
    found = named(asked(model, train, test, probe=PROBE), "evaluation mode")
    assert (found.severity, list(found.where)) == ("alarm", ["Dropout"])


def test_in_training_it_is_no_alarm(dropped):
    train, test = digits()
    running = torch.optim.SGD(dropped.parameters(), 0.1)
    assert alarms(asked(dropped.train(), train, test, probe=PROBE, optimizer=running)) == []
    assert named(asked(dropped.train(), train, probe=PROBE), "evaluation mode").severity == "hint"


@pytest.mark.parametrize("make", [dropping, normed, perceptron])
def test_fresh_models_in_training_mode(make):
    train, test = digits()
    for seed in range(3):
        torch.manual_seed(seed)
        assert [one.severity for one in asked(make(), train, test, probe=PROBE)] == ["skipped"]


@pytest.mark.parametrize("make", [normed, perceptron])
def test_training_mode_that_costs_nothing(make):
    torch.manual_seed(0)
    train, test = digits()
    model = trained(make(), train)
    assert [one.severity for one in asked(model.train(), train, test, probe=PROBE)] == ["fine"]


def test_numbers():
    torch.manual_seed(0)
    x, y = diabetes()
    loss = lambda z, t: functional.mse_loss(z[:, 0], t)  # noqa: E731
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.9), nn.Linear(64, 1))
    model = trained(model, (x, y), loss)
    found = named(asked(model.train(), (x, y), (x, y), probe=PROBE), "evaluation mode")
    assert found.severity == "alarm"
    with torch.no_grad():
        assert found.numbers["best_loss"] == pytest.approx(loss(model.eval()(x), y).item(), rel=1e-4)
    assert [one.severity for one in asked(model.eval(), (x, y), (x, y), probe=PROBE)] == ["fine"]


def test_a_dropout_that_is_always_on():
    torch.manual_seed(0)
    train, test = digits()
    model = trained(Always(), train, steps=300).eval()
    found = named(asked(model, train, test, probe=PROBE), "random answers")
    assert found.severity == "alarm"
    assert found.numbers["accuracy"] == pytest.approx(accuracy(model, test), abs=0.05)
    assert found.numbers["best_accuracy"] > found.numbers["accuracy"] + 0.01


def test_running_statistics_that_were_never_updated():
    torch.manual_seed(0)
    train, test = digits()
    stale = trained(normed(momentum=0.0), train)
    found = named(asked(stale.eval(), (8 * train[0], train[1]), test, probe=PROBE), "running statistics")
    assert found.severity == "hint"
    assert found.numbers["best_accuracy"] > found.numbers["accuracy"] + 0.05
    fitting = trained(normed(), train)
    assert [one.severity for one in asked(fitting.eval(), train, test, probe=PROBE)] == ["fine"]


def test_few_examples_and_no_time(dropped):
    train, (x, y) = digits()
    (few,) = asked(dropped, train, (x[:20], y[:20]), probe=PROBE)
    assert few.severity == "skipped"
    (late,) = audit(perceptron(), train, probes=[PROBE], budget=1e-7).findings
    assert late.severity == "skipped"
