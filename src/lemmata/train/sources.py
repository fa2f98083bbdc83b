"""Where batches come from: examples in memory, a map-style data set, or a stream; and what each can promise."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from lemmata.data.columns import as_examples, collated, in_memory, is_columns, is_map_style, stream_batches
from lemmata.data.examples import Examples
from lemmata.train.options import Options
from lemmata.train.processes import World
from lemmata.train.randomness import batch_indices, random_state, restore_random_state

__all__ = []  # for the loop

HELD = 2**31  # bytes of examples that may lie on the device all the time; of more, each batch travels alone


class Taken(NamedTuple):
    """One batch on its device, and its place in the epoch."""

    batch: Examples
    weight: float  # of this process's part in the whole batch
    last: bool


@dataclass(frozen=True)
class Place:
    """Where batches are needed, and in which real numbers; None leaves these as they come."""

    device: torch.device
    dtype: torch.dtype | None = None

    def bring(self, examples: Examples) -> Examples:
        return examples.to(self.device) if self.dtype is None else examples.to(self.device, self.dtype)


class Indexed:
    """Examples that can be had by their numbers: batch t of an epoch is a function of (seed, epoch, t) alone."""

    once = False

    def __init__(self, examples: "Examples | Any", options: Options, place: Place, world: World):
        self.examples, self.options, self.place, self.world = examples, options, place, world
        self.batches: int | None = -(-len(examples) // options.batch_size)
        self.whole = isinstance(examples, Examples)  # else its items are asked for one by one
        self.held: bool | None = None  # whether all of it lies on the device, once that is decided

    def take(self, epoch: int, position: int) -> Taken:
        """The batch of a place, or this process's part of it."""
        if self.held is None:
            self._settle_examples()
        options, weight = self.options, 1.0
        indices = batch_indices(options.seed, epoch, position, options.batch_size, len(self.examples))
        if self.world.size > 1:
            indices, weight = self.world.share(indices)
        return Taken(self._take_rows(indices), weight, position + 1 == self.batches)

    def _settle_examples(self) -> None:
        self.held = self.whole and sum(column.nbytes for column in self.examples) < HELD
        if self.held:
            self.examples = self.place.bring(self.examples)

    def _take_rows(self, indices: Tensor) -> Examples:
        if self.held:
            return self.examples[indices.to(self.place.device)]
        return self.place.bring(
            self.examples[indices] if self.whole else _collect_items(self.examples, indices.tolist())
        )

    def everything(self) -> Iterator[Examples]:
        """All examples in order, in parts; those in memory as one, for whoever evaluates parts them himself."""
        if self.whole:
            yield self.examples if self.place.dtype is None else self.examples.to(self.place.dtype)
            return
        for first in range(0, len(self.examples), self.options.batch_size):
            yield self._take_rows(torch.arange(first, min(first + self.options.batch_size, len(self.examples))))

    def shapes(self) -> dict[str, Any]:
        """Of one example: the size and the kind of numbers of each column."""
        first = self.examples[:1] if self.whole else _collect_items(self.examples, [0])
        return {name: [list(values.shape[1:]), str(values.dtype)[6:]] for name, values in first.columns.items()}

    def check(self, step: int, epoch: int, position: int) -> None:
        """Refuse the place of a checkpoint that was made with more or fewer examples."""
        if epoch * (self.batches or 0) + position != step:
            raise ValueError(f"step {step} was batch {position} of epoch {epoch}, which is no place in these data")

    def state(self) -> None:
        """Nothing: a place is enough."""

    def restore(self, state: None, position: int) -> str:
        """Nothing to do, nothing to warn of."""
        return ""


