r"""The examples an audit looks at, from whatever people keep them in."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, SequentialSampler

from lemmata.data.columns import (
    as_examples,
    collated,
    in_memory,
    inputs_and_target,
    is_columns,
    is_map_style,
    stream_batches,
)
from lemmata.data.examples import moved

__all__ = []  # for probes

MOST = 20_000  # examples that are held
BYTES = 2**29  # of inputs that are held
AT_ONCE = 256  # examples of a stream that are put together


@dataclass(frozen=True)
class Sample:
    """Inputs by name and targets, one row an example. `whole` says that these are all examples there are, not the first
    ones of more.
    """

    inputs: Mapping[str, Tensor]
    targets: Tensor | None
    whole: bool = True

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))

    def __getitem__(self, which: Any) -> "Sample":
        inputs = {name: values[which] for name, values in self.inputs.items()}
        return Sample(inputs, None if self.targets is None else self.targets[which], self.whole)

    @property
    def x(self) -> Tensor:
        """The first of the inputs; most models have no other."""
        return next(iter(self.inputs.values()))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs in their order."""
        return tuple(self.inputs.values())

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "Sample":
        """On a device; real numbers of inputs in the model's dtype."""
        inputs = {name: moved(values, device, dtype or values.dtype) for name, values in self.inputs.items()}
        targets = None if self.targets is None else moved(self.targets, device)
        return Sample(inputs, targets, self.whole)


def as_sample(given: Any, name: str = "data", seconds: float = float("inf")) -> Sample:
    """The examples of what is given: all, or as many as MOST, BYTES and the seconds allow, drawn by a fixed seed where
    examples have numbers, since many data sets are sorted by class.
    """
    given = in_memory(given)
    try:
        by_number = not is_columns(given, name) and is_map_style(given)
        sample, whole = _read_indexed(given, name, seconds) if by_number else _read_batches(given, name, seconds)
    except (TypeError, ValueError):
        raise
    except Exception as error:  # what a data set of the user's own raises
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValueError(f"{name} cannot be read: {told}") from error
    if len(sample) > MOST:
        sample, whole = sample[_drawn_order(len(sample))[:MOST].sort().values], False
    return _check_sample(sample, name, whole)


def _read_batches(given: Any, name: str, seconds: float) -> tuple[Sample, bool]:
    """Batch after batch, until there are enough; and whether that was all."""
    started, parts, bytes_, number = time.perf_counter(), [], 0, 0
    batches, whole = iter(_iterate_batches(given, name)), True
    for batch in batches:
        part = _one_batch(batch, name)
        if len(part) == 0:
            continue
        parts.append(part)
        number, bytes_ = number + len(part), bytes_ + sum(values.nbytes for values in part.inputs.values())
        if number >= MOST or bytes_ >= BYTES or time.perf_counter() - started > seconds:
            whole = next(batches, None) is None
            break
    if not parts:
        raise ValueError(f"{name} must hold at least one example, got none")
    joined = _join_parts(parts, name)
    return joined, whole and len(joined) == number


def _read_indexed(given: Any, name: str, seconds: float) -> tuple[Sample, bool]:
    """Examples by their numbers, read in a drawn order and then put back into their own."""
    started, order, parts, first, size = time.perf_counter(), _drawn_order(len(given)), [], 0, 8
    while first < min(len(given), MOST):
        parts.append(_one_batch(collated(given, order[first : first + size].tolist()), name))
        first, size = first + size, min(2 * size, AT_ONCE)  # few at first: one example alone may take long
        bytes_ = sum(values.nbytes for part in parts for values in part.inputs.values())
        if bytes_ >= BYTES or time.perf_counter() - started > seconds:
            break
    if not parts:
        raise ValueError(f"{name} must hold at least one example, got none")
    joined = _join_parts(parts, name)
    if len(joined) < min(first, len(given)):  # parts of another shape were left out
        return joined, False
    return joined[order[:first].argsort()], first >= len(given)


def _drawn_order(number: int) -> Tensor:
    return torch.randperm(number, generator=torch.Generator().manual_seed(0))


def _join_parts(parts: list[Sample], name: str) -> Sample:
    first = parts[0]
    try:
        inputs = {key: torch.cat([part.inputs[key] for part in parts]) for key in first.inputs}
        targets = None if first.targets is None else torch.cat([part.targets for part in parts])  # type: ignore[misc]
    except (RuntimeError, KeyError, TypeError):
        # Batches of texts are padded each to its own length: the largest of them alone are looked at.
        shapes = [tuple(values.shape[1:] for values in part.tensors) for part in parts]
        usual = max(set(shapes), key=shapes.count)
        chosen = [part for part, shape in zip(parts, shapes, strict=True) if shape == usual]
        if len(chosen) == len(parts):
            raise ValueError(f"{name} must hold batches of one kind: their columns do not fit together") from None
        return _join_parts(chosen, name)
    return Sample(inputs, targets, first.whole)


def _check_sample(sample: Sample, name: str, whole: bool) -> Sample:
    for key, values in [*sample.inputs.items(), ("y", sample.targets)]:
        if values is not None and values.is_floating_point() and not bool(values.isfinite().all()):
            bad = int((~values.isfinite()).sum())
            raise ValueError(f"{name}.{key} must be finite, found {bad} values that are not: remove or impute them")
    return Sample(sample.inputs, sample.targets, whole)


def _iterate_batches(given: Any, name: str) -> Iterator[Any]:
    """One batch after another; columns in memory are one batch."""
    if is_columns(given, name):
        return iter([given])
    return _mix_loader(given) if isinstance(given, DataLoader) else stream_batches(given, AT_ONCE)


def _mix_loader(loader: DataLoader[Any]) -> Iterator[Any]:
    """The loader's batches; where it goes through more than is held from the first to the last, in a drawn order."""
    if not isinstance(loader.sampler, SequentialSampler) or loader.batch_size is None or len(loader.dataset) <= MOST:  # type: ignore[arg-type]
        generator = loader.generator
        kept = generator.get_state() if generator is not None else None
        try:
            yield from loader
        finally:
            if generator is not None and kept is not None:
                generator.set_state(kept)
        return
    yield from DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        shuffle=True,
        generator=torch.Generator().manual_seed(0),
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
    )


def _one_batch(batch: Any, name: str) -> Sample:
    """Inputs and targets of one batch."""
    return Sample(*inputs_and_target(as_examples(batch, name), name))
