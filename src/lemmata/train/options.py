"""How to train: the choices every recipe shares, in one frozen dataclass with its checks."""

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """The choices of a training run; a recipe changes the defaults, the command line changes them again.

    >>> Options(rate=-1)
    Traceback (most recent call last):
    ValueError: rate must be > 0, got -1
    """

    epochs: int = 10
    """Passes over the training examples."""
    steps: int | None = None
    """Stop after this many updates, whatever the epochs."""
    batch: int = 64
    """Examples per update, over all processes together."""
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    """The update rule."""
    rate: float = 1e-3
    """Learning rate at its highest."""
    decay: float = 0.0
    """Weight decay."""
    momentum: float = 0.9
    """Momentum of sgd; the others have their own."""
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    """How the rate falls from the end of the warm-up to the last step."""
    warmup: int = 0
    """Steps during which the rate rises from 0."""
    clip: float | None = None
    """Largest norm of the gradient; longer ones are shortened."""
    accumulate: int = 1
    """Parts a batch is computed in, one after another, to save memory."""
    average: float | None = None
    """Decay of a moving average of the weights, such as 0.999; it is what is evaluated and kept."""
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    """Numbers of the forward pass; bfloat16 keeps the weights in float32 (autocast)."""
    patience: int | None = None
    """Stop after this many evaluations without a better score."""
    evaluate: int = 1
    """Epochs between two evaluations."""
    save: int | None = None
    """Steps between two checkpoints; by default one an epoch, though not more than one in five seconds."""
    keep: int = 2
    """Checkpoints kept."""
    seed: int = 0
    """Decides the initial weights, the order of the examples and all noise."""
    device: str = "auto"
    """auto takes cuda, else mps, else cpu."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "accumulate", "evaluate"):
            _at_least(name, getattr(self, name), 1)
        for name in ("steps", "patience", "save"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1)
        _at_least("warmup", self.warmup, 0)
        _at_least("keep", self.keep, 2)  # with one, a damaged file would cost everything
        _at_least("seed", self.seed, 0)
        if not (isinstance(self.rate, int | float) and 0 < self.rate < math.inf):
            raise ValueError(f"rate must be > 0, got {self.rate}")
        if not 0 <= self.decay < math.inf:
            raise ValueError(f"decay must be >= 0, got {self.decay}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise ValueError(f"clip must be > 0, got {self.clip}")
        if self.average is not None and not 0 < self.average < 1:
            raise ValueError(f"average must be between 0 and 1, got {self.average}")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")


CHOICES = {
    "optimizer": ("adamw", "adam", "sgd"),
    "schedule": ("constant", "cosine", "linear"),
    "precision": ("float32", "float64", "bfloat16"),
}


def _at_least(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
