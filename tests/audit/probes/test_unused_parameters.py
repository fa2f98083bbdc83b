"""Every parameter learns: what is frozen, unused, cut off or forgotten by the optimiser is found."""

import copy

import pytest
import torch
from tests.audit.probes.usage import Texts, alarms, asked, diabetes, digits, named, perceptron
from torch import nn
from torch.nn import functional

from lemmata.audit.auditing import audit

PROBE = "unused_parameters"


class Cut(nn.Module):
    """Two layers with something between them."""

    def __init__(self, between, inputs=64, outputs=10):
        super().__init__()
        self.first, self.second, self.between = nn.Linear(inputs, 32), nn.Linear(32, outputs), between

    def forward(self, x):
        return self.second(self.between(self.first(x.flatten(1))))


def without(h):
    with torch.no_grad():
        return h * 1.0


BROKEN = {
    "detach": lambda h: h.detach(),
    "no_grad": without,
    "argmax": lambda h: functional.one_hot(h.argmax(1), 32).to(h.dtype),
    "sign": torch.sign,
    "round": torch.round,
}
SOUND = {
    "relu": torch.relu,
    "residual": lambda h: h + h.detach(),
    "straight through": lambda h: h + (h.sign() - h).detach(),
    "dead": lambda h: torch.relu(h - 100),
    "just dead": lambda h: torch.relu(h - h.detach().max() - 0.01),
    "saturated": lambda h: torch.sigmoid(h + 1000),
    "clamped": lambda h: (h + 3.5).clamp(-1, 1),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_layer_that_no_gradient_reaches(name, dtype):
    torch.manual_seed(0)
    found = named(asked(Cut(BROKEN[name]).to(dtype), digits()[0], probe=PROBE), "gradient reach")
    assert (found.severity, list(found.where)) == ("alarm", ["first.weight", "first.bias"])
    assert found.numbers["share"] == pytest.approx((64 * 32 + 32) / (64 * 32 + 32 + 330))


@pytest.mark.parametrize("name", SOUND)
def test_layers_that_can_learn(name):
    torch.manual_seed(0)
    assert alarms(asked(Cut(SOUND[name]), digits()[0], probe=PROBE)) == []


def test_no_gradient_at_all():
    class Closed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = perceptron()

        @torch.no_grad()
        def forward(self, x):
            return self.inner(x)

    found = named(asked(Closed(), digits()[0], probe=PROBE), "gradient reach")
    assert found.severity == "alarm"
    assert found.numbers["share"] == 1


def test_regression_that_is_cut():
    assert alarms(asked(Cut(torch.detach, 10, 1), diabetes(), probe=PROBE)) == ["gradient reach"]


def test_unused_parameters():
    torch.manual_seed(0)
    model = Cut(torch.relu)
    model.spare = nn.Linear(5, 5)
    findings = asked(model, digits()[0], probe=PROBE)
    found = named(findings, "unused parameters")
    assert alarms(findings) == []
    assert (found.severity, list(found.where)) == ("hint", ["spare.weight", "spare.bias"])


class Trained(nn.Module):
    """A head that only training uses, and a second answer."""

    def __init__(self):
        super().__init__()
        self.body, self.head, self.aside = nn.Linear(64, 32), nn.Linear(32, 10), nn.Linear(32, 10)

    def forward(self, x):
        hidden = self.body(x.flatten(1)).relu()
        return (self.head(hidden), self.aside(hidden)) if self.training else self.head(hidden)


class LowRank(nn.Module):
    """A correction of low rank that is zero at first."""

    def __init__(self):
        super().__init__()
        self.inner, self.down, self.up = nn.Linear(64, 10), nn.Linear(64, 4, bias=False), nn.Linear(4, 10, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.inner(x.flatten(1)) + self.up(self.down(x.flatten(1)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.cells(x[:, 0])[0][:, -1])


class Tied(Texts):
    def __init__(self):
        super().__init__()
        self.head.weight = self.words.weight


def test_healthy_models_of_other_kinds():
    torch.manual_seed(0)
    zero = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    norm = zero[1]
    assert isinstance(norm, nn.BatchNorm2d)
    nn.init.zeros_(norm.weight)
    for model in (Trained(), LowRank(), zero, Recurrent(), nn.Sequential(nn.Dropout(), perceptron())):
        for given in (model, copy.deepcopy(model).eval()):
            findings = asked(given, digits()[0], probe=PROBE)
            assert [one.severity for one in findings] == ["fine"], type(model)
    tokens = torch.randint(0, 20, (64, 6), generator=torch.Generator().manual_seed(0))
    for model in (Texts(), Texts(logits=True), Tied()):
        assert [one.severity for one in asked(model, (tokens, tokens), probe=PROBE)] == ["fine"]


def test_frozen_parameters():
    model = perceptron()
    model[1].requires_grad_(False)
    findings = asked(model, digits()[0], probe=PROBE, lr=0.1)
    found = named(findings, "frozen parameters")
    assert alarms(findings) == []
    assert (found.severity, list(found.where)) == ("hint", ["1.weight", "1.bias"])
    assert not any(p.requires_grad for p in model[1].parameters())


def test_all_frozen():
    model = perceptron().requires_grad_(False)
    assert alarms(asked(model, digits()[0], probe=PROBE)) == []
    assert alarms(asked(model, digits()[0], probe=PROBE, lr=0.1, optimizer="sgd")) == ["frozen parameters"]


def test_an_optimiser_of_another_model():
    model = perceptron()
    other = torch.optim.SGD(copy.deepcopy(model).parameters(), 0.1)
    found = named(asked(model, digits()[0], probe=PROBE, optimizer=other), "parameters of the optimiser")
    assert (found.severity, found.weight) == ("alarm", 10)
    part = torch.optim.SGD(model[3].parameters(), 0.1)
    findings = asked(model, digits()[0], probe=PROBE, optimizer=part)
    assert alarms(findings) == []
    assert list(named(findings, "parameters of the optimiser").where) == ["1.weight", "1.bias"]
    whole = torch.optim.SGD(model.parameters(), 0.1)
    assert [one.severity for one in asked(model, digits()[0], probe=PROBE, optimizer=whole)] == ["fine"]


@pytest.mark.parametrize(
    "loss",
    [
        lambda z, t: functional.cross_entropy(z.detach(), t),
        lambda z, t: (z.argmax(1) != t).float().mean(),
        lambda z, t: torch.tensor(functional.cross_entropy(z, t).item()),
    ],
)
def test_a_loss_without_gradient(loss):
    assert alarms(asked(perceptron(), digits()[0], probe=PROBE, loss=loss)) == ["gradient of the loss"]
    assert alarms(asked(perceptron(), digits()[0], probe=PROBE, loss=functional.cross_entropy)) == []


@pytest.mark.parametrize("loss", ["cross_entropy", functional.cross_entropy, lambda z, t: 1 + 0 * z.sum()])
def test_a_loss_that_is_the_same_whatever_the_outputs_are(loss):
    x, y = digits()[0]
    data = x, y.float()[:, None] / 9  # numbers, for which a softmax over one output is always one
    (found,) = [one for one in asked(perceptron(1), data, probe=PROBE, loss=loss) if one.severity == "alarm"]
    assert found.name == "gradient of the loss"
    assert ("single output" in found.verdict) == (loss == "cross_entropy")
    assert alarms(asked(perceptron(1), data, probe=PROBE, loss="mse")) == []


def test_nothing_is_missed_or_made_up_where_gradients_are_switched_off():
    with torch.no_grad():
        assert alarms(asked(perceptron(), digits()[0], probe=PROBE, loss=functional.cross_entropy)) == []
    assert torch.is_grad_enabled()


def test_a_perfect_fit_has_no_gradient_and_is_sound():
    x, y = torch.eye(10).repeat(10, 1), torch.arange(10).repeat(10)
    model = nn.Linear(10, 10)
    with torch.no_grad():
        model.weight.copy_(1e4 * torch.eye(10))
    gradient = torch.autograd.grad(functional.cross_entropy(model(x), y), model.weight)[0]
    assert not gradient.any()
    assert [one.severity for one in asked(model, (x, y), probe=PROBE)] == ["fine"]


def test_several_inputs_and_no_time():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(10, 1), nn.Linear(10, 1)

        def forward(self, a, b):
            return self.left(a) + self.right(b).detach()

    x, y = diabetes()
    found = named(asked(Two(), {"a": x, "b": x, "y": y}, probe=PROBE), "gradient reach")
    assert list(found.where) == ["right.weight", "right.bias"]
    (late,) = audit(perceptron(), digits()[0], probes=[PROBE], budget=1e-7).findings
    assert late.severity == "skipped"
