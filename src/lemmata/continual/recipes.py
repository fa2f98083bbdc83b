"""What can be trained in this chapter: networks that learn the same digits, or clothing, in one order after another.

The score is the mean accuracy on all tasks in the end. Digits (seed 0): 74 % by springs, 92 % by rehearsal, 94 % by
generative replay, 89 % by gradient projection, 94 % by masks, for which the task is known; `LOST` has what plain
training leaves of it, and what is reached where all tasks are there at once.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from lemmata import validate
from lemmata.continual.ewc import EWC, EWCConfig
from lemmata.continual.generative_replay import GenerativeReplay
from lemmata.continual.gradient_projection import GradientProjection, GradientProjectionConfig
from lemmata.continual.learning import ContinualLearner
from lemmata.continual.rehearsal import Rehearsal, RehearsalConfig
from lemmata.continual.strategy import Strategy
from lemmata.continual.task_masks import MaskedMLP, TaskMask, TaskMasks
from lemmata.continual.task_stream import TaskStream, permuted_tasks
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.figure import Figure, Heat, Line
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, chosen, likeliest_class
from lemmata.train.options import Options

__all__ = [
    "EWCOnStream", "MasksOnStream", "ProjectionOnStream", "RehearsalOnStream", "ReplayOnStream", "learn_by_ewc",
    "learn_by_projection", "learn_by_rehearsal", "learn_by_replay", "learn_with_masks",
]  # fmt: skip

# Means of seeds 0 to 2: of `lemmata train ewc --strength 0 --data DATA`, and of the same network, options and number
# of updates on the examples of all three tasks together.
LOST = {
    "digits": {"plain sequential training": 0.574, "all tasks at once": 0.954},
    "fashion": {"plain sequential training": 0.647, "all tasks at once": 0.805},
}
HOW = "the same network and updates; plain training forgets, and all tasks at once forget nothing; seeds 0 to 2"


@dataclass(frozen=True)
class OnStream:
    """What can be chosen of a stream and of its network."""

    tasks: int = 3
    """Orders of the pixels, which are learnt one after the other; the epochs are those of all of them."""
    widths: tuple[int, ...] = (100, 100)
    """Units of each hidden layer."""

    def __post_init__(self) -> None:
        validate.count("tasks", self.tasks)
        for width in self.widths:
            validate.count("widths", width)


@dataclass(frozen=True)
class EWCOnStream(EWCConfig, OnStream):
    """What can be chosen of elastic weight consolidation on a stream."""

    def __post_init__(self) -> None:
        OnStream.__post_init__(self)
        EWCConfig.__post_init__(self)


@dataclass(frozen=True)
class RehearsalOnStream(RehearsalConfig, OnStream):
    """What can be chosen of rehearsal on a stream."""

    def __post_init__(self) -> None:
        OnStream.__post_init__(self)
        RehearsalConfig.__post_init__(self)


@dataclass(frozen=True)
class ReplayOnStream(OnStream):
    """What can be chosen of generative replay on a stream."""

    factors: int = 20
    """Directions of the probabilistic PCA that makes up old examples."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("factors", self.factors)


@dataclass(frozen=True)
class ProjectionOnStream(GradientProjectionConfig, OnStream):
    """What can be chosen of gradient projection on a stream."""

    def __post_init__(self) -> None:
        OnStream.__post_init__(self)
        GradientProjectionConfig.__post_init__(self)


