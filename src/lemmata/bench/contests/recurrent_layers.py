"""One training step of recurrent layers on long sequences: scans against torch's own LSTM and GRU.

Layers of different kinds compute different things, so what all contenders share is only how many steps of how many
sequences they learn from. Each reads the same numbers, 256 in and 256 out at every step, has 256 units (the LRU: 256
complex ones, and its readout), and does one step of AdamW on the mean square of its outputs. Our LSTM runs in the
kernel that torch's module runs in. The time of a token is the time of the table, divided by batch and length.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.recurrent.lru import LRU
from lemmata.recurrent.lstm import LSTM
from lemmata.recurrent.min_gru import MinGRU
from lemmata.recurrent.min_lstm import MinLSTM

BATCH, FEATURES = 8, 256


class Batch(NamedTuple):
    """What is learnt from."""

    x: Tensor


@entry(
    "recurrent_layers",
    title="Training recurrent layers on long sequences",
    measures="one training step: forward, backward, AdamW",
    cases={"1024": "8 sequences of 1,024 steps, 256 units", "4096": "8 sequences of 4,096 steps, 256 units"},
    targets={"nn.LSTM": 1.0, "nn.GRU": 1.0},
)
def sequences(case: str, device: str) -> Batch:
    """Noise of variance one."""
    generator = torch.Generator().manual_seed(0)
    return Batch(torch.randn(BATCH, int(case), FEATURES, generator=generator).to(device))


@ours("LRU")
def lru(batch: Batch) -> Callable[[], int]:
    """A scan of complex numbers, and a readout of one hidden layer."""
    return _training_step(LRU(FEATURES, FEATURES), batch)


@ours("minGRU")
def min_gru(batch: Batch) -> Callable[[], int]:
    """A scan of real numbers."""
    return _training_step(MinGRU(FEATURES, FEATURES), batch)


@ours("minLSTM")
def min_lstm(batch: Batch) -> Callable[[], int]:
    """A scan of real numbers, with two gates."""
    return _training_step(MinLSTM(FEATURES, FEATURES), batch)


@ours("LSTM")
def lstm(batch: Batch) -> Callable[[], int]:
    """One step after another, in torch's kernel."""
    return _training_step(LSTM(FEATURES, FEATURES), batch)


@peer("nn.LSTM")
def torch_lstm(batch: Batch) -> Callable[[], int]:
    """Torch's module."""
    return _training_step(nn.LSTM(FEATURES, FEATURES, batch_first=True), batch)


@peer("nn.GRU")
def torch_gru(batch: Batch) -> Callable[[], int]:
    """Torch's module."""
    return _training_step(nn.GRU(FEATURES, FEATURES, batch_first=True), batch)


@limit("one product of all inputs with a square matrix, forward and backward")
def one_product(batch: Batch) -> Callable[[], int]:
    """No layer can mix the values of an input with less."""
    return _training_step(_Product(), batch)


class _Product(nn.Linear):
    def __init__(self) -> None:
        super().__init__(FEATURES, FEATURES, bias=False)

    def forward(self, input: Tensor) -> tuple[Tensor, None]:
        return super().forward(input), None


def _training_step(layer: nn.Module, batch: Batch) -> Callable[[], int]:
    layer = layer.to(batch.x.device)
    optimizer = torch.optim.AdamW(layer.parameters(), 1e-4, fused=True)

    def train() -> int:
        outputs, _ = layer(batch.x)
        optimizer.zero_grad()
        outputs.square().mean().backward()
        optimizer.step()
        return outputs.shape[0] * outputs.shape[1]

    return train


@agreement(within=0.0)
def tokens(learnt_from: int) -> dict[str, float]:
    """The number of steps learnt from."""
    return {"tokens": float(learnt_from)}
