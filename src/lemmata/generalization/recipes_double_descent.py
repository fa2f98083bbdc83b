"""What `lemmata train double_descent` does: ten widths, one batch, and the peak where all examples are just met."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.recipes_regression import AllAtOnce
from lemmata.figure import Figure, Line
from lemmata.generalization.width_sweep import WidthSweepClassifier
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options

__all__ = ["DoubleDescentConfig", "fit_growing_widths"]

ONCE = Options(epochs=1, batch_size=65_536, precision="float64", device="cpu")  # all examples in one step
# Widths as multiples of the number of examples: below, at and beyond the threshold
MULTIPLES = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class DoubleDescentConfig:
    """How many examples there are, and how many of their labels are wrong."""

    examples: int = 300
    """Training pictures, and the width at which the peak stands."""
    noise: float = 0.2
    """Fraction of the training labels that are drawn anew, at random."""

    def __post_init__(self) -> None:
        validate.count("examples", self.examples, least=20, most=1000)
        validate.number("noise", self.noise, least=0, most=1)


@recipe("double_descent", data="digits fashion", metric="error")
def fit_growing_widths(
    data: str = "digits",
    config: DoubleDescentConfig = DoubleDescentConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """Classifiers of ten widths on noisy labels: the error peaks at as many features as examples, and falls again."""
    found = load(data)
    train, test = found.train[: config.examples], found.test[:2000]
    drawn = torch.Generator().manual_seed(options.seed)
    anew = torch.rand(len(train), generator=drawn) < config.noise
    other = torch.randint(len(found.classes), (len(train),), generator=drawn)
    train = Examples(x=train.x.flatten(1), y=torch.where(anew, other, train.y))
    test = Examples(x=test.x.flatten(1), y=test.y)
    widths = tuple(max(2, round(multiple * len(train))) for multiple in MULTIPLES)
    arguments = {"inputs": train.x.shape[1], "widths": widths, "seed": options.seed}
    system = WidthSweepClassifier(**arguments)

    def measure(system: WidthSweepClassifier, examples: Examples) -> dict[str, float]:
        plain, ridged = _errors_of_widths(system, examples), _errors_of_widths(system, examples, ridged=True)
        threshold = widths.index(len(train))
        return {
            "error": plain[-1], "error_at_threshold": plain[threshold], "error_before": min(plain[:threshold]),
            "error_best_ridge": ridged[-1], "loss": plain[-1],
        }  # fmt: skip

    def picture(system: WidthSweepClassifier) -> Figure:
        features = [float(width) for width in widths]
        lines = [
            Line(features, _errors_of_widths(system, test), "no ridge"),
            Line(features, _errors_of_widths(system, test, ridged=True), "best ridge of each width"),
            Line(features, _errors_of_widths(system, train), "no ridge, training examples"),
        ]
        note = f"{len(train)} examples, {int(anew.sum())} labels drawn anew; the peak stands at {len(train)} features"
        return Figure("Double descent", "random features", "error", lines, x_log=True, note=note)

    def predict(system: WidthSweepClassifier, examples: Examples) -> dict[str, Tensor]:
        scores = system.decision_function(examples.x.flatten(1))
        return {"class": scores.argmax(1), "score": scores.amax(1)}

    return Experiment(
        system, arguments, train, test, options, metric="error", classes=tuple(found.classes), picture=picture,
        learner=AllAtOnce(system, measure, classes=len(found.classes)), predict=predict,
        notes={"baselines": {"as many features as examples": _error_at_threshold(arguments, train, test)},
               "how": "test error of the minimum-norm fit, from the same noisy examples"},
    )  # fmt: skip


def _errors_of_widths(system: WidthSweepClassifier, examples: Examples, ridged: bool = False) -> list[float]:
    return (system.predict_all(examples.x, ridged) != examples.y).double().mean(1).tolist()


def _error_at_threshold(arguments: dict[str, Any], train: Examples, test: Examples) -> float:
    alone = WidthSweepClassifier(**{**arguments, "widths": (len(train),)}).fit(train.x.double(), train.y)
    return _errors_of_widths(alone, test)[0]
