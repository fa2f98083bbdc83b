"""What healthy models share: data as people prepare them, and a moment of training."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data import load

__all__ = ["HEALTHY", "Healthy", "healthy", "numbers", "pictures", "standard", "trained"]


@dataclass
class Healthy:
    """A model, what it learnt from, what it is tested on, and how it was trained."""

    model: nn.Module
    data: Any
    test: Any
    words: dict[str, Any] = field(default_factory=dict)


HEALTHY: dict[str, Callable[[], Healthy]] = {}


def healthy(make: Callable[[], Healthy]) -> Callable[[], Healthy]:
    HEALTHY[make.__name__] = make
    return make


def trained(
    model: nn.Module,
    data: tuple[Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
    optimizer: str = "adam",
    lr: float = 1e-3,
    steps: int = 150,
    batch_size: int = 64,
    seed: int = 0,
    **options: Any,
) -> dict[str, Any]:
    """Train in place; the words to tell the audit."""
    makers = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    stepper = makers[optimizer](model.parameters(), lr=lr, **options)
    generator = torch.Generator().manual_seed(seed)
    x, y = data
    model.train()
    for _ in range(steps):
        chosen = torch.randint(len(x), (min(batch_size, len(x)),), generator=generator)
        stepper.zero_grad()
        loss(model(x[chosen]), y[chosen]).backward()
        stepper.step()
    model.eval()
    words = {"optimizer": optimizer, "lr": lr, "batch_size": batch_size}
    return words | ({"momentum": options["momentum"]} if "momentum" in options else {})


def standard(name: str) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Inputs with mean zero and variance one, by the training part."""
    data = load(name)
    mean, spread = data.train.x.mean(0), data.train.x.std(0).clamp(min=1e-3)
    parts = [((part.x - mean) / spread, part.y) for part in (data.train, data.test)]
    return parts[0], parts[1]


def pictures(name: str, *numbers: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Grey pictures with one channel, normalised by one mean and one spread; so many to train and to test, or all."""
    data = load(name)
    train, test = (
        (part.x[:number].float(), part.y[:number])
        for part, number in zip((data.train, data.test), numbers or (None, None), strict=True)
    )
    mean, spread = train[0].mean(), train[0].std()
    parts = [(((x - mean) / spread)[:, None], y) for x, y in (train, test)]
    return parts[0], parts[1]


def numbers(name: str) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """A regression with everything standardised, targets (examples, 1)."""
    train, test = standard(name)
    mean, spread = train[1].float().mean(), train[1].float().std()
    parts = [(x, ((y - mean) / spread).reshape(len(y), 1)) for x, y in (train, test)]
    return parts[0], parts[1]
