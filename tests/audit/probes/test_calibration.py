"""The probe of calibration: logits five times too large or too small are found, honest networks are left alone."""

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.audit import audit
from lemmata.data.registry import load


class Scaled(nn.Module):
    """A network whose outputs are multiplied: confidence that training did not give it."""

    def __init__(self, model, factor):
        super().__init__()
        self.model, self.factor = model, factor

    def forward(self, x):
        return self.model(x) * self.factor


@functools.cache
def trained(name="digits", epochs=30, width=64, outputs=10):
    torch.manual_seed(0)
    x, y = load(name).train.x, load(name).train.y
    model = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), width), nn.ReLU(), nn.Linear(width, outputs))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            out = model(x[rows])
            if outputs == 1:
                loss = functional.binary_cross_entropy_with_logits(out[:, 0], y[rows].float())
            else:
                loss = functional.cross_entropy(out, y[rows])
            loss.backward()
            optimizer.step()
    return model.eval()


def asked(model, data="digits", test=None, **more):
    return audit(model, data, test, probes=["calibration"], budget=60.0, **more)["calibration"]


def test_an_honest_network_is_calibrated():
    found = asked(trained())
    assert found.severity == "fine"
    assert found.numbers["ece_low"] < 0.02
    assert 0.5 < found.numbers["temperature"] < 2


@pytest.mark.parametrize(("factor", "word"), [(5.0, "overconfident"), (0.2, "underconfident")])
def test_logits_of_the_wrong_size_are_found_and_mended(factor, word):
    honest, found = asked(trained()), asked(Scaled(trained(), factor))
    assert found.severity == "alarm"
    assert found.verdict.startswith(word)
    # The temperature that mends the scaled logits is the honest one times the factor.
    assert found.numbers["temperature"] == pytest.approx(factor * honest.numbers["temperature"], rel=1e-3)
    assert found.numbers["nll"] > 1.5 * found.numbers["nll_mended"]
    assert found.numbers["nll_mended"] == pytest.approx(honest.numbers["nll_mended"], rel=1e-3)
    mended = asked(Scaled(Scaled(trained(), factor), 1 / found.numbers["temperature"]))
    assert mended.severity == "fine"


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # what torch says whenever a switch of oneDNN is set
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_in_other_dtypes(dtype):
    copied = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(dtype)
    copied.load_state_dict(trained().state_dict())
    # Some virtual machines announce bfloat16 instructions that they do not have, and oneDNN believes them.
    with torch.backends.mkldnn.flags(enabled=dtype is not torch.bfloat16):
        assert asked(copied).severity != "alarm"
        assert asked(Scaled(copied, 5.0)).severity == "alarm"


def test_two_classes_with_one_output():
    model = trained("moons", epochs=4, outputs=1)
    assert asked(model, "moons").severity in ("fine", "hint")
    found = asked(Scaled(model, 8.0), "moons")
    assert found.severity == "alarm"
    assert found.verdict.startswith("overconfident")


def test_probabilities_and_log_probabilities_are_read_as_such():
    honest = asked(trained()).numbers
    told = asked(nn.Sequential(trained(), nn.LogSoftmax(1)), loss="nll").numbers
    assert told["ece"] == pytest.approx(honest["ece"], abs=1e-5)
    told = asked(nn.Sequential(trained(), nn.Softmax(1)), loss=lambda p, y: functional.nll_loss(p.log(), y)).numbers
    assert told["ece"] == pytest.approx(honest["ece"], abs=1e-5)
    assert told["temperature"] == pytest.approx(honest["temperature"], rel=1e-3)


def test_a_sigmoid_with_a_loss_of_probabilities():
    model = trained("moons", epochs=4, outputs=1)
    honest = asked(model, "moons").numbers

    def loss(p, y):
        return functional.binary_cross_entropy(p.flatten(), y.flatten().float())

    told = asked(nn.Sequential(model, nn.Sigmoid()), "moons", loss=loss).numbers
    assert told["temperature"] == pytest.approx(honest["temperature"], rel=1e-2)


