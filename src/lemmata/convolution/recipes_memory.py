"""What `lemmata train tcn` does: convolutions in time on tasks of nothing but memory.

The receptive field decides what can be known: with the usual one, of 125 steps, what lies 100 steps back is seen.
What is reached on the way (seed 0): a squared error of 0.006 in the adding problem after 5 passes of 12, and the letter
always right after 4.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.temporal_convolution import TCN, TCNConfig
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Line
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification, Form, Output, Regression, chosen
from lemmata.train.options import Options

__all__ = ["RecallConfig", "recall_by_convolution"]

ADDING = {"always 1": 1 / 6, "the second number plus 1/2": 1 / 12}


@dataclass(frozen=True)
class RecallConfig(TCNConfig):
    """What can be chosen of a temporal convolutional network, and how long ago it is asked for."""

    depth: int = 5
    """Residual blocks of two convolutions; block l has dilation 2^l, from l = 0. Five see 125 steps."""
    lag: int = 100
    """Length of the sequence."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("lag", self.lag, least=2, most=10_000)


@recipe("tcn", data="adding", metric="error")
@recipe("tcn", data="echo", metric="accuracy")
def recall_by_convolution(
    data: str = "adding",
    config: RecallConfig = RecallConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=12, batch_size=32, lr=4e-3, schedule="cosine", warmup=50, clip=1.0),  # noqa: B008
) -> Experiment:
    """Two marked numbers to be added up, or a letter to be said again, long after."""
    found = load(data, **{"length" if data == "adding" else "lag": config.lag})
    numbers = data == "adding"
    train, test = (_as_channels(part, 2 * len(found.classes)) for part in (found.train, found.test))
    arguments = {"inputs": train.x.shape[2], "outputs": len(found.classes) or 1, **chosen(config, without=("lag",))}

    def last_step(system: TCN, batch: Examples) -> Tensor:
        return system(_as_channels(batch, 2 * len(found.classes)).x)[:, -1]  # (batch, outputs)

    return answer(last_step, numbers).experiment(
        TCN, arguments, train, test, options, classes=found.classes,
        picture=lambda system: _what_counts(system, test[:64]),
        notes={"baselines": ADDING if numbers else {"guessing": 1 / len(found.classes)}},
    )  # fmt: skip


def answer(output: Output, number: bool) -> Form:
    """What is said after the last step: a number, whose squared error counts, or a class."""
    if not number:
        return Classification(output)
    error = {"error": functional.mse_loss}
    return Regression(lambda system, batch: output(system, batch)[:, 0], scores=error, name="sum")


def _as_channels(sequences: Examples, tokens: int) -> Examples:
    """Tokens become one channel for each kind; numbers stay as they are."""
    x = sequences.x
    if not x.is_floating_point():
        x = functional.one_hot(x, tokens).float()  # (sequences, time, tokens)
    return Examples(**{**sequences.columns, "x": x})


def _what_counts(system: TCN, examples: Examples) -> Figure:
    """How much the answer would change with each step: the mean length of its gradient."""
    weight = next(system.parameters())
    x = examples.x.to(weight).requires_grad_(True)  # (sequences, time, inputs)
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(system(x)[:, -1].square().sum(), x)
    size = slope.norm(dim=2).mean(0).flip(0).cpu()  # (time,), the last step first
    field = min(system.receptive_field, len(size))
    note = f"The receptive field has {system.receptive_field} steps; what lies before it has no weight at all."
    marks = [Line(torch.arange(field), size[:field], "gradient")]
    return Figure("What the answer depends on", "steps before the last", "length of the gradient", marks, note=note)
