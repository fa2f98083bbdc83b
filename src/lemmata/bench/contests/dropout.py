"""Dropout against torch's: the same kernel for one probability, and masks of our own for one of each unit."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.tricks.dropout import Dropout

ROWS, UNITS = 4096, 1024


class Layer(NamedTuple):
    """Activations that want a gradient, and the probabilities to drop them."""

    x: Tensor
    p: Tensor
    case: str


@entry(
    "dropout",
    title="Dropout against torch",
    measures="one pass forward and backward in training",
    cases={"one": "4,096 x 1,024, float32, p = 0.5", "units": "4,096 x 1,024, float32, p from 0.1 to 0.9, by unit"},
    targets={"nn.Dropout": 1.05, "a Bernoulli mask": 1.05},
)
def activations(case: str, device: str) -> Layer:
    """Normal numbers of mean 1."""
    # Not the seed of the masks: those would depend on the numbers.
    x = 1 + torch.randn(ROWS, UNITS, generator=torch.Generator().manual_seed(2014))
    return Layer(x.to(device).requires_grad_(), torch.linspace(0.1, 0.9, UNITS), case)


@ours("lemmata")
def ours_in_training(data: Layer) -> Callable[[], Tensor]:
    """Our layer."""
    return _both_passes(Dropout(0.5 if data.case == "one" else data.p).to(data.x.device), data)


@peer("nn.Dropout", cases="one")
def torch_in_training(data: Layer) -> Callable[[], Tensor]:
    """Torch's layer."""
    return _both_passes(nn.Dropout(0.5), data)


@peer("a Bernoulli mask", cases="units")
def bernoulli(data: Layer) -> Callable[[], Tensor]:
    """What one would write."""
    keep = (1 - data.p).to(data.x.device)
    return _both_passes(lambda x: x * torch.bernoulli(keep.expand(x.shape)) / keep, data)


@limit("a product with a mask that is there, forward and backward")
def with_a_mask(data: Layer) -> Callable[[], Tensor]:
    """Drawing it is what the others do besides."""
    keep = (1 - data.p).to(data.x.device)
    mask = torch.bernoulli(keep.expand(data.x.shape)) / keep
    return _both_passes(lambda x: x * mask, data)


def _both_passes(layer: Callable[[Tensor], Tensor], data: Layer) -> Callable[[], Tensor]:
    ones = torch.ones_like(data.x)

    def both() -> Tensor:
        y = layer(data.x)
        torch.autograd.grad(y, data.x, ones)
        return y

    return both


@agreement(within=0.02)
def in_numbers(y: Tensor) -> dict[str, float]:
    """The mean, which is that of the inputs for each of them."""
    return {"mean": float(y.detach().double().mean())}
