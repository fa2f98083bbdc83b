"""What `lemmata train gp` does: numbers with error bars, from a table."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.own_files import FileChoices, load_file
from lemmata.data.registry import load
from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.feedforward.recipes_regression import RIDGE, AllAtOnce
from lemmata.figure import Band, Figure, Points
from lemmata.kernel.gaussian_process import GaussianProcess
from lemmata.kernel.named_kernels import covariance_function
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options

__all__ = ["GaussianProcessConfig", "GaussianProcessFileConfig", "predict_file_with_bars", "predict_with_bars"]

ONCE = Options(epochs=1, batch_size=65_536, precision="float64", device="cpu")  # all examples in one step


@dataclass(frozen=True)
class GaussianProcessConfig:
    """What can be chosen of a Gaussian process."""

    kernel: str = "rbf"
    """Kernels joined by + and *: rbf, matern12, matern32, matern52, periodic, linear, arc_cosine, constant."""
    ard: bool = True
    """Whether each feature has a length scale of its own."""
    restarts: int = 0
    """Further places from which the largest likelihood is looked for."""

    def __post_init__(self) -> None:
        covariance_function(self.kernel)
        validate.flag("ard", self.ard)
        validate.count("restarts", self.restarts, least=0)


@recipe("gp", data="diabetes", metric="nll")
def predict_with_bars(
    data: str = "diabetes",
    config: GaussianProcessConfig = GaussianProcessConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """How far the diabetes of a patient has gone after a year, and how sure that is."""
    return _with_bars(load(data), config, options)


@dataclass(frozen=True)
class GaussianProcessFileConfig(GaussianProcessConfig, FileChoices):
    """What can be chosen of a Gaussian process, and of the data of one's own that it learns from."""


@recipe("gp", data="file", metric="nll")
def predict_file_with_bars(
    data: str | Dataset,
    config: GaussianProcessFileConfig = GaussianProcessFileConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """A number in a table of one's own, and how sure that is."""
    found = load_file(data, config, options.seed)
    if found.classes:
        name = found.extra["preparation"].target.name
        raise ValueError(f"{name} holds classes, but this predicts a number: use logistic")
    return _with_bars(found, config, options)


def _with_bars(found: Dataset, config: GaussianProcessConfig, options: Options) -> Experiment:
    preparation = found.extra.get("preparation")
    scale = preparation.target.scale if preparation else 1.0
    name = preparation.target.name if preparation else "predicted"
    train, test = (Examples(x=part.x.flatten(1), y=part.y) for part in (found.train, found.test))
    features = train.x.shape[1] if config.ard else None
    arguments: dict[str, Any] = {"kernel": config.kernel, "mean": float(train.y.double().mean()), "features": features}
    system = GaussianProcess(**arguments)
    _begin_at(system, train.y)

    def own_unit(values: Tensor) -> Tensor:
        return preparation.value(values) if preparation else values

    def measure(system: GaussianProcess, examples: Examples) -> dict[str, float]:
        error = system.predict(examples.x).mean - examples.y
        nll = system.nll(examples.x, examples.y) + math.log(scale)
        return {"nll": nll, "mae": float(error.abs().mean()) * scale, "loss": nll}

    def bars(system: GaussianProcess, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance, _ = system.predict(x.double(), noise=True)
        return own_unit(mean), variance.sqrt() * scale

    def picture(system: GaussianProcess) -> Figure:
        mean, spread = bars(system, test.x)
        order, truth = mean.argsort(), own_unit(test.y.double())
        mean, spread, truth = (values[order] for values in (mean, spread, truth))
        rank = torch.arange(len(mean))
        inside = ((truth - mean).abs() <= 1.96 * spread).double().mean()
        marks = [Band(rank, mean - 1.96 * spread, mean + 1.96 * spread, "95 %"), Points(rank, truth, "measured")]
        return Figure("Test examples in the order of their predictions", "rank", name, marks,
                      note=f"{100 * float(inside):.0f} % of the test examples lie in their band.")  # fmt: skip

    def predict(system: GaussianProcess, examples: Examples) -> dict[str, Tensor]:
        mean, spread = bars(system, examples.x.flatten(1))
        return {name: mean, "standard deviation": spread}

    learner = AllAtOnce(_Restarted(system, config.restarts, options.seed), lambda _, part: measure(system, part))
    how = "negative log-likelihood of a test example, in nats; ridge regression with the spread of its residuals"
    notes = {"baselines": _baseline_scores(train, test, scale), "how": how, "sha256": found.extra.get("digest", "")}
    return Experiment(
        system, arguments, train, test, options, learner=learner, metric="nll", picture=picture, predict=predict,
        preparation=preparation, notes=notes,
    )  # fmt: skip


class _Restarted:
    """A process whose fit has its choices."""

    def __init__(self, system: GaussianProcess, restarts: int, seed: int) -> None:
        self.system, self.restarts, self.seed = system, restarts, seed

    def fit(self, x: Tensor, y: Tensor) -> None:
        self.system.fit(x, y, restarts=self.restarts, seed=self.seed)


def _begin_at(system: GaussianProcess, y: Tensor) -> None:
    """Half of the variance is noise, the rest the function; features are standardised: length scales of a few."""
    half = float(y.double().var()) / 2 if len(y) > 1 else 0.0
    if half == 0:
        return
    system.noise = half
    with torch.no_grad():
        for name, parameter in system.kernel.named_parameters():
            if name.endswith("log_variance") and parameter.requires_grad:
                parameter += math.log(half)
            if name.endswith("log_length_scale"):
                parameter += math.log(3.0)


def _baseline_scores(train: Examples, test: Examples, scale: float) -> dict[str, float]:
    """The same density for all, and a line with the spread of its residuals, both normal."""
    x, y, degrees = train.x.double(), train.y.double(), min(train.x.shape[1] + 1, len(train) - 1)
    line = LinearRegression(ridge=RIDGE["diabetes"]).fit(x, y)
    spread = float((line.predict(x) - y).square().sum()) / max(len(train) - degrees, 1)
    found = {"the mean": (test.y - y.mean(), float(y.var(correction=0))),
             "ridge regression": (test.y - line.predict(test.x.double()), spread)}  # fmt: skip
    return {
        name: float((0.5 * error.square() / max(variance, 1e-300)).mean())
        + 0.5 * math.log(2 * math.pi * max(variance, 1e-300)) + math.log(scale)
        for name, (error, variance) in found.items()
    }  # fmt: skip
