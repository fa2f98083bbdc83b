"""What an example costs, as torch counts it and by hand, and how many of them may be kept at once."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lemmata.audit import operation_count
from lemmata.audit.operation_count import affordable, floating_operations, kept_bytes
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject


def subject(model, *shape):
    return Subject(model, as_sample((torch.randn(20, *shape), torch.zeros(20, dtype=torch.long))))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layer(x).mean(1))


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)), (8,)),
        (nn.Sequential(nn.Conv2d(2, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3)), (2, 8, 8)),
        (Attention(), (6, 16)),
    ],
)
def test_operations_are_those_that_torch_counts(model, shape):
    one = subject(model, *shape)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        model(one.train.x)
    torch.backends.mha.set_fastpath_enabled(True)
    assert floating_operations(one, one.train.tensors) == counter.get_total_flops() > 0


def test_kept_bytes_by_hand():
    one = subject(nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3)), 8)
    assert kept_bytes(one, one.train.tensors) == 4 * 20 * (8 + 5)  # what the layers are given; tanh keeps its output


def test_few_examples_where_each_keeps_much(monkeypatch):
    one = subject(nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3)), 8)
    assert affordable(one, 20) == 20
    monkeypatch.setattr(operation_count, "MOST_BYTES", 52 * 12)
    assert affordable(one, 20) == 12
    monkeypatch.setattr(operation_count, "MOST_BYTES", 1)
    assert affordable(one, 20) == 8
    assert affordable(one, 5) == 5
