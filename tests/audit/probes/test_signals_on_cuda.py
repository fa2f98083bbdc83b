"""On a GPU the same faults are found and healthy models pass, in single precision and in bfloat16."""

import pytest
import torch
from torch import nn

from lemmata.audit import audit

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore:RNN module weights"),  # torch leaves those of halves as they are
]
PROBES = ["anatomy", "signal", "dead_units", "input_scale"]


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 16, num_layers=5, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.rnn(x.reshape(-1, 8, 8))[0][:, -1])


def dense(scale=1.0):
    layers = [layer for _ in range(19) for layer in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    with torch.no_grad():
        for layer in model[:-1:2]:
            layer.weight.normal_(0, scale * (2 / 64) ** 0.5)
            layer.bias.zero_()
    return model


def pictures():
    parts = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(576, 10))


def asked(model, dtype, factor=1.0):
    generator = torch.Generator().manual_seed(0)
    data = factor * torch.randn(500, 64, generator=generator), torch.randint(0, 10, (500,), generator=generator)
    report = audit(model.to("cuda", dtype), data, probes=PROBES)
    assert not [one for one in report.of("skipped") if "could not be measured" in one.verdict], str(report)
    return {one.name for one in report.alarms}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("make", [dense, pictures, Rows])
def test_healthy_models_raise_no_alarm(make, dtype):
    torch.manual_seed(0)
    assert asked(make(), dtype) == set()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_faults_are_found(dtype):
    torch.manual_seed(0)
    assert "signal through depth" in asked(dense(3.0), dtype)
    assert "signal through depth" in asked(dense(1 / 3), dtype)
    assert asked(pictures(), dtype, factor=100.0) == {"input scale"}
    dead, copied = pictures(), pictures()
    with torch.no_grad():
        dead[2].bias.fill_(-100.0)
        copied[1].weight[3], copied[1].bias[3] = 2 * copied[1].weight[1], 2 * copied[1].bias[1]
    assert {"dead units"} <= asked(dead, dtype) <= {"dead units", "constant outputs"}
    assert asked(copied, dtype) == {"duplicate units"}
