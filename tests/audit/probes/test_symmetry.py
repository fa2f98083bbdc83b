"""Shifts, flips and orders: what a network announces and does not keep is found, and what it keeps is measured."""

import pytest
import torch
from tests.audit.probes.usage import Texts, alarms, asked, diabetes, digits, named, perceptron, trained
from torch import nn

from lemmata.audit.auditing import audit
from lemmata.audit.position_blindness import pooled_places
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject

PROBE = "symmetry"


def block(inputs, outputs, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1), nn.BatchNorm2d(outputs), nn.ReLU())


def pooled(*strides, width=8):
    blocks = [block(1 if k == 0 else width, width, stride) for k, stride in enumerate(strides)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


@pytest.fixture(scope="module")
def strided():
    torch.manual_seed(0)
    return trained(pooled(4, 1, width=16), digits()[0], lr=1e-2).eval()


@pytest.fixture(scope="module")
def dense():
    torch.manual_seed(0)
    return trained(pooled(1, 1), digits()[0], steps=60, lr=1e-2).eval()


def test_a_network_that_announces_shift_invariance_and_is_not(strided):
    found = named(asked(strided, *digits(), probe=PROBE), "shift invariance")
    assert (found.severity, found.weight) == ("alarm", 6)
    assert found.numbers["period"] in (4, 8)  # the stride, where the outputs come back
    assert found.numbers["change_at_period"] < 0.1
    assert found.numbers["change"] > 1.77
    # By hand: the picture in a frame of 32 x 32, moved by the worst step. The mean of 8 x 8 places there moves 16 times
    # less than that of the picture's own 2 x 2.
    x, step = digits()[1][0], int(found.numbers["step"])
    edges = torch.cat([x[..., 0], x[..., -1], x[..., 0, :], x[..., -1, :]], -1)
    canvas = edges.median(-1).values[..., None, None].expand(-1, 1, 32, 32).clone()
    still, moved = canvas.clone(), canvas.clone()
    still[..., 12:20, 12:20] = x
    moved[..., 12:20, 12 + step : 20 + step] = x
    with torch.no_grad():
        here = strided(x)
        there = here + 16 * (strided(moved) - strided(still))
    other = (here.argmax(1) != there.argmax(1)).float().mean().item()
    assert found.numbers["other_class"] == pytest.approx(other, abs=0.01)


def test_the_twin_without_strides_keeps_it(dense):
    findings = asked(dense, *digits(), probe=PROBE)
    assert alarms(findings) == []
    found = named(findings, "shift invariance")
    assert found.severity == "fine"
    assert found.numbers["change"] < 1e-3
    assert {"flips", "shift"} <= {one.name for one in findings}


@pytest.mark.parametrize("strides", [(1, 2, 2), (2, 1), (4, 1)])
def test_fresh_networks_with_strides_get_no_alarm(strides):
    for seed in range(2):
        torch.manual_seed(seed)
        assert alarms(asked(pooled(*strides), *digits(), probe=PROBE)) == []


def test_a_usual_network_with_strides_gets_a_hint():
    torch.manual_seed(0)
    model = trained(pooled(1, 2, 2), digits()[0], steps=80, lr=1e-2)
    findings = asked(model.eval(), *digits(), probe=PROBE)
    assert alarms(findings) == []
    found = named(findings, "shift invariance")
    assert found.severity == "hint"
    assert found.numbers["period"] in (4, 8)


def test_outputs_that_move_and_keep_their_class_are_fine():
    torch.manual_seed(0)
    model = pooled(1, 2, 2)
    with torch.no_grad():
        model[-1].bias[3] += 100.0
    found = named(asked(model.eval(), *digits(), probe=PROBE), "shift invariance")
    assert found.numbers["change"] > 0.05
    assert (found.severity, found.numbers["other_class"]) == ("fine", 0)
    assert "and 0.0% of the classes" in found.verdict


def test_a_network_that_announces_nothing():
    torch.manual_seed(0)
    train, (x, y) = digits()
    assert named(asked(perceptron(), train, probe=PROBE), "shift").severity == "fine"  # a pixel of 8 is no small step
    x = x.repeat_interleave(2, -1).repeat_interleave(2, -2)
    train = (train[0].repeat_interleave(2, -1).repeat_interleave(2, -2), train[1])
    model = trained(perceptron(10, 256), train).eval()
    findings = asked(model, train, (x, y), probe=PROBE)
    assert alarms(findings) == []
    found = named(findings, "shift")
    assert found.severity == "hint"
    with torch.no_grad():
        moved = (model(torch.cat([x[..., :1], x[..., :-1]], -1)).argmax(1) == y).float().mean().item()
    assert found.numbers["accuracy_moved"] == pytest.approx(moved)
    assert all(one.name != "shift invariance" for one in findings)
    flat = asked(model, (train[0][:, 0], train[1]), (x[:, 0], y), probe=PROBE)  # without a channel
    assert named(flat, "shift").numbers["accuracy_moved"] == pytest.approx(moved)


class Functional(nn.Module):
    def __init__(self, pool):
        super().__init__()
        self.conv, self.head, self.pool = nn.Conv2d(1, 4, 3), nn.Linear(4, 10), pool

    def forward(self, x):
        return self.head(self.pool(self.conv(x).relu()))


class Mixed(nn.Module):
    """A mean over places of what a linear layer has mixed before."""

    def __init__(self):
        super().__init__()
        self.mix, self.conv, self.head = nn.Linear(64, 64), nn.Conv2d(1, 4, 3), nn.Linear(4, 10)

    def forward(self, x):
        return self.head(self.conv(self.mix(x.flatten(1)).reshape(x.shape)).mean((2, 3)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_an_announcement(dtype):
    torch.manual_seed(0)
    body = [nn.Conv2d(1, 10, 3), nn.ReLU()]
    cases = [
        (pooled(1, 2), True),
        (Functional(lambda h: h.mean((2, 3))), True),
        (Functional(lambda h: h.amax((2, 3))), True),
        (Functional(lambda h: h[:, :, 0, 0]), False),
        (nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten()), True),  # no linear layer at all
        (nn.Sequential(*body, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(40, 10)), False),
        (nn.Sequential(*body, nn.Flatten(), nn.Linear(360, 10)), False),
        (Mixed(), False),
        (perceptron(), False),
    ]
    data = as_sample(digits()[0])
    for model, wanted in cases:
        subject = Subject(model.to(dtype), data)
        assert (pooled_places(subject, subject.train[:4].tensors) is not None) == wanted, model


class Attending(nn.Module):
    """Rows of a picture or words as a sequence, with or without positions."""

    def __init__(self, words=None, positions=False):
        super().__init__()
        self.words = nn.Embedding(words, 8) if words else None
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 10)
        self.positions = nn.Parameter(torch.randn(8, 8)) if positions else None

    def forward(self, x):
        h = x if self.words is None else self.words(x)
        h = h if self.positions is None else h + self.positions[: h.shape[1]]
        return self.head(self.attention(h, h, h)[0].mean(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_orders(dtype):
    torch.manual_seed(0)
    (x, y), _ = digits()
    words = torch.randint(0, 20, (100, 8), generator=torch.Generator().manual_seed(0))
    labels = words[:, 0] % 10
    for model, data, severity in [
        (Attending(), (x[:, 0, :7], y), "fine"),
        (Attending(positions=True), (x[:, 0, :7], y), "fine"),
        (Attending(20), (words, labels), "hint"),
        (Attending(20, positions=True), (words, labels), "fine"),
    ]:
        (found,) = asked(model.to(dtype), data, probe=PROBE)
        assert (found.name, found.severity) == ("order", severity)
        seen = found.numbers["change"] > 0.1
        assert seen == (model.positions is not None)


def test_one_answer_a_word():
    tokens = torch.randint(0, 20, (64, 6), generator=torch.Generator().manual_seed(0))
    for logits in (False, True):
        (found,) = asked(Texts(logits), (tokens, tokens), probe=PROBE)
        assert found.severity == "hint"
        assert found.numbers["change"] < 1e-6


def test_other_inputs_and_no_time():
    (found,) = asked(perceptron(1, 10), diabetes(), probe=PROBE)
    assert found.severity == "skipped"
    (late,) = audit(perceptron(), digits()[0], probes=[PROBE], budget=1e-7).findings
    assert late.severity == "skipped"
    assert "budget" in late.verdict
