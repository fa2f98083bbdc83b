"""Raw inputs are found where they reach the weights, and not where the model itself normalises them."""

import pytest
import torch
from torch import nn

from lemmata.audit import audit
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.probes.input_scale import input_scale
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject
from lemmata.data.registry import load

NAME = "input scale"


@pytest.fixture(scope="module")
def digits():
    columns = load("digits").train.columns
    return columns["x"][:300], columns["y"][:300]


def asked(model, data, **more):
    return audit(model, data, probes=["input_scale"], **more)[NAME]


def dense():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def pictures():
    return nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


@pytest.mark.parametrize("model", [dense, pictures])
def test_raw_pictures_are_an_alarm_and_scaled_ones_are_not(model, digits):
    x, y = digits
    raw = asked(model(), (255 * x, y))
    assert raw.severity == "alarm"
    assert raw.numbers["mean_square"] == pytest.approx(float((255 * x).square().mean()), rel=0.1)
    assert "times smaller" in raw.verdict
    assert "divide by the deviation" in raw.advice
    assert asked(model(), (x, y)).severity == "fine"
    assert asked(model(), ((x - x.mean()) / x.std(), y)).severity == "fine"


def test_gates_stay_small_whatever_they_are_given(digits):
    x, y = digits
    assert asked(Rows(), (255 * x, y)).severity == "hint"
    assert asked(Rows(), (x, y)).severity == "fine"


@pytest.mark.parametrize("affine", [False, True])
def test_a_model_that_normalises_its_inputs_is_fine(affine, digits):
    x, y = digits
    for norm in (nn.BatchNorm1d(64, affine=affine), nn.LayerNorm(64, elementwise_affine=affine)):
        model = nn.Sequential(nn.Flatten(), norm, nn.Linear(64, 10))
        assert asked(model, (255 * x, y)).severity == "fine"


def test_a_model_that_divides_by_itself_is_fine(digits):
    class Divides(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = dense()

        def forward(self, x):
            return self.inner(x / 255)

    x, y = digits
    assert asked(Divides(), (255 * x, y)).severity == "fine"


def test_tables_in_their_units(digits):
    columns = load("breast_cancer").train.columns
    generator = torch.Generator().manual_seed(0)
    units = 10 ** (4 * torch.rand(30, generator=generator) - 1.5)  # from 0.03 to 300
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
    found = asked(model, (columns["x"] * units, columns["y"]))
    assert found.severity in ("alarm", "hint")
    assert found.numbers["spread"] > 100
    assert asked(model, (columns["x"], columns["y"])).severity == "fine"
    spread = asked(model, (columns["x"] * units / 300, columns["y"]))
    assert spread.severity == "hint"
    assert "condition number" in spread.verdict


def test_tiny_inputs_are_an_alarm(digits):
    x, y = digits
    assert asked(dense(), (x * 1e-4, y)).severity == "alarm"


def test_tokens_have_no_size():
    model = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(40, 2))
    tokens = torch.randint(0, 20, (100, 5))
    assert "as with tokens" in asked(model, (tokens, torch.randint(0, 2, (100,)))).verdict


def test_each_of_several_inputs_is_looked_at(digits):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(32, 10), nn.Linear(32, 10)

        def forward(self, a, b):
            return self.left(a) + self.right(b)

    x, y = digits
    data = {"a": x.flatten(1)[:, :32], "b": 255 * x.flatten(1)[:, 32:], "labels": y}
    report = audit(Two().double(), data, probes=["input_scale"])
    assert [(one.severity, one.where) for one in report.findings] == [("alarm", ["right"]), ("fine", ["left"])]


def test_features_of_a_convolution_are_its_channels():
    x = (
        torch.randn(200, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        * torch.tensor([1.0, 1.0, 3.0])[:, None, None]
    )
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2))
    assert asked(model, (x, torch.arange(200) % 2)).numbers["spread"] == pytest.approx(3, rel=0.05)


def test_as_many_examples_are_looked_at_as_there_is_time_for(digits):
    seen = []
    model = dense()
    model.register_forward_hook(lambda part, given, output: seen.append(len(output)))
    subject = Subject(model, as_sample(digits))
    for seconds, number in ((1e-3, 250), (0.02, 12), (1e-9, 256)):
        subject.seconds = seconds
        seen.clear()
        list(input_scale.asks(subject, Clock(1.0, now=lambda: 0.0)))
        assert max(seen) == number


def test_time(digits):
    subject = Subject(dense(), as_sample(digits))
    subject.seconds = 1.0
    with pytest.raises(OutOfTime, match="a look at the first layer"):
        list(input_scale.asks(subject, Clock(1.0, now=lambda: 0.0)))
