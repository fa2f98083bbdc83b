"""Dead layers and saturated ones are found whoever computes them; gates and outputs may be saturated."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.audit import audit
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.probes.dead_units import dead_units
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject
from lemmata.data.registry import load

ACTIVATIONS = {
    "module": nn.ReLU(),
    "in place": nn.ReLU(inplace=True),
    "function": functional.relu,
    "method in place": lambda x: x.relu_(),
    "clamp": lambda x: x.clamp(min=0),
    "gelu": functional.gelu,
    "silu": functional.silu,
    "elu": functional.elu,
    "relu6": functional.relu6,
    "hardswish": functional.hardswish,
    "softplus": functional.softplus,
}


class Small(nn.Module):
    def __init__(self, activation, pictures):
        super().__init__()
        self.first = nn.Conv2d(1, 12, 3) if pictures else nn.Linear(64, 12)
        self.second, self.head = (nn.Conv2d(12, 12, 3) if pictures else nn.Linear(12, 12)), nn.LazyLinear(10)
        self.activation = activation

    def forward(self, x):
        x = x[:, None] if isinstance(self.first, nn.Conv2d) else x.flatten(1)
        x = self.activation(self.second(self.activation(self.first(x))))
        return self.head(x.flatten(1))


@pytest.fixture(scope="module")
def digits():
    columns = load("digits").train.columns
    return columns["x"][:200], columns["y"][:200]


def small(activation, pictures, digits):
    torch.manual_seed(0)
    model = Small(activation, pictures)
    model(digits[0][:2])  # the lazy layer takes its shape
    return model


def asked(model, data, **more):
    return audit(model, data, probes=["dead_units"], **more)


@pytest.mark.parametrize("pictures", [False, True])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_dead_layer_is_an_alarm_and_its_twin_is_not(name, pictures, digits):
    model = small(ACTIVATIONS[name], pictures, digits)
    assert not asked(model, digits).alarms
    with torch.no_grad():
        model.second.bias.fill_(-60.0)
    (found,) = asked(model, digits).alarms
    assert found.verdict.startswith("all 12 units")
    assert "behind layer second are dead" in found.verdict
    assert (found.where, found.weight, found.numbers["dead"]) == (["second"], 10, 12)


@pytest.mark.parametrize("activation", [functional.relu, functional.gelu, functional.relu6, torch.tanh, torch.sigmoid])
@pytest.mark.parametrize("scale", [1e-4, 1e-8, 1e-20])
def test_tiny_signals_are_not_dead(activation, scale, digits):
    model = small(activation, False, digits)
    with torch.no_grad():
        model.first.weight.mul_(scale)
        model.first.bias.mul_(scale)
    assert not asked(model, digits).alarms
    with torch.no_grad():
        model.first.weight.copy_(-model.first.weight.abs())
        model.first.bias.copy_(-model.first.bias.abs())
    dead = activation in (functional.relu, functional.relu6)
    assert bool(asked(model, digits).alarms) == dead


def test_units_are_counted_as_by_hand(digits):
    model = small(nn.ReLU(), False, digits)
    with torch.no_grad():
        model.first.bias[:5] = -60.0
    x = digits[0][:183]  # three batches of 61
    hidden = model.first(x.flatten(1)).relu()
    dead = int((hidden == 0).all(0).sum()) + int((model.second(hidden).relu() == 0).all(0).sum())
    found = asked(model, (x, digits[1][:183]))["dead units"]
    assert found.severity == "hint"
    assert found.numbers["dead"] == dead
    assert found.numbers["examples"] == 183
    assert "5 of 12" in found.verdict or "6 of 12" in found.verdict
    assert "3/183" not in found.predicted
    assert f"{3 / 183:.1%}" in found.predicted


def test_a_layer_that_hardly_any_example_gets_through_is_an_alarm(digits):
    x, y = digits
    x = torch.cat([x, x, x])
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))
    with torch.no_grad():
        model[1].weight.fill_(0.0)
        model[1].weight[:, 0] = 1.0
        model[1].bias.fill_(-0.5)
        x[:, 0, 0] = 0.0
        x[::100, 0, 0] = 1.0
    (found,) = asked(model, (x, torch.cat([y, y, y]))).alarms
    assert "99% of the examples get through no unit" in found.verdict
    assert found.weight == 8
    x[::3, 0, 0] = 1.0
    assert not asked(model, (x, torch.cat([y, y, y]))).alarms


@pytest.mark.parametrize("activation", [torch.tanh, torch.sigmoid, functional.hardtanh, lambda x: x.clamp(-1, 1)])
def test_saturation_is_an_alarm_and_its_twin_is_not(activation, digits):
    model = small(activation, False, digits)
    assert not asked(model, digits).alarms
    with torch.no_grad():
        model.second.bias.copy_(torch.tensor([60.0, -60.0]).repeat(6))
    (found,) = asked(model, digits).alarms
    assert found.name == "saturation"
    assert "behind layer second is saturated in 100.0% of all cases" in found.verdict


def test_half_saturated_is_a_hint(digits):
    model = small(torch.tanh, False, digits)
    with torch.no_grad():
        model.second.bias[:8] = 60.0
    report = asked(model, digits)
    assert report["saturation"].severity == "hint"
    assert report["saturation"].numbers["flat"] == pytest.approx(8 / 12)


def test_gates_and_outputs_may_be_saturated(digits):
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.gate, self.head = nn.Linear(64, 12), nn.Linear(64, 12), nn.Linear(12, 10)

        def forward(self, x):
            x = x.flatten(1)
            return torch.sigmoid(1000 * self.head(self.inner(x) * torch.sigmoid(self.gate(x) + 50)))

    assert not asked(Gate(), digits).alarms


def test_steps_of_a_recurrent_network_are_one_layer(digits):
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.Linear(8 + 12, 12, bias=False), nn.Linear(12, 10)

        def forward(self, x):
            state = x.new_zeros(len(x), 12)
            for row in x.unbind(1):
                state = torch.relu(self.cell(torch.cat([row, state], 1)))
            return self.head(state)

    x, y = digits
    x = torch.cat([torch.zeros_like(x[:, :3]), x], 1)  # nothing is active before the first row that is not empty
    report = asked(Steps(), (x, y))
    assert not report.alarms
    assert report["dead units"].numbers["units"] == 12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_regression_several_inputs_and_dtypes(dtype):
    class Two(nn.Module):
        def __init__(self, bias):
            super().__init__()
            self.first, self.head = nn.Linear(10, 16), nn.Linear(16, 1)
            nn.init.constant_(self.first.bias, bias)

        def forward(self, a, b):
            return {"logits": self.head(torch.relu(self.first(torch.cat([a, b], 1))))}

    columns = load("diabetes").train.columns
    data = {"a": columns["x"][:, :4], "b": columns["x"][:, 4:], "y": columns["y"].reshape(-1, 1)}
    assert asked(Two(-100.0).to(dtype), data).alarms
    assert not asked(Two(0.0).to(dtype), data).alarms


def test_fresh_batch_norm_uses_its_batch(digits):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 10))
    with torch.no_grad():
        model[1].bias.fill_(-60.0)  # batch norm takes it away, once it has seen a batch
    assert not asked(model, digits).alarms


def test_nothing_is_said_of_few_examples_no_activation_or_no_time(digits):
    x, y = digits
    model = small(functional.relu, False, digits)
    assert "it needs 30 examples" in asked(model, (x[:20], y[:20]))["dead units"].verdict
    linear = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    assert "no activation that could die" in asked(linear, digits)["dead units"].verdict
    subject = Subject(model, as_sample(digits))
    subject.seconds = 1.0
    with pytest.raises(OutOfTime, match="slopes of all activations would take about 93 s"):
        list(dead_units.asks(subject, Clock(1.0, now=lambda: 0.0)))


def test_the_model_is_left_as_found(digits):
    model = small(nn.ReLU(inplace=True), False, digits).train()
    before = {name: values.clone() for name, values in model.state_dict().items()}
    asked(model, digits)
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
    assert model.training
