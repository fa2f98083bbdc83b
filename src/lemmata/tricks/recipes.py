"""What can be trained of the tricks: a small student from a large teacher. The others: `lemmata train --compare`."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLPConfig
from lemmata.feedforward.recipes import PictureConfig, classification
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import chosen
from lemmata.train.loop import run_experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded
from lemmata.tricks.augmentation import Shift
from lemmata.tricks.distillation import distillation_loss

__all__ = ["DistillConfig", "distill_clothing"]

BASELINES = {"the same student without a teacher": 0.737}
HOW = "mean over seeds 0 to 4, of the same options with hard = 1: the 200 labels alone"


@dataclass(frozen=True)
class DistillConfig(MLPConfig):
    """What can be chosen of a student, of its teacher, and of what the student is told."""

    temperature: float = 4.0
    """How much the teacher's answers are softened."""
    hard: float = 0.1
    """Weight of the labels beside the teacher's answers; 1 leaves the teacher out."""
    labelled: int = 200
    """Pictures whose labels the student sees, if hard > 0; it sees all pictures."""
    teacher_width: int = 512
    """Hidden units of the teacher."""
    teacher_epochs: int = 60
    """Passes of the teacher over its pictures, all of them labelled."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.positive("temperature", self.temperature)
        validate.fraction("hard", self.hard, most=1.0)
        validate.count("labelled", self.labelled)
        validate.count("teacher_width", self.teacher_width)
        validate.count("teacher_epochs", self.teacher_epochs)


@recipe("distill", data="fashion", metric="accuracy")
def distill_clothing(
    data: str = "fashion",
    config: DistillConfig = DistillConfig(widths=(32,)),  # noqa: B008 - frozen
    options: Options = Options(epochs=60, batch_size=64, lr=3e-3, schedule="cosine", evaluate=4),  # noqa: B008
) -> Experiment:
    """Ten kinds of clothing: a student of 32 units learns from a teacher with 512, and from 200 labels."""
    found = load(data)
    plain = classification(found, PictureConfig(**chosen(config, MLPConfig)), options, {})
    measured = plain.loss
    assert measured is not None
    teacher, shift = _Teacher(data, config, options), Shift(1)
    order = torch.randperm(len(found.train), generator=torch.Generator().manual_seed(options.seed))
    known = torch.zeros(len(order), dtype=torch.bool)
    known[order[: config.labelled]] = True
    train = Examples(**found.train.columns, known=known)

    def loss(student: nn.Module, batch: Examples) -> Any:
        if not student.training:
            return measured(student, batch)
        x = shift(batch.x)
        logits = student(x)  # (batch, classes)
        losses = functional.cross_entropy(logits, batch.y, reduction="none")
        # As a mean over the labelled ones of the batch, of which there may be none.
        hard = (losses * batch.known).sum() / batch.known.sum().clamp(min=1)
        if config.hard == 1:
            return hard
        soft = config.temperature**2 * distillation_loss(logits, teacher(x), config.temperature)
        return (1 - config.hard) * soft + config.hard * hard

    return replace(plain, train=train, loss=loss, notes={"baselines": BASELINES, "how": HOW})


class _Teacher:
    """A wide network that is trained when it is first asked; the same bits each time."""

    def __init__(self, data: str, config: DistillConfig, options: Options) -> None:
        settings = PictureConfig(widths=(config.teacher_width,), dropout=0.3, shift=1)
        words = {"lr": 2e-3, "weight_decay": 0.01, "schedule": "cosine", "batch_size": 128, "device": options.device}
        words["precision"] = options.precision
        teaching = Options(epochs=config.teacher_epochs, evaluate=config.teacher_epochs, seed=options.seed, **words)
        self.experiment = classification(load(data), settings, teaching, {})
        self.trained = False

    def __call__(self, x: Tensor) -> Tensor:
        if not self.trained:
            with seeded(self.experiment.options.seed):  # what the student draws does not depend on it
                run_experiment(self.experiment)
            self.trained = True
        teacher: nn.Module = self.experiment.system.to(x.device)
        with evaluating(teacher):
            return teacher(x)
