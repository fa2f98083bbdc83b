"""How to train: the choices every recipe shares, in one frozen dataclass with its checks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lemmata import validate
from lemmata.catalog import optimizers

__all__ = ["Options"]

# Optimisers that the course does not treat and torch has: they are torch's own.
OF_TORCH = {name.lower(): name for name in ("Adadelta", "Adamax", "ASGD", "LBFGS", "NAdam", "RAdam", "Rprop")}
OPTIMIZERS = (*optimizers(), *OF_TORCH)

if TYPE_CHECKING:
    OptimizerName = str
else:
    OptimizerName = Literal[OPTIMIZERS]  # so that the command line and the page list what there is


@dataclass(frozen=True)
class Options:
    """The choices of a training run; a recipe changes the defaults, the command line changes them again.

    >>> Options(lr=-1)
    Traceback (most recent call last):
    ValueError: lr must be > 0, got -1
    """

    epochs: int = 10
    """Passes over the training examples."""
    steps: int | None = None
    """Stop after this many updates, whatever the epochs."""
    batch_size: int = 64
    """Examples per update, over all processes together."""
    optimizer: OptimizerName = "adamw"
    """The update rule."""
    lr: float = 1e-3
    """Learning rate at its highest."""
    weight_decay: float = 0.0
    """Weight decay."""
    momentum: float | None = None
    """Momentum, where the update rule has one; by default 0.9 for sgd, and the others' own."""
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    """How the learning rate falls from the end of the warm-up to the last step."""
    warmup: int = 0
    """Steps during which the learning rate rises from 0."""
    clip: float | None = None
    """Largest norm of the gradient; longer ones are shortened."""
    accumulate: int = 1
    """Parts a batch is computed in, one after another, to save memory."""
    ema_decay: float | None = None
    """Decay of a moving average of the weights, such as 0.999; it is what is evaluated and kept."""
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    """Numbers of the forward pass; bfloat16 keeps the weights in float32 (autocast)."""
    patience: int | None = None
    """Stop after this many evaluations without a better score."""
    evaluate: int = 1
    """Epochs between two evaluations."""
    save: int | None = None
    """Steps between two checkpoints; by default one an epoch, though not more than one in five seconds."""
    save_seconds: float = 60.0
    """Seconds after which a checkpoint is saved inside an epoch too; with save, steps decide alone."""
    keep: int = 2
    """Checkpoints kept."""
    seed: int = 0
    """Decides the initial weights, the order of the examples and all noise."""
    device: str = "auto"
    """auto takes cuda, else mps, else cpu."""

    def __post_init__(self) -> None:
        least = {"warmup": 0, "seed": 0, "keep": 2}  # with one checkpoint, a damaged file would cost everything
        for name in ("epochs", "batch_size", "accumulate", "evaluate", "steps", "patience", "save", *least):
            if getattr(self, name) is not None or name not in ("steps", "patience", "save"):
                validate.count(name, getattr(self, name), least.get(name, 1), most=MOST)
        for name in ("lr", "clip", "save_seconds"):
            if not (name == "clip" and self.clip is None):
                validate.positive(name, getattr(self, name))
        validate.number("weight_decay", self.weight_decay, least=0)
        if self.momentum is not None:
            validate.fraction("momentum", self.momentum)
        if self.ema_decay is not None:
            validate.number("ema_decay", self.ema_decay, above=0, below=1)
        if not isinstance(self.device, str):
            raise TypeError(f"device must be a name such as auto, cpu or cuda, got {self.device!r}")
        for name, known in CHOICES.items():
            validate.one_of(name, getattr(self, name), known)


MOST = 2**53 - 1  # beyond it no other program could read an integer from the record
CHOICES = {
    "optimizer": OPTIMIZERS,
    "schedule": ("constant", "cosine", "linear"),
    "precision": ("float32", "float64", "bfloat16"),
}
