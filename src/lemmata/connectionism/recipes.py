"""What can be trained in this chapter: perceptrons by sweeps of mistakes, a Hopfield network by storing prototypes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from lemmata import validate
from lemmata.connectionism.hopfield import RULES, HopfieldNetwork, Recall
from lemmata.connectionism.one_versus_rest import OneVersusRest
from lemmata.data.examples import Dataset, Examples
from lemmata.data.own_files import FileChoices, load_file
from lemmata.data.registry import load
from lemmata.figure import Figure, Image
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.own_data import baselines
from lemmata.train.pictures import decision_map, labelled_pictures

__all__ = [
    "HopfieldConfig",
    "PerceptronConfig",
    "PerceptronFileConfig",
    "remember_prototypes",
    "separate_classes",
    "separate_file",
]


# --- Perceptrons ---

HOW = "scikit-learn 1.9.1 on the same examples, 100 sweeps, mean over seeds 0 to 4"
BASELINES = {"digits": 0.949, "moons": 0.832, "separable": 0.9998}


@dataclass(frozen=True)
class PerceptronConfig:
    """What can be chosen of a perceptron."""

    bias: bool = True
    """Whether the boundary may miss the origin."""


@recipe("perceptron", data="digits moons separable", metric="accuracy")
def separate_classes(
    data: str = "digits",
    config: PerceptronConfig = PerceptronConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=100, batch_size=4096, evaluate=5, device="cpu"),  # noqa: B008
) -> Experiment:
    """One perceptron for each class against the rest; ends early when a whole sweep makes no mistake."""
    notes = {"baselines": {"scikit-learn's Perceptron": BASELINES[data]}, "how": HOW}
    return _separation_experiment(load(data), config, options, notes)


@dataclass(frozen=True)
class PerceptronFileConfig(PerceptronConfig, FileChoices):
    """What can be chosen of a perceptron, and of the data of one's own that it learns from."""


@recipe("perceptron", data="file", metric="accuracy")
def separate_file(
    data: str | Dataset,
    config: PerceptronFileConfig = PerceptronFileConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=100, batch_size=4096, evaluate=5, device="cpu"),  # noqa: B008
) -> Experiment:
    """Classes of one's own: a table, arrays or a folder of images."""
    found = load_file(data, config, options.seed)
    if not found.classes:
        name = found.extra["preparation"].target.name
        raise ValueError(f"{name} holds numbers, but a perceptron tells classes apart: use mlp, or another target")
    notes = {"baselines": baselines(found), "sha256": found.extra.get("digest", "")}
    return replace(_separation_experiment(found, config, options, notes), preparation=found.extra["preparation"])


def _separation_experiment(
    found: Dataset, config: PerceptronConfig, options: Options, notes: Mapping[str, Any]
) -> Experiment:
    train, test = _flatten_inputs(found.train), _flatten_inputs(found.test)
    arguments = {"features": train.x.shape[1], "classes": len(found.classes), "bias": config.bias}
    system = OneVersusRest(**arguments)

    grey = found.test.x.ndim == 3

    def picture(system: OneVersusRest) -> Figure:
        if arguments["features"] == 2:
            return decision_map(lambda x: _class_votes(system, x), test, found.classes, "The two sides of the line")
        shown = found.test[:15]
        return labelled_pictures(
            shown.x, system.predict(_flatten_inputs(shown).x), shown.y, found.classes, "Test pictures"
        )

    def predict(system: OneVersusRest, examples: Examples) -> dict[str, Tensor]:
        activation = system.decision_function(_flatten_inputs(examples).x)
        return {"class": activation.argmax(1), "activation": activation.amax(1)}

    return Experiment(
        system, arguments, train, test, options, learner=SweepLearner(system, len(train)), metric="accuracy",
        largest=True, classes=found.classes, picture=picture if grey or arguments["features"] == 2 else None,
        predict=predict, notes=notes,
    )  # fmt: skip


class SweepLearner:
    """Shows each batch once to every perceptron; finished when a sweep over all points makes no mistake."""

    def __init__(self, system: OneVersusRest, points: int) -> None:
        self.system, self.points = system, points
        self.shown = self.mistakes = 0  # in this sweep

    def step(self, batch: Examples, progress: float) -> dict[str, float]:
        updates = self.system.sweep(batch.x, batch.y)
        self.shown, self.mistakes = self.shown + len(batch), self.mistakes + updates
        whole = self.shown >= self.points
        clean = whole and self.mistakes == 0
        if whole:
            self.shown = self.mistakes = 0
        wrong = updates / (len(batch) * len(self.system.bias))  # as a fraction of all answers
        return {"loss": wrong, "mistakes": updates, "finished": clean}

    def evaluate(self, examples: Examples) -> dict[str, float]:
        right = self.system.predict(examples.x) == examples.y
        return {"accuracy": right.double().mean().item()}

    def state(self) -> dict[str, int]:
        return {"shown": self.shown, "mistakes": self.mistakes}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.shown, self.mistakes = state["shown"], state["mistakes"]


def _flatten_inputs(examples: Examples) -> Examples:
    return Examples(**{name: values.flatten(1) if name == "x" else values for name, values in examples.columns.items()})


def _class_votes(system: OneVersusRest, x: Tensor) -> Tensor:
    """1 for the class that wins, 0 for the others: a perceptron knows no probabilities."""
    return torch.nn.functional.one_hot(system.predict(x), system.classes).float()


