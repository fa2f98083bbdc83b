"""Curvature, step size and noise on a GPU: the verdicts of the processor, also for kernels with one derivative only."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.audit.auditing import audit
from lemmata.data.registry import load

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
PROBES = ["step_size", "curvature", "gradient_noise"]


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.inner(x).mean(1))


class Recurs(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.inner(x)[0][:, -1])


def dense() -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10)
    )


@pytest.mark.parametrize("make", [dense, Attends, Recurs])
def test_a_large_step_is_found_and_a_usual_one_passes(make):
    torch.manual_seed(0)
    columns = load("digits").train.columns
    x, y = columns["x"][:512].float(), columns["y"][:512]
    model = make().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(60):
        part = slice(64 * (step % 8), 64 * (step % 8) + 64)
        optimizer.zero_grad()
        functional.cross_entropy(model(x[part].cuda()), y[part].cuda()).backward()
        optimizer.step()
    here = audit(model, (x, y), optimizer=optimizer, probes=PROBES, batch_size=64, budget=300.0)
    assert here.alarms == [], str(here)
    assert not here.of("skipped"), str(here)
    there = audit(model.cpu(), (x, y), optimizer="sgd", lr=0.1, probes=PROBES, batch_size=64, budget=300.0)
    for name, number in (("step size", "limit"), ("curvature", "largest")):
        assert here[name].numbers[number] == pytest.approx(there[name].numbers[number], rel=0.05)
    limit = here["step size"].numbers["limit"]
    found = audit(
        model.cuda(), (x, y), optimizer="sgd", lr=4 * limit, probes=["step_size"], batch_size=64, budget=300.0
    )
    assert found.alarms, str(found)


def test_half_precision_on_the_device():
    torch.manual_seed(0)
    x = torch.randn(256, 4)
    model = nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 2)).cuda().bfloat16()
    report = audit(model, (x, (x[:, 0] > 0).long()), optimizer="adam", lr=1e-3, probes=PROBES, budget=300.0)
    assert report.alarms == [], str(report)
    assert not report.of("skipped"), str(report)
    assert model[0].weight.dtype == torch.bfloat16
