"""What `lemmata train regression` and `lemmata train logistic` do: closed forms and Newton's method on real tables."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from lemmata.data.examples import Dataset, Examples
from lemmata.data.own_files import FileChoices, load_file
from lemmata.data.registry import load
from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.feedforward.logistic_regression import LogisticRegression
from lemmata.figure import Figure, Line, Points
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.forms import accuracy, chosen, likeliest_class
from lemmata.train.options import Options
from lemmata.train.own_data import baselines
from lemmata.train.pictures import decision_map, labelled_pictures

__all__ = [
    "LogisticConfig",
    "LogisticFileConfig",
    "RegressionConfig",
    "RegressionFileConfig",
    "classify_file",
    "classify_tumours",
    "classify_written_digits",
    "predict_file",
    "predict_progression",
]

# One step with all examples: nothing here is learnt from a part of them.
ONCE = Options(epochs=1, batch_size=65_536, precision="float64", device="cpu")
# Chosen by 5-fold cross-validation on the training examples.
RIDGE = {"diabetes": 0.01, "breast_cancer": 0.003, "digits": 1e-4}


# --- Numbers ---


@dataclass(frozen=True)
class RegressionConfig:
    """What can be chosen of a linear regression."""

    ridge: float = 0.01
    """Weight of the squared weights beside the mean squared error."""
    bias: bool = True
    """Whether the function may miss the origin."""
    solver: Literal["cholesky", "qr", "svd", "gd", "sgd"] = "cholesky"
    """How the minimum is found."""

    def __post_init__(self) -> None:
        LinearRegression(self.ridge, self.bias, self.solver)  # says what is wrong, if something is


@recipe("regression", data="diabetes", metric="mae")
def predict_progression(
    data: str = "diabetes",
    config: RegressionConfig = RegressionConfig(RIDGE["diabetes"]),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """How far the diabetes of a patient has gone after a year, from ten measurements."""
    found = load(data)
    same = {"always the mean": float((found.test.y - found.train.y.mean()).abs().mean())}
    return _regression_experiment(found, asdict(config), options, {"baselines": same})


@dataclass(frozen=True)
class RegressionFileConfig(RegressionConfig, FileChoices):
    """What can be chosen of a linear regression, and of the data of one's own that it learns from."""


