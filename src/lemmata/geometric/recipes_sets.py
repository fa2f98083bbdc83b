"""What can be trained in this chapter: Deep Sets that add up, or compare, what is written on pictures of digits.

What the defaults reach on the test (seed 0): a mean absolute error of 2.7 for sums of up to 20 digits (3.7 for 20 of
them, 4 % of their sum, though none of more than 10 was learnt from), 0.38 for the greatest, 0.70 for the median.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Line, Points
from lemmata.geometric.deep_sets import REDUCTIONS
from lemmata.geometric.set_network import SetNetwork
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Regression, fraction, mean_absolute_error
from lemmata.train.options import Options

__all__ = ["DigitSetConfig", "read_digit_sets"]

TASKS = ("sum", "max", "median")
TESTED = 2000  # sets of the test, and of the validation
EVERY = 6  # of the pictures to learn from, one is kept for the sets of the validation
BASELINES = {
    "sum": {"the number of digits alone": 7.13, "the concatenation": 14.5},
    "max": {"the number of digits alone": 0.69, "the concatenation": 0.74},
    "median": {"the number of digits alone": 1.29, "the concatenation": 0.99},
}
HOW = (
    "mean absolute error on test sets of up to twice as many digits as the largest that was learnt from. The number of "
    "digits alone: the median answer for so many digits, though none learnt from so many. The concatenation: a "
    "perceptron of the pictures one after another, with as many units, zeros where there are none, trained on the same "
    "sets for as long."
)


@dataclass(frozen=True)
class DigitSetConfig:
    """What can be chosen of Deep Sets that read sets of digits, and of what they are asked."""

    task: Literal["sum", "max", "median"] = "sum"
    """The digits' sum, the greatest, or the one in the middle (the lower of two)."""
    elements: int = 10
    """Digits in the largest set to learn from; sets of the test have up to twice as many."""
    sets: int = 8000
    """Sets to learn from."""
    width: int = 128
    """Units of the hidden layer in both networks."""
    latent: int = 64
    """Features of an element that are joined."""
    reduce: Literal["sum", "mean", "max"] | None = None
    """How they are joined; by default as the task asks: sum, max, or mean for the median."""

    def __post_init__(self) -> None:
        validate.one_of("task", self.task, TASKS)
        for name in ("elements", "sets", "width", "latent"):
            validate.count(name, getattr(self, name))
        if self.reduce is not None:
            validate.one_of("reduce", self.reduce, REDUCTIONS)


@recipe("deep_sets", "set_network", data="digits", metric="mae")
def read_digit_sets(
    data: str = "digits",
    config: DigitSetConfig = DigitSetConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=15, batch_size=64, lr=2e-3, schedule="cosine"),  # noqa: B008
    system: str = "deep_sets",
) -> Experiment:
    """Sets of handwritten digits: their sum, the greatest or the median, also of more digits than were ever seen."""
    found = load(data)
    held_out = torch.arange(len(found.train)) % EVERY == EVERY - 1
    train = digit_sets(found.train[~held_out], config.task, config.sets, 1, config.elements, seed=options.seed)
    validation, test = (
        digit_sets(pictures, config.task, TESTED, 1, 2 * config.elements, seed=1)
        for pictures in (found.train[held_out], found.test)
    )
    joined = config.reduce or {"sum": "sum", "max": "max", "median": "mean"}[config.task]
    arguments = {
        "inputs": train.x.shape[-1], "outputs": 1, "width": config.width, "latent": config.latent, "reduce": joined
    }  # fmt: skip

    def answers(system: SetNetwork, batch: Examples) -> Tensor:
        mask = batch.mask if "mask" in batch.columns else None
        return system(batch.x, mask)[:, 0]  # (batch,)

    def picture(system: SetNetwork) -> Figure:
        shown = test[:400]
        ends = [float(shown.y.min()), float(shown.y.max())]
        with evaluating(system):
            weights = next(system.parameters())
            found = answers(system, shown.to(weights.device).to(weights.dtype)).cpu()
        marks = [Points(shown.y.tolist(), found.tolist(), "sets of the test"), Line(ends, ends, "right answers")]
        title = f"The {'maximum' if config.task == 'max' else config.task} of sets of digits"
        return Figure(title, "right answer", "answer", marks)

    scores = {"mae": mean_absolute_error, "right": lambda output, y: fraction((output - y).abs() < 0.5)}
    return Regression(answers, functional.smooth_l1_loss, scores, name="answer").experiment(
        SetNetwork, arguments, train, test, options, validation=validation, picture=picture,
        notes={"baselines": BASELINES[config.task], "how": HOW},
    )  # fmt: skip


def digit_sets(pictures: Examples, task: str, count: int, least: int, most: int, seed: int) -> Examples:
    """Sets of pictures with what is asked of their digits: x (count, most, pixels), mask (count, most), y (count,)."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(least, most + 1, (count,), generator=generator)
    mask = torch.arange(most) < sizes[:, None]  # (count, most)
    chosen = torch.randint(len(pictures), (count, most), generator=generator)
    digits = pictures.y[chosen]
    if task == "sum":
        y = (digits * mask).sum(1)
    elif task == "max":
        y = digits.masked_fill(~mask, -1).amax(1)
    else:
        last = digits.masked_fill(~mask, 10).sort(1).values  # those outside the set come last
        y = last.gather(1, ((sizes - 1) // 2)[:, None])[:, 0]
    x = pictures.x.flatten(1)[chosen] * mask[..., None]
    return Examples(x=x, mask=mask, y=y.to(x.dtype))
