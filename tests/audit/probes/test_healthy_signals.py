"""Healthy models of every kind, fresh and trained, raise no alarm about anatomy, signals, units and inputs."""

import contextlib
import warnings
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from lemmata.audit import audit
from lemmata.data.registry import load

PROBES = ["anatomy", "signal", "dead_units", "input_scale"]


def mlp(*widths, activation=nn.ReLU, between=None):
    layers = []
    for n, m in pairwise(widths[:-1]):
        layers += [nn.Linear(n, m), *([] if between is None else [between(m)]), activation()]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(*widths[-2:]))


class Residual(nn.Module):
    def __init__(self, inner, norm=None):
        super().__init__()
        self.inner, self.norm = inner, norm or nn.Identity()

    def forward(self, x):
        return x + self.inner(self.norm(x))


def block(n, norm=None):
    return Residual(nn.Sequential(nn.Linear(n, n), nn.ReLU(), nn.Linear(n, n)), norm)


def zero_residual(n):
    made = block(n)
    nn.init.zeros_(made.inner[2].weight)
    return made


def cnn(norm=None, layers=3, width=8):
    parts = [nn.Unflatten(1, (1, 8))]
    for index in range(layers):
        parts += [
            nn.Conv2d(width if index else 1, width, 3, padding=1),
            *([] if norm is None else [norm(width)]),
            nn.ReLU(),
        ]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


class Recurrent(nn.Module):
    """A layer of torch's, or a cell that is stepped by hand, over the rows of a picture."""

    def __init__(self, kind, hidden=16):
        super().__init__()
        self.rnn, self.head = kind(8, hidden), nn.Linear(hidden, 10)

    def forward(self, x):
        if isinstance(self.rnn, nn.RNNBase):
            return self.head(self.rnn(x.movedim(1, 0))[0][-1])
        state = None
        for row in x.unbind(1):
            state = self.rnn(row, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class Attention(nn.Module):
    def __init__(self, layers=6, norm_first=True):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.1, "gelu", batch_first=True, norm_first=norm_first)
        self.embed, self.place = nn.Linear(8, 16), nn.Parameter(0.02 * torch.randn(8, 16))
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.body(self.embed(x) + self.place).mean(1))


class Functional(nn.Module):
    """No module inside: parameters and torch's functions alone, weights scaled as for the neural tangent kernel."""

    def __init__(self, width=64):
        super().__init__()
        sizes = [(64, width), (width, width), (width, width), (width, 10)]
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(n, m)) for n, m in sizes])

    def forward(self, x):
        x = x.flatten(1)
        for weight in self.weights[:-1]:
            x = torch.relu(x @ (weight * (2 / len(weight)) ** 0.5))
        return x @ self.weights[-1] / len(self.weights[-1]) ** 0.5


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.gate, self.head = nn.Linear(64, 32), nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = x.flatten(1)
        return self.head(self.inner(x) * torch.sigmoid(50 * self.gate(x)))  # a gate may be saturated


HEALTHY = {
    "one layer": lambda: mlp(64, 10),
    "two layers": lambda: mlp(64, 4, 10),
    "wide": lambda: mlp(64, 256, 10),
    "deep": lambda: mlp(64, *[32] * 8, 10),
    "tanh": lambda: mlp(64, *[32] * 6, 10, activation=nn.Tanh),
    "sigmoid": lambda: mlp(64, 32, 32, 10, activation=nn.Sigmoid),
    "gelu": lambda: mlp(64, *[32] * 5, 10, activation=nn.GELU),
    "relu in place": lambda: mlp(64, 32, 32, 10, activation=lambda: nn.ReLU(inplace=True)),
    "batch norm, 20 layers": lambda: mlp(64, *[32] * 19, 10, between=nn.BatchNorm1d),
    "layer norm, 20 layers": lambda: mlp(64, *[32] * 19, 10, between=nn.LayerNorm),
    "dropout": lambda: mlp(64, 32, 32, 10, between=lambda _: nn.Dropout(0.5)),
    "residual": lambda: nn.Sequential(mlp(64, 32), *[block(32) for _ in range(15)], nn.Linear(32, 10)),
    "residual with norm": lambda: nn.Sequential(
        mlp(64, 32), *[block(32, nn.LayerNorm(32)) for _ in range(15)], nn.LayerNorm(32), nn.Linear(32, 10)
    ),
    "residual that begins with zeros": lambda: nn.Sequential(
        mlp(64, 32), *[zero_residual(32) for _ in range(8)], nn.Linear(32, 10)
    ),
    "cnn": cnn,
    "cnn with batch norm, 16 layers": lambda: cnn(nn.BatchNorm2d, 16),
    "cnn with group norm": lambda: cnn(lambda n: nn.GroupNorm(2, n), 6),
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(lambda n, m: nn.GRU(n, m, num_layers=2)),
    "rnn cell": lambda: Recurrent(nn.RNNCell),
    "lstm cell": lambda: Recurrent(nn.LSTMCell),
    "transformer": Attention,
    "transformer, norm last": lambda: Attention(norm_first=False),
    "functions": Functional,
    "gate": Gated,
    "weight norm": lambda: nn.Sequential(nn.Flatten(), weight_norm(nn.Linear(64, 32)), nn.ReLU(), nn.Linear(32, 10)),
    "spectral norm": lambda: nn.Sequential(nn.Flatten(), spectral_norm(nn.Linear(64, 9)), nn.ReLU(), nn.Linear(9, 10)),
    "float64": lambda: mlp(64, 32, 32, 10).double(),
    "bfloat16": lambda: mlp(64, *[32] * 5, 10, between=nn.LayerNorm).bfloat16(),
    "bfloat16 cnn": lambda: cnn(nn.BatchNorm2d).bfloat16(),
}  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    columns = load("digits").train.columns
    return columns["x"][:300], columns["y"][:300]


@contextlib.contextmanager
def short_numbers(name):
    """In bfloat16 by torch's own code: oneDNN believes in instructions that virtual machines do not always have."""
    if "bfloat16" not in name:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # setting the flag speaks of GPUs that are not there
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def trained(model, x, y, steps=40):
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    x = x.to(next(model.parameters()).dtype)
    for step in range(steps):
        rows = slice(64 * step % 256, 64 * step % 256 + 64)
        optimizer.zero_grad()
        functional.cross_entropy(model(x[rows]).float(), y[rows]).backward()
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("name", HEALTHY)
def test_a_fresh_model_raises_no_alarm(name, digits):
    torch.manual_seed(1)
    with short_numbers(name):
        report = audit(HEALTHY[name](), digits, probes=PROBES, budget=30)
    assert not report.alarms, str(report)
    assert not [one for one in report.of("skipped") if "could not be measured" in one.verdict], str(report)


QUICK = ("deep", "dropout", "cnn with group norm", "rnn cell", "functions", "bfloat16")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in HEALTHY]
)
def test_a_trained_model_raises_no_alarm(name, digits):
    torch.manual_seed(2)
    with short_numbers(name):
        report = audit(trained(HEALTHY[name](), *digits), digits, probes=PROBES, budget=30)
    assert not report.alarms, str(report)


def test_regression_raises_no_alarm():
    columns = load("diabetes").train.columns
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    report = audit(model, (columns["x"], columns["y"]), probes=PROBES)
    assert not report.alarms, str(report)