@recipe("regression", data="file", metric="mae")
def predict_file(
    data: str | Dataset,
    config: RegressionFileConfig = RegressionFileConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """A number in a table of one's own."""
    found = load_file(data, config, options.seed)
    preparation = found.extra["preparation"]
    if found.classes:
        raise ValueError(f"{preparation.target.name} holds classes, but this predicts a number: use logistic")
    notes = {"baselines": baselines(found), "sha256": found.extra.get("digest", "")}
    return _regression_experiment(found, chosen(config, RegressionConfig), options, notes)


def _regression_experiment(
    found: Dataset, arguments: dict[str, Any], options: Options, notes: Mapping[str, Any]
) -> Experiment:
    arguments = {**arguments, "seed": options.seed}
    system, preparation = LinearRegression(**arguments), found.extra.get("preparation")
    scale = preparation.target.scale if preparation else 1.0
    name = preparation.target.name if preparation else "predicted"
    test = _flat_inputs(found.test)

    def own_unit(values: Tensor) -> Tensor:
        return preparation.value(values) if preparation else values

    def measure(system: LinearRegression, examples: Examples) -> dict[str, float]:
        error = system.predict(examples.x) - examples.y
        variance = (examples.y - examples.y.mean()).square().mean()
        explained = 1 - float(error.square().mean() / variance) if variance else 0.0
        return {"mae": float(error.abs().mean()) * scale, "r2": explained, "loss": float(error.square().mean()) / 2}

    def picture(system: LinearRegression) -> Figure:
        truth, answer = own_unit(test.y), own_unit(system.predict(test.x.double()))
        ends = [float(truth.min()), float(truth.max())]
        marks = [Line(ends, ends, "right"), Points(truth.tolist(), answer.tolist(), "test examples")]
        return Figure("What was predicted, and what was measured", "measured", "predicted", marks)

    def predict(system: LinearRegression, examples: Examples) -> dict[str, Tensor]:
        return {name: own_unit(system.predict(_flat_inputs(examples).x.double()))}

    return Experiment(
        system, arguments, _flat_inputs(found.train), test, options, learner=AllAtOnce(system, measure), metric="mae",
        largest=False, picture=picture, predict=predict, preparation=preparation, notes=notes,
    )  # fmt: skip


# --- Classes ---


@dataclass(frozen=True)
class LogisticConfig:
    """What can be chosen of a logistic regression."""

    ridge: float = 0.003
    """Weight of the squared weights beside the mean cross-entropy."""
    bias: bool = True
    """Whether the boundary may miss the origin."""
    solver: Literal["newton", "lbfgs", "gd", "sgd"] = "newton"
    """How the minimum is found."""

    def __post_init__(self) -> None:
        LogisticRegression(self.ridge, self.bias, self.solver)


@recipe("logistic", data="breast_cancer", metric="accuracy")
def classify_tumours(
    data: str = "breast_cancer",
    config: LogisticConfig = LogisticConfig(RIDGE["breast_cancer"]),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """Malignant or benign, from thirty measurements of cell nuclei."""
    return _classification_experiment(load(data), asdict(config), options, {})


@recipe("logistic", data="digits", metric="accuracy")
def classify_written_digits(
    data: str = "digits",
    config: LogisticConfig = LogisticConfig(RIDGE["digits"]),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """Ten handwritten digits by one linear function each."""
    return _classification_experiment(load(data), asdict(config), options, {})


@dataclass(frozen=True)
class LogisticFileConfig(LogisticConfig, FileChoices):
    """What can be chosen of a logistic regression, and of the data of one's own that it learns from."""


@recipe("logistic", data="file", metric="accuracy")
def classify_file(
    data: str | Dataset,
    config: LogisticFileConfig = LogisticFileConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """Classes of one's own: a table, arrays or a folder of images."""
    found = load_file(data, config, options.seed)
    if not found.classes:
        name = found.extra["preparation"].target.name
        raise ValueError(f"{name} holds numbers, but this tells classes apart: use regression, or another target")
    return _classification_experiment(
        found, chosen(config, LogisticConfig), options, {"sha256": found.extra.get("digest", "")}
    )


def _classification_experiment(
    found: Dataset, arguments: dict[str, Any], options: Options, notes: Mapping[str, Any]
) -> Experiment:
    arguments = {**arguments, "seed": options.seed}
    system, count = LogisticRegression(**arguments), len(found.classes)
    train, test = _flat_inputs(found.train), _flat_inputs(found.test)
    grey, flat = found.test.x.ndim == 3, test.x.shape[1] == 2

    def measure(system: LogisticRegression, examples: Examples) -> dict[str, float]:
        p = system.probability(examples.x)
        right = p.gather(1, examples.y[:, None]).clamp(min=torch.finfo(p.dtype).tiny)
        return {"accuracy": float(accuracy(p, examples.y)), "loss": -float(right.log().mean())}

    def picture(system: LogisticRegression) -> Figure:
        if flat:
            return decision_map(system.probability, test, found.classes)
        if grey:
            shown, predicted = found.test, system.predict(test.x.double())
            wrong = (predicted != shown.y).nonzero()[:5, 0]
            rows = torch.cat([torch.arange(min(10, len(shown))), wrong])
            return labelled_pictures(shown.x[rows], predicted[rows], shown.y[rows], found.classes)
        return _logistic_curve(system, test, found.classes)

    def predict(system: LogisticRegression, examples: Examples) -> dict[str, Tensor]:
        p = system.probability(_flat_inputs(examples).x.double())
        return likeliest_class(p)

    drawn = flat or grey or count == 2
    return Experiment(
        system, arguments, train, test, options, learner=AllAtOnce(system, measure, count), metric="accuracy",
        largest=True, classes=found.classes, picture=picture if drawn else None, predict=predict,
        preparation=found.extra.get("preparation"),
        notes={"baselines": baselines(found) | {"nearest class mean": nearest_mean(train, test)}, **notes},
    )  # fmt: skip


def _logistic_curve(system: LogisticRegression, test: Examples, classes: tuple[str, ...]) -> Figure:
    """The sigmoid over the logits, and the test examples of both classes at theirs."""
    logits = system.decision_function(test.x.double())
    across = torch.linspace(float(logits.min()), float(logits.max()), 200)
    marks: list[Any] = [Line(across.tolist(), across.sigmoid().tolist(), f"probability of {classes[1]}")]
    for label, name in enumerate(classes):
        here = logits[test.y == label].tolist()
        marks.append(Points(here, [float(label)] * len(here), name))
    return Figure("The test examples at their logits", "logit", "probability", marks)


def nearest_mean(train: Examples, test: Examples) -> float:
    """The accuracy of the class whose mean is nearest, of those that occur: what weights must beat."""
    known = train.y.unique()
    means = torch.stack([train.x[train.y == k].mean(0) for k in known])  # (classes that occur, features)
    return float((known[torch.cdist(test.x, means).argmin(1)] == test.y).double().mean())


class AllAtOnce:
    """Fits a system to all examples that it has been shown; finished when an epoch has shown them all."""

    def __init__(self, system: Any, measure: Any, classes: int | None = None) -> None:
        self.system, self.measure = system, measure
        self.more = {} if classes is None else {"classes": classes}
        self.x = self.y = torch.zeros(0)

    def step(self, batch: Examples, progress: float) -> dict[str, float]:
        x, y = batch.x.double(), batch.y if self.more else batch.y.double()
        self.x, self.y = (x, y) if len(self.x) == 0 else (torch.cat([self.x, x]), torch.cat([self.y, y]))
        self.system.fit(self.x, self.y, **self.more)
        return {"loss": self.measure(self.system, Examples(x=self.x, y=self.y))["loss"]}

    def evaluate(self, examples: Examples) -> dict[str, float]:
        y = examples.y if self.more else examples.y.double()
        return self.measure(self.system, Examples(x=examples.x.double(), y=y))

    def state(self) -> dict[str, Tensor]:
        return {"x": self.x, "y": self.y}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.x, self.y = state["x"], state["y"]


def _flat_inputs(examples: Examples) -> Examples:
    return Examples(**{name: values.flatten(1) if name == "x" else values for name, values in examples.columns.items()})