@dataclass(frozen=True)
class MasksOnStream(OnStream):
    """What can be chosen of units of one's own for each task."""

    overlap: float = 0.0
    """Part of a task's units that were the one's before."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.fraction("overlap", self.overlap, most=1)


STREAM = Options(epochs=36, batch_size=64, lr=1e-3, evaluate=12)


@recipe("ewc", data="digits fashion", metric="accuracy")
def learn_by_ewc(
    data: str = "digits",
    config: EWCOnStream = EWCOnStream(strength=300.0),  # noqa: B008 - frozen
    options: Options = STREAM,
) -> Experiment:
    """Several orders of the pixels one after the other, with springs on the weights that earlier ones need."""
    stream = _stream_of(data, config)
    words = chosen(config, EWCConfig)
    return _continual_experiment(MLP, stream, lambda model: EWC(model, **words), data, config, options)


@recipe("rehearsal", data="digits fashion", metric="accuracy")
def learn_by_rehearsal(
    data: str = "digits",
    config: RehearsalOnStream = RehearsalOnStream(),  # noqa: B008
    options: Options = STREAM,
) -> Experiment:
    """Several orders of the pixels one after the other, beside a hundred examples of each that is over."""
    stream = _stream_of(data, config)
    words = chosen(config, RehearsalConfig)
    return _continual_experiment(MLP, stream, lambda model: Rehearsal(model, **words), data, config, options)


@recipe("generative_replay", data="digits fashion", metric="accuracy")
def learn_by_replay(
    data: str = "digits",
    config: ReplayOnStream = ReplayOnStream(),  # noqa: B008
    options: Options = STREAM,
) -> Experiment:
    """Several orders of the pixels one after the other, beside examples of old ones that a density makes up."""
    stream = _stream_of(data, config)

    def make() -> ProbabilisticPCA:
        return ProbabilisticPCA(stream[0].train.x.shape[1], config.factors)

    def strategy(model: nn.Module) -> Strategy:
        return GenerativeReplay(model, make, lambda density, examples: density.fit(examples.x))

    return _continual_experiment(MLP, stream, strategy, data, config, options)


@recipe("gradient_projection", data="digits fashion", metric="accuracy")
def learn_by_projection(
    data: str = "digits",
    config: ProjectionOnStream = ProjectionOnStream(),  # noqa: B008
    options: Options = STREAM,
) -> Experiment:
    """Several orders of the pixels one after the other, by steps that old activations do not notice."""
    stream = _stream_of(data, config)
    words = chosen(config, GradientProjectionConfig)
    return _continual_experiment(MLP, stream, lambda model: GradientProjection(model, **words), data, config, options)


@recipe("task_masks", data="digits fashion", metric="accuracy")
def learn_with_masks(
    data: str = "digits",
    config: MasksOnStream = MasksOnStream(widths=(300, 300)),  # noqa: B008
    options: Options = STREAM,
) -> Experiment:
    """Several orders of the pixels one after the other, each by units of its own; which order it is must be known."""
    stream = _stream_of(data, config, "task")
    own = {"tasks": config.tasks, "overlap": config.overlap}
    return _continual_experiment(MaskedMLP, stream, TaskMasks, data, config, options, **own)


def _stream_of(data: str, config: OnStream, scenario: str = "domain") -> TaskStream:
    return permuted_tasks(load(data), config.tasks, scenario)


def _continual_experiment(
    kind: type[nn.Module],
    stream: TaskStream,
    strategy: Callable[[Any], Strategy],
    data: str,
    config: OnStream,
    options: Options,
    **own: Any,
) -> Experiment:
    """The first order is that of the data themselves: it is what a run that was kept is asked about."""
    if options.epochs % config.tasks:
        raise ValueError(f"epochs must be a multiple of the {config.tasks} tasks, got {options.epochs}")
    if options.patience is not None:
        raise ValueError("patience must be left out: it knows of one task only")
    features = stream[0].train.x.shape[1]
    arguments = {"inputs": features, "outputs": stream.outputs, "widths": tuple(config.widths), **own}
    model = built(kind, arguments, options)
    learner = ContinualLearner(strategy(model), stream, replace(options, epochs=options.epochs // config.tasks))

    def picture(system: nn.Module) -> Figure:
        return _forgetting_curves(learner.accuracies)

    def files(system: nn.Module) -> Mapping[str, bytes]:
        return {"figure-accuracies.json": json.dumps(_accuracy_matrix(learner.accuracies).to_json()).encode()}

    return Experiment(
        model, arguments, learner.rows, stream[0].test, options, learner=learner, metric="accuracy", largest=True,
        classes=load(data).classes, output=_task_logits, predict=_predict_classes, picture=picture, files=files,
        notes={"baselines": LOST[data], "how": HOW},
    )  # fmt: skip


def _task_logits(model: nn.Module, batch: Examples) -> Tensor:
    """What it says to images whose pixels are in the first order."""
    for part in model.modules():
        if isinstance(part, TaskMask):
            part.task = 0
    return model(batch.x.flatten(1))


def _predict_classes(model: nn.Module, examples: Examples) -> dict[str, Tensor]:
    return likeliest_class(_task_logits(model, examples).softmax(1))


def _forgetting_curves(accuracies: Tensor) -> Figure:
    """The accuracy on each task at each moment: it leaps where the task is learnt, and falls where it is forgotten."""
    moments = [k for k in range(len(accuracies)) if bool(accuracies[k].isfinite().all())]
    marks = [Line(moments, accuracies[moments, task], f"task {task + 1}") for task in range(accuracies.shape[1])]
    return Figure("What becomes of each task", "tasks learnt", "accuracy", marks if len(moments) > 1 else [])


def _accuracy_matrix(accuracies: Tensor) -> Figure:
    """Rows are moments, columns are tasks: what stands below the diagonal is remembered."""
    rows = ["before", *(f"after task {k}" for k in range(1, len(accuracies)))]
    columns = [f"task {k}" for k in range(1, accuracies.shape[1] + 1)]
    mark = Heat(accuracies, label="accuracy", rows=rows, columns=columns)
    return Figure("Accuracy on each task", "judged on", "", [mark])