# --- Hopfield networks ---


@dataclass(frozen=True)
class HopfieldConfig:
    """What can be chosen of a Hopfield network that remembers a picture for each class."""

    rule: Literal["pseudo-inverse", "hebb"] = "pseudo-inverse"
    """How pictures become couplings; Hebb's rule confuses pictures that are as alike as digits."""
    noise: float = 0.1
    """Fraction of pixels turned over before recall is tested."""

    def __post_init__(self) -> None:
        validate.one_of("rule", self.rule, RULES)
        validate.fraction("noise", self.noise, most=0.5)


@recipe("hopfield", data="digits", metric="recalled")
def remember_prototypes(
    data: str = "digits",
    config: HopfieldConfig = HopfieldConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=1, batch_size=256),  # noqa: B008
) -> Experiment:
    """Store one picture for each class, the majority of its examples at every pixel, and recall from noise."""
    found = load(data)
    shape = tuple(found.train.x.shape[1:])
    arguments = {"units": shape[0] * shape[1]}
    system = HopfieldNetwork(**arguments)

    def picture(system: HopfieldNetwork) -> Figure:
        noisy = corrupted(system.patterns, config.noise)
        title = f"Digits with {config.noise:.0%} of their pixels turned over, and what is recalled"
        return recalls(noisy, system.recall(noisy), shape, title, found.classes)

    def predict(system: HopfieldNetwork, examples: Examples) -> dict[str, Tensor]:
        recall = system.recall(_ink_signs(examples.x))
        return {"class": _recalled_class(recall), "overlap": recall.overlap}

    def sample(system: HopfieldNetwork, count: int, generator: torch.Generator) -> Figure:
        noise = torch.randint(0, 2, (count, system.units), generator=generator) * 2.0 - 1
        return recalls(noise, system.recall(noise), shape, "What is recalled from pure noise", found.classes)

    return Experiment(
        system, arguments, found.train, found.test, options,
        learner=PrototypeLearner(system, len(found.classes), config), metric="recalled", largest=True,
        classes=found.classes, picture=picture, predict=predict, sample=sample,
    )  # fmt: skip


class PrototypeLearner:
    """Counts, for each class, how often each pixel is dark; the majority is stored after every batch."""

    def __init__(self, system: HopfieldNetwork, classes: int, config: HopfieldConfig) -> None:
        self.system, self.config = system, config
        self.votes = torch.zeros(classes, system.units)

    def step(self, batch: Examples, progress: float) -> dict[str, Tensor | float]:
        self.votes = self.votes.to(batch.x.device).index_add(0, batch.y, _ink_signs(batch.x))
        prototypes = torch.where(self.votes > 0, 1.0, -1.0)
        self.system.store(prototypes, self.config.rule)
        updated = torch.where(self.system.field(prototypes) >= 0, 1.0, -1.0)
        return {"loss": (updated != prototypes).float().mean()}  # fraction of pixels that would not stay as they are

    def evaluate(self, examples: Examples) -> dict[str, float]:
        names = torch.arange(len(self.votes), device=self.system.patterns.device)
        recall = self.system.recall(corrupted(self.system.patterns, self.config.noise, times=20))
        exact = recall.exact & (recall.memory == names.repeat(20))
        right = _recalled_class(self.system.recall(_ink_signs(examples.x).to(names.device))) == examples.y.to(
            names.device
        )
        return {"recalled": exact.double().mean().item(), "accuracy": right.double().mean().item()}

    def state(self) -> dict[str, Tensor]:
        return {"votes": self.votes}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.votes = state["votes"]


def corrupted(patterns: Tensor, noise: float, times: int = 1, seed: int = 0) -> Tensor:
    """Each pattern `times` times, with a fraction of its signs turned over; the same ones for the same seed."""
    many = patterns.repeat(times, 1)
    turned = torch.rand(many.shape, generator=torch.Generator().manual_seed(seed)) < noise
    return torch.where(turned.to(many.device), -many, many)


def recalls(before: Tensor, recall: Recall, shape: tuple[int, ...], title: str, classes: tuple[str, ...]) -> Figure:
    """States before and after recall: rows of five, each above what it became."""
    names = [_recall_name(recall, k, classes) for k in range(len(before))]
    after, marks = recall.states, []
    for first in range(0, len(before), 5):
        row = slice(first, first + 5)
        marks += [Image(_grey_image(state, shape), "given") for state in before[row]]
        marks += [Image(_grey_image(s, shape), name) for s, name in zip(after[row], names[row], strict=True)]
    return Figure(title, marks=marks)


def _recall_name(recall: Recall, k: int, classes: tuple[str, ...]) -> str:
    name = classes[int(recall.memory[k])]
    if recall.exact[k]:
        return name
    return f"{name}, mirrored" if recall.mirror[k] else "spurious"


def _recalled_class(recall: Recall) -> Tensor:
    """The memory that was recalled is the class; a mirror image is none (-1)."""
    return torch.where(recall.overlap > 0, recall.memory, -1)


def _ink_signs(x: Tensor) -> Tensor:
    """Ink above the middle grey is +1."""
    return torch.where(x.flatten(1) > 0.5, 1.0, -1.0)


def _grey_image(state: Tensor, shape: tuple[int, ...]) -> list[list[float]]:
    return ((state + 1) / 2).reshape(shape).tolist()