class Stream:
    """Batches in an order of their own: a DataLoader, an IterableDataset, or anything that can be gone through again.

    An epoch is one pass. A stream is resumed by going through the batches of the epoch that were seen; the generators
    stand as they stood at its beginning while that happens, so that a DataLoader shuffles as it did.
    """

    def __init__(self, given: Any, name: str, options: Options, place: Place, world: World):
        if world.size > 1:
            raise ValueError(f"{name} must be tensors or a map-style Dataset to be shared by processes: use --procs 1")
        self.given, self.name, self.options, self.place = given, name, options, place
        self.once = isinstance(given, Iterator)
        self.batches = _stream_length(given, options)
        self.generator = getattr(given, "generator", None)  # a DataLoader's own, if it was given one
        self.iterator: Iterator[Examples] | None = None
        self.ahead: Examples | None = None
        self.begun: dict[str, Any] | None = None

    def take(self, epoch: int, position: int) -> Taken:
        """The next batch; it is the last of its epoch if none can be had after it."""
        if self.iterator is None:
            self._begin_stream()
        batch, self.ahead = self.ahead, next(self.iterator, None)  # type: ignore[arg-type]
        if batch is None:
            again = ": it can be gone through only once, so use epochs=1" if epoch else ""
            raise ValueError(f"{self.name} gave no batch in epoch {epoch + 1}{again}")
        last = self.ahead is None
        if last:
            self.iterator = self.begun = None
        return Taken(batch, 1.0, last)

    def everything(self) -> Iterator[Examples]:
        """One pass."""
        for batch in stream_batches(self.given, self.options.batch_size):
            examples = as_examples(batch, f"a batch of {self.name}", self.place.dtype or torch.float32)
            if len(examples) == 0:
                raise ValueError(f"a batch of {self.name} must hold at least one example")
            yield self.place.bring(examples)

    def _begin_stream(self) -> None:
        self.begun = {"random": random_state(), "generator": self._own_generator_state()}
        self.iterator = self.everything()
        self.ahead = next(self.iterator, None)

    def _own_generator_state(self) -> Tensor | None:
        return None if self.generator is None else self.generator.get_state()

    def shapes(self) -> dict[str, Any]:
        """Not known before it is gone through."""
        return {}

    def check(self, step: int, epoch: int, position: int) -> None:
        """Any place may be one of a stream."""

    def state(self) -> dict[str, Any]:
        """How the generators stood when the epoch began; between two epochs, how its own stands."""
        return self.begun or {"random": None, "generator": self._own_generator_state()}

    def restore(self, state: Mapping[str, Any], position: int) -> str:
        """Go through the batches of an epoch that were seen; returns the sentence that says what this is worth."""
        if self.generator is not None and state["generator"] is not None:
            self.generator.set_state(state["generator"])
        if position:
            restore_random_state(state["random"])
            self._begin_stream()
        for seen in range(position):
            if self.ahead is None:
                raise ValueError(f"{self.name} gave {seen} batches, but {position} were seen: it has changed")
            self.ahead = next(self.iterator, None)  # type: ignore[arg-type]
        skipped = f"{position} of this epoch were skipped"
        return f"{self.name} is a stream: resuming is exact only if it gives the same batches again ({skipped})"


Source = Indexed | Stream


def as_source(given: Any, name: str, options: Options, place: Place, world: World) -> Source:
    """Whatever people have examples in, as a source of batches."""
    given = in_memory(given)
    if is_columns(given, name):
        return Indexed(
            _check_examples(as_examples(given, name, place.dtype or torch.float32), name), options, place, world
        )
    if is_map_style(given):
        if len(given) == 0:
            raise ValueError(f"{name} must hold at least one example")
        return Indexed(given, options, place, world)
    source = Stream(given, name, options, place, world)
    if source.once and (options.epochs > 1 or name != "data"):
        cure = ", or epochs=1" if name == "data" else ""
        raise ValueError(f"{name} is a generator, which can be gone through once: give a list of batches{cure}")
    return source


def _check_examples(examples: Examples, name: str) -> Examples:
    if len(examples) == 0:
        raise ValueError(f"{name} must hold at least one example")
    if wrong := not_finite(examples):
        raise ValueError(f"{name}.{wrong}: remove or impute them")
    return examples


def not_finite(examples: Examples) -> str:
    """Which column holds values that are not finite, in words, if one does."""
    for column, values in examples.columns.items():
        if values.is_floating_point() and not bool(values.isfinite().all()):
            return f"{column} must be finite, found {int((~values.isfinite()).sum())} values that are not"
    return ""


def _collect_items(dataset: Any, indices: list[int]) -> Examples:
    return as_examples(collated(dataset, indices), "an item of data")


def _stream_length(given: Any, options: Options) -> int | None:
    """How many batches an epoch has, if the stream knows."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, that the length of an IterableDataset is somebody's word
            length = len(given)
    except (TypeError, NotImplementedError):
        return None
    return -(-length // options.batch_size) if isinstance(given, IterableDataset) else length
