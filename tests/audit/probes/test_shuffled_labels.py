"""Labels that do not belong to their inputs, in one part or in both."""

import pytest
import torch
from tests.audit.probes.usage import Texts, alarms, asked, diabetes, digits, named, perceptron, trained
from torch import nn

from lemmata.audit.auditing import audit
from lemmata.data.registry import load

PROBE = "shuffled_labels"
NAME = "labels and inputs"


def dealt(part):
    return part[0], part[1][torch.randperm(len(part[1]), generator=torch.Generator().manual_seed(0))]


def rolled(part):
    return part[0], part[1].roll(1, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_labels_that_belong(dtype):
    train, test = digits()
    found = named(asked(perceptron().to(dtype), train, test, probe=PROBE), NAME)
    assert found.severity == "fine"
    x = train[0].flatten(1).double()
    x = (x - x.mean(0)) / x.std(0).clamp_min(1e-3 * x.std(0).max())
    nearest = (torch.cdist(x, x) + 1e9 * torch.eye(len(x))).argmin(1)
    by_hand = (train[1][nearest] == train[1]).float().mean().item()
    assert found.numbers["train"] == pytest.approx(by_hand, abs=0.01)  # rounding decides between equally near ones
    shares = torch.bincount(train[1]).float() / len(train[1])
    assert found.numbers["chance"] == pytest.approx(shares.square().sum().item(), abs=0.01)


@pytest.mark.parametrize("spoilt", [dealt, rolled])
def test_one_part_is_shuffled(spoilt):
    train, test = digits()
    found = named(asked(perceptron(), train, spoilt(test), probe=PROBE), NAME)
    assert found.severity == "alarm"
    assert "of the test part" in found.verdict
    found = named(asked(perceptron(), spoilt(train), test, probe=PROBE), NAME)
    assert found.severity == "alarm"
    assert "of the training part" in found.verdict


def test_both_parts_are_shuffled():
    train, test = digits()
    assert named(asked(perceptron(), dealt(train), dealt(test), probe=PROBE), NAME).severity == "hint"
    assert named(asked(perceptron(), dealt(train), probe=PROBE), NAME).severity == "hint"


def test_parts_that_name_the_classes_differently():
    train, (x, y) = digits()
    found = named(asked(perceptron(), train, (x, (y + 3) % 10), probe=PROBE), NAME)
    assert found.severity == "alarm"
    assert "name the classes differently" in found.verdict


def test_numbers():
    x = torch.rand(600, 2, generator=torch.Generator().manual_seed(0))
    y = (3 * x[:, 0]).sin() + x[:, 1]
    train, test = (x[:300], y[:300]), (x[300:], y[300:])
    assert alarms(asked(perceptron(1, 2), train, test, probe=PROBE)) == []
    assert alarms(asked(perceptron(1, 2), train, dealt(test), probe=PROBE)) == [NAME]
    assert alarms(asked(perceptron(1, 2), dealt(train), test, probe=PROBE)) == [NAME]
    noisy = diabetes()
    assert alarms(asked(perceptron(1, 10), noisy, noisy, probe=PROBE)) == []


def test_hard_but_sound_data():
    data = load("parity")
    train, test = ((part.x.float() * 2 - 1, part.y.long()) for part in (data.train, data.test))
    model = nn.Sequential(nn.Linear(train[0].shape[1], 64), nn.Tanh(), nn.Linear(64, 2))
    assert alarms(asked(model, train, test, probe=PROBE)) == []
    # The same function far away: neighbours of the test part are too far to tell.
    x, y = digits()[0]
    assert alarms(asked(perceptron(), (x, y), (10 * torch.randn(300, 1, 8, 8), y[:300]), probe=PROBE)) == []
    torch.manual_seed(0)
    noise = torch.randn(500, 1, 8, 8)
    memorised = trained(perceptron(2), (noise, torch.randint(2, (500,))), steps=10)
    assert alarms(asked(memorised, (noise, torch.randint(2, (500,))), probe=PROBE)) == []


def test_what_it_cannot_tell():
    (x, y), _ = digits()
    tokens = torch.randint(0, 20, (200, 6), generator=torch.Generator().manual_seed(0))
    for model, data in ((perceptron(), (x[:50], y[:50])), (Texts(), (tokens, tokens))):
        assert [one.severity for one in asked(model, data, probe=PROBE)] == ["skipped"]
    (late,) = audit(perceptron(), (x, y), probes=[PROBE], budget=1e-4).findings
    assert late.severity == "skipped"
