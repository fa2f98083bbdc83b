"""Outputs and loss: what is normalised twice or never is found, whatever it is written with."""

import math

import pytest
import torch
from tests.audit.probes.usage import Texts, alarms, asked, diabetes, digits, named, perceptron, trained
from torch import nn
from torch.nn import functional

from lemmata.audit.auditing import audit

PROBE = "softmax_before_loss"
NAME = "outputs and loss"


class Functional(nn.Module):
    """A softmax that is no layer."""

    def __init__(self, model):
        super().__init__()
        self.inner = model

    def forward(self, x):
        return self.inner(x).softmax(-1)


@pytest.mark.parametrize("loss", ["cross_entropy", functional.cross_entropy, nn.CrossEntropyLoss(label_smoothing=0.1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_softmax_before_cross_entropy(loss, dtype):
    torch.manual_seed(0)
    for model in (perceptron(10, 64, nn.Softmax(1)), Functional(perceptron())):
        found = named(asked(model.to(dtype), digits()[0], probe=PROBE, loss=loss), NAME)
        assert (found.severity, found.weight) == ("alarm", 9)
        assert found.numbers["floor"] == pytest.approx(math.log(1 + 9 / math.e))


def test_the_floor_is_the_loss_of_a_perfect_answer():
    found = named(asked(perceptron(10, 64, nn.Softmax(1)), digits()[0], probe=PROBE, loss="cross_entropy"), NAME)
    perfect = functional.cross_entropy(torch.eye(10), torch.arange(10)).item()
    assert found.numbers["floor"] == pytest.approx(perfect, rel=1e-5)


@pytest.mark.parametrize("last", [nn.Sigmoid(), nn.Tanh(), nn.Hardsigmoid(), nn.Hardtanh()])
def test_outputs_that_are_squashed(last):
    torch.manual_seed(0)
    found = named(asked(perceptron(10, 64, last), digits()[0], probe=PROBE, loss="cross_entropy"), NAME)
    low = 0 if "sigmoid" in type(last).__name__.lower() else -1
    assert found.severity == "alarm"
    assert (found.numbers["lowest"], found.numbers["highest"]) == (low, 1)


def test_after_training_too():
    torch.manual_seed(0)
    train, test = digits()
    for last in ((nn.Softmax(1),), (nn.Sigmoid(),), ()):
        model = trained(perceptron(10, 64, *last), train)
        assert alarms(asked(model, train, test, probe=PROBE, loss="cross_entropy")) == [NAME] * len(last)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("loss", ["bce", functional.binary_cross_entropy_with_logits, nn.BCEWithLogitsLoss()])
def test_sigmoid_before_a_loss_of_logits(loss, shape):
    torch.manual_seed(0)
    x, y = diabetes()
    targets = (y > 0).float().reshape(-1, *shape)
    if callable(loss):
        targets = targets.reshape(-1, 1)
    broken, twin = perceptron(1, 10, nn.Sigmoid()), perceptron(1, 10)
    found = named(asked(broken, (x, targets.long()), probe=PROBE, loss=wrapped(loss)), NAME)
    assert found.severity == "alarm"
    assert found.numbers["floor"] == pytest.approx((math.log(2) + 0.313262) / 2, rel=1e-4)
    assert named(asked(twin, (x, targets.long()), probe=PROBE, loss=wrapped(loss)), NAME).severity == "fine"


def wrapped(loss):
    return loss if isinstance(loss, str) else lambda z, t: loss(z, t.to(z.dtype).reshape(z.shape))


def test_a_loss_of_probabilities_is_given_probabilities():
    x, y = diabetes()
    loss = wrapped(functional.binary_cross_entropy)
    findings = asked(perceptron(1, 10, nn.Sigmoid()), (x, (y > 0).long()), probe=PROBE, loss=loss)
    assert [one.severity for one in findings] == ["skipped"]


def test_likelihood():
    torch.manual_seed(0)
    train, _ = digits()
    for loss in ("nll", functional.nll_loss, nn.NLLLoss()):
        raw = named(asked(perceptron(), train, probe=PROBE, loss=loss), NAME)
        assert (raw.severity, raw.weight) == ("alarm", 10)
        assert "without bound" in raw.verdict
        half = named(asked(perceptron(10, 64, nn.Softmax(1)), train, probe=PROBE, loss=loss), NAME)
        assert half.severity == "alarm"
        assert "without their logarithm" in half.verdict
        for dtype in (torch.float32, torch.bfloat16):
            right = perceptron(10, 64, nn.LogSoftmax(1)).to(dtype)
            assert named(asked(right, train, probe=PROBE, loss=loss), NAME).severity == "fine"


def test_log_softmax_before_cross_entropy_changes_nothing():
    train, _ = digits()
    assert (
        named(asked(perceptron(10, 64, nn.LogSoftmax(1)), train, probe=PROBE, loss="cross_entropy"), NAME).severity
        == "fine"
    )


def test_probabilities_where_the_loss_is_unknown_are_a_hint():
    found = named(asked(perceptron(10, 64, nn.Softmax(1)), digits()[0], probe=PROBE), NAME)
    assert found.severity == "hint"
    assert "not given" in found.verdict


def test_relu_after_the_last_layer():
    torch.manual_seed(0)
    found = named(asked(perceptron(10, 64, nn.ReLU()), digits()[0], probe=PROBE, loss="cross_entropy"), NAME)
    assert found.severity == "hint"
    assert "ReLU" in found.verdict


def test_other_losses_are_left_alone():
    train, _ = digits()
    brier = lambda z, t: functional.mse_loss(z, functional.one_hot(t, 10).float())  # noqa: E731
    for model, loss in ((perceptron(10, 64, nn.Softmax(1)), brier), (perceptron(), nn.MultiMarginLoss())):
        assert [one.severity for one in asked(model, train, probe=PROBE, loss=loss)] == ["skipped"]


@pytest.mark.parametrize("seed", range(8))
def test_free_outputs_that_happen_to_lie_between_zero_and_one(seed):
    torch.manual_seed(seed)
    x, y = diabetes()
    model = perceptron(1, 10)
    last = model[-1]
    assert isinstance(last, nn.Linear)
    nn.init.constant_(last.bias, 0.5)
    nn.init.normal_(last.weight, std=1e-3)
    normed = nn.Sequential(nn.Linear(10, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 1))
    for twin in (model, normed):
        assert named(asked(twin, (x, (y > 0).long()), probe=PROBE, loss="bce"), NAME).severity == "fine"


def test_words_and_hugging_face_like_outputs():
    tokens = torch.randint(0, 20, (64, 6), generator=torch.Generator().manual_seed(0))
    for logits in (False, True):
        assert named(asked(Texts(logits), (tokens, tokens), probe=PROBE, loss="cross_entropy"), NAME).severity == "fine"
    broken = Functional(Texts())
    assert alarms(asked(broken, (tokens, tokens), probe=PROBE, loss="cross_entropy")) == [NAME]
    own = lambda z, t: functional.cross_entropy(z.flatten(0, 1), t.flatten())  # noqa: E731
    assert alarms(asked(broken, (tokens, tokens), probe=PROBE, loss=own)) == [NAME]
    assert alarms(asked(Texts(), (tokens, tokens), probe=PROBE, loss=own)) == []


def test_without_time_it_is_said():
    (found,) = audit(perceptron(), digits()[0], probes=[PROBE], budget=1e-7).findings
    assert found.severity == "skipped"
    assert "budget" in found.verdict