def test_outputs_of_another_loss_are_no_alarm():
    """Scores trained by a hinge need not be logits."""
    found = asked(Scaled(trained(), 5.0), loss=lambda scores, y: functional.multi_margin_loss(scores, y) + 9.0)
    assert found.severity == "hint"


class Output:
    def __init__(self, logits):
        self.logits = logits


class Tagger(nn.Module):
    """Classes for each of eight rows of a digit, last, as in language models; HF-style output."""

    def __init__(self, factor):
        super().__init__()
        self.model, self.factor = trained(), factor

    def forward(self, x):
        return Output(self.factor * self.model(x)[:, None].expand(-1, 8, -1))


@pytest.mark.parametrize(("factor", "severity"), [(1.0, "fine"), (5.0, "alarm")])
def test_many_labels_an_example_count_once(factor, severity):
    """Eight labels of one example are one piece of evidence: the interval is as wide as with one."""
    parts = load("digits").parts
    data, test = ((part.x, part.y[:, None].repeat(1, 8)) for part in (parts["train"], parts["test"]))
    test[1][:, 3] = -100  # which torch leaves out
    found = asked(Tagger(factor), data, test)
    assert found.severity == severity
    assert found.numbers["examples"] == len(test[0])


@pytest.mark.parametrize("seed", range(5))
def test_networks_that_know_nothing_yet_get_no_alarm(seed):
    torch.manual_seed(seed)
    plain = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    normed = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 10))
    for model in (plain, normed, Scaled(normed, 5.0)):
        assert asked(model).severity in ("fine", "hint")


@pytest.mark.parametrize("epochs", [1, 3, 10])
def test_young_networks_get_no_alarm(epochs):
    assert asked(trained(epochs=epochs)).severity in ("fine", "hint")


@pytest.mark.parametrize("steps", [5, 10, 40])
def test_networks_that_swing_get_no_alarm(steps):
    """Large steps through batch norm: overconfident for a moment, in a class that changes."""
    torch.manual_seed(0)
    x, y = load("fashion").train.x, load("fashion").train.y
    norms = [nn.Linear(784, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()]
    model = nn.Sequential(nn.Flatten(), *norms, nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), 1.5)
    for rows in torch.randperm(len(x)).split(64)[:steps]:
        optimizer.zero_grad()
        functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    assert asked(model, "fashion").severity in ("fine", "hint")


def test_without_a_test_part_it_asks_the_training_part():
    part = load("digits").train
    found = asked(Scaled(trained(epochs=10), 8.0), (part.x, part.y))
    assert "training examples" in found.measured
    assert found.severity == "alarm"
    assert asked(trained(epochs=10), (part.x, part.y)).severity in ("fine", "hint")


def test_few_examples_and_little_time_are_said():
    part = load("digits").train
    assert "too few" in asked(trained(), (part.x[:40], part.y[:40])).verdict
    report = audit(Slow(), "digits", probes=["calibration"], budget=0.05)
    assert report.findings[0].severity == "skipped"


class Slow(nn.Module):
    """As slow as a large network: it multiplies much."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        work = torch.ones(300, 300)
        for _ in range(3 * len(x)):
            work = (work @ work) / 300
        return self.head(x.flatten(1)) * work[0, 0]


def test_of_many_classes_it_asks_as_many_examples_as_there_is_time_for():
    x, y = torch.randn(2000, 8), torch.randint(0, 1000, (2000,))
    model = nn.Linear(8, 1000)
    found = audit(model, (x, y), probes=["calibration"], budget=60.0)["calibration"]
    # Half of a tenth of the budget, 3 s, for 5 ms each.
    assert 50 <= found.numbers["examples"] <= 600


def test_its_figure_holds_the_curve():
    found = asked(Scaled(trained(), 5.0))
    assert [mark.label for mark in found.figures[0].marks][:3] == ["calibrated", "95 % interval", "as it is"]


def test_the_model_is_left_as_found():
    model = Scaled(trained(), 5.0).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    asked(model)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
