"""What can be trained in this chapter, second part: digits read pixel by pixel, and tasks of nothing but memory.

What the defaults reach (seed 0): the adding problem over 100 steps is solved by mingru and gru (error 0.00002)
and nearly by lru (0.003, of 0.167 for always saying 1); an echo after 100 sounds by lru (100 %), while lstm still
guesses; after 10 sounds elman has it too, after 20 it does not within 4 passes. Lags of 1,000 need more passes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from lemmata import validate
from lemmata.convolution.recipes_memory import answer
from lemmata.data.examples import Dataset, Examples
from lemmata.data.own_files import FileChoices, load_file
from lemmata.data.registry import load
from lemmata.marks import recipe
from lemmata.recurrent.sequence_reader import SequenceReader
from lemmata.recurrent.task_gradients import gradient_reach
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Output, output_of_x
from lemmata.train.options import Options
from lemmata.train.own_data import supervised

__all__ = ["MemoryConfig", "PixelConfig", "ReaderConfig", "ReaderFileConfig", "read_digits", "read_file", "recall"]


TRAINING: dict[str, Any] = {"batch_size": 32, "lr": 4e-3, "schedule": "cosine", "warmup": 50, "clip": 1.0}
DIGITS = {"logistic regression": 0.958, "logistic regression, last row alone": 0.485}
HOW = "scikit-learn 1.9.1 on the same training and test examples; all 64 pixels, or the 8 pixels that are read last"
ADDING = {"always 1": 1 / 6, "the second number plus 1/2": 1 / 12}


@dataclass(frozen=True)
class ReaderConfig:
    """What can be chosen of a network that reads a sequence and then answers."""

    width: int = 32
    """Values of each step outside of the recurrent layer."""
    hidden: int = 64
    """Units of each recurrent layer."""
    depth: int = 1
    """Recurrent layers, one above another, with residuals."""
    memory: int | None = None
    """Steps that the units of mingru, minlstm and lru remember at most, initially; by default 4 times the sequence."""

    def __post_init__(self) -> None:
        for name in ("width", "hidden", "depth"):
            validate.count(name, getattr(self, name))
        if self.memory is not None:
            validate.count("memory", self.memory, least=2)


# --- Digits, read like a text ---


@dataclass(frozen=True)
class PixelConfig(ReaderConfig):
    """What can be chosen of a network that reads pictures pixel by pixel, or row by row."""

    depth: int = 2
    """Layers; with one, a gate that sees only its input would know a pixel but not where it is."""
    read: Literal["pixels", "rows"] = "pixels"
    """One pixel a step, or one row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("read", self.read, ("pixels", "rows"))


PIXELS, READING = PixelConfig(), Options(epochs=60, evaluate=6, weight_decay=0.01, **TRAINING)


@recipe("lru", "mingru", "minlstm", "lstm", "gru", "elman", data="digits", metric="accuracy")
def read_digits(
    data: str = "digits", config: PixelConfig = PIXELS, options: Options = READING, system: str = "lru"
) -> Experiment:
    """Handwritten digits, one pixel after another."""
    found = load(data)
    train, test = (_as_sequences(part, config.read) for part in (found.train, found.test))
    notes = {"baselines": DIGITS, "how": HOW}
    return _answering_experiment(
        system,
        replace(found, parts={"train": train, "test": test}),
        config,
        options,
        notes,
        lambda system, batch: system(_as_sequences(batch, config.read).x),
    )


def _as_sequences(pictures: Examples, read: str) -> Examples:
    pixels = pictures.x.flatten(1)
    side = math.isqrt(pixels.shape[1])
    x = pixels[..., None] if read == "pixels" else pixels.reshape(-1, side, side)
    return Examples(**{**pictures.columns, "x": x})


# --- Sequences of one's own ---


@dataclass(frozen=True)
class ReaderFileConfig(ReaderConfig, FileChoices):
    """What can be chosen of a network that reads sequences, and of the data of one's own that it learns from."""


OWN = ReaderFileConfig()


@recipe("lru", "mingru", "minlstm", "lstm", "gru", "elman", data="file", metric="accuracy")
def read_file(
    data: str | Dataset,
    config: ReaderFileConfig = OWN,
    options: Options = READING,
    system: str = "lru",
) -> Experiment:
    """A table whose columns follow one another as a time series does, or pictures, one pixel after another."""
    found = load_file(data, config, options.seed)
    length = found.train.x[0].numel()
    arguments = {
        "inputs": 1, "outputs": len(found.classes) or 1, "cell": system, "vocab_size": None,
        "memory": config.memory or max(4 * length, 2),
        **{name: getattr(config, name) for name in ("width", "hidden", "depth")},
    }  # fmt: skip
    return supervised(SequenceReader, arguments, found, options, view=lambda x: x.flatten(1)[..., None])


# --- Nothing but memory ---


@dataclass(frozen=True)
class MemoryConfig(ReaderConfig):
    """What can be chosen of a network that is asked for something long ago, and how long ago that is."""

    lag: int = 100
    """Length of the sequence: 10 is easy for all, 1,000 for few."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("lag", self.lag, least=2, most=10_000)


MEMORY, RECALL = MemoryConfig(), Options(epochs=12, evaluate=2, **TRAINING)


@recipe("lru", "mingru", "minlstm", "lstm", "gru", "elman", data="adding", metric="error")
@recipe("lru", "mingru", "minlstm", "lstm", "gru", "elman", data="echo", metric="accuracy")
def recall(
    data: str = "adding", config: MemoryConfig = MEMORY, options: Options = RECALL, system: str = "lru"
) -> Experiment:
    """Two marked numbers to be added up, or a letter to be said again, long after."""
    found = load(data, **{"length" if data == "adding" else "lag": config.lag})
    notes = {"baselines": ADDING if data == "adding" else {"guessing": 1 / len(found.classes)}}

    return _answering_experiment(system, found, config, options, notes)


# --- What all of them share ---


def _answering_experiment(
    cell: str,
    data: Dataset,
    config: ReaderConfig,
    options: Options,
    notes: Mapping[str, Any],
    output: Output = output_of_x,
) -> Experiment:
    x, y = data.train.x, data.train.y
    vocab_size = None if x.is_floating_point() else int(x.max()) + 1
    arguments = {
        "inputs": 1 if vocab_size else x.shape[2], "outputs": len(data.classes) or 1, "cell": cell,
        "vocab_size": vocab_size,
        "memory": config.memory or 4 * x.shape[1],
        **{name: getattr(config, name) for name in ("width", "hidden", "depth")},
    }  # fmt: skip
    return answer(output, y.is_floating_point()).experiment(
        SequenceReader, arguments, data.train, data.test, options, classes=data.classes, notes=notes,
        picture=lambda system: gradient_reach(system, data.test[:8]),
    )  # fmt: skip
