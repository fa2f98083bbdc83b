r"""The examples an audit looks at, from whatever people keep them in."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler, default_collate

from lemmata.data.columns import as_tensor, is_array, kind
from lemmata.data.examples import Examples, moved

__all__ = []  # for probes

TARGETS = ("y", "label", "labels", "target", "targets")  # names of the column that is to be predicted
MOST = 20_000  # examples that are held
BYTES = 2**29  # of inputs that are held
KINDS = "tensors, arrays, a dict of them, a Dataset, a DataLoader or a list of batches"


@dataclass(frozen=True)
class Sample:
    """Inputs by name and targets, one row an example. `named` says that the model takes the inputs by these names;
    `whole`, that these are all examples there are, not the first ones of more.
    """

    inputs: Mapping[str, Tensor]
    targets: Tensor | None
    named: bool = False
    whole: bool = True

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))

    def __getitem__(self, which: Any) -> "Sample":
        inputs = {name: values[which] for name, values in self.inputs.items()}
        return Sample(inputs, None if self.targets is None else self.targets[which], self.named, self.whole)

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
        return Sample(inputs, targets, self.named, self.whole)


def as_sample(given: Any, name: str = "data", seconds: float = float("inf")) -> Sample:
    """The examples of what is given: all, or as many as MOST, BYTES and the seconds allow, drawn by a fixed seed where
    examples have numbers, since many data sets are sorted by class.
    """
    try:
        sample, whole = _indexed(given, name, seconds) if _is_indexed(given) else _read(given, name, seconds)
    except (TypeError, ValueError):
        raise
    except Exception as error:  # what a data set of the user's own raises
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ValueError(f"{name} cannot be read: {told}") from error
    if len(sample) > MOST:
        sample, whole = sample[_drawn(len(sample))[:MOST].sort().values], False
    return _checked(sample, name, whole)


def _read(given: Any, name: str, seconds: float) -> tuple[Sample, bool]:
    """Batch after batch, until there are enough; and whether that was all."""
    started, parts, bytes_, number = time.perf_counter(), [], 0, 0
    batches, whole = iter(_batches(given, name)), True
    for batch in batches:
        part = _one(batch, name)
        if len(part) == 0:
            continue
        parts.append(part)
        number, bytes_ = number + len(part), bytes_ + sum(values.nbytes for values in part.inputs.values())
        if number >= MOST or bytes_ >= BYTES or time.perf_counter() - started > seconds:
            whole = next(batches, None) is None
            break
    if not parts:
        raise ValueError(f"{name} must hold at least one example, got none")
    joined = _joined(parts, name)
    return joined, whole and len(joined) == number


def _indexed(given: Any, name: str, seconds: float) -> tuple[Sample, bool]:
    """Examples by their numbers, read in a drawn order and then put back into their own."""
    started, order, parts, first, size = time.perf_counter(), _drawn(len(given)), [], 0, 8
    while first < min(len(given), MOST):
        parts.append(_one(default_collate([given[index] for index in order[first : first + size].tolist()]), name))
        first, size = first + size, min(2 * size, 256)  # few at first: one example alone may take long
        bytes_ = sum(values.nbytes for part in parts for values in part.inputs.values())
        if bytes_ >= BYTES or time.perf_counter() - started > seconds:
            break
    if not parts:
        raise ValueError(f"{name} must hold at least one example, got none")
    joined = _joined(parts, name)
    if len(joined) < min(first, len(given)):  # parts of another shape were left out
        return joined, False
    return joined[order[:first].argsort()], first >= len(given)


def _drawn(number: int) -> Tensor:
    return torch.randperm(number, generator=torch.Generator().manual_seed(0))


def _joined(parts: list[Sample], name: str) -> Sample:
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
        return _joined(chosen, name)
    return Sample(inputs, targets, first.named, first.whole)


def _checked(sample: Sample, name: str, whole: bool) -> Sample:
    for key, values in [*sample.inputs.items(), ("y", sample.targets)]:
        if values is not None and values.is_floating_point() and not bool(values.isfinite().all()):
            bad = int((~values.isfinite()).sum())
            raise ValueError(f"{name}.{key} must be finite, found {bad} values that are not: remove or impute them")
    return Sample(sample.inputs, sample.targets, sample.named, whole)


def _batches(given: Any, name: str) -> Iterator[Any]:
    """One batch after another; columns in memory are one batch."""
    columns = isinstance(given, tuple) and len(given) > 0 and all(map(_is_columns, given))
    if isinstance(given, tuple) and any(map(is_array, given)) and not columns:
        odd = next(one for one in given if not _is_columns(one))
        cure = "what is no tensor, such as a graph, is given by forward=lambda model, batch: model(batch['x'], graph)"
        raise TypeError(f"{name} must be tensors, got {kind(odd)} among them: {cure}")
    if isinstance(given, Examples | Mapping) or is_array(given) or columns:
        yield given
    elif isinstance(given, IterableDataset):
        yield from DataLoader(given, batch_size=256)
    elif isinstance(given, DataLoader):
        yield from _mixed(given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        yield from given
    else:
        raise TypeError(f"{name} must be {KINDS}, got {kind(given)}")


def _is_columns(value: Any) -> bool:
    return is_array(value) or (isinstance(value, list | tuple) and len(value) > 0 and all(map(is_array, value)))


def _mixed(loader: DataLoader[Any]) -> Iterator[Any]:
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


def _is_indexed(given: Any) -> bool:
    if isinstance(given, Examples | IterableDataset | DataLoader | list | tuple | str | bytes | Mapping):
        return False
    if is_array(given):
        return False
    return hasattr(given, "__getitem__") and hasattr(given, "__len__")


def _one(batch: Any, name: str) -> Sample:
    """Inputs and targets of one batch."""
    named = isinstance(batch, Mapping)
    if isinstance(batch, Examples):
        columns = dict(batch.columns)
    elif isinstance(batch, Mapping):
        columns = {str(key): value for key, value in batch.items() if is_array(value)}
    elif is_array(batch):
        columns = {"x": batch}
    elif isinstance(batch, list | tuple) and batch:
        *inputs, target = batch if len(batch) > 1 else (*batch, None)
        flat = [one for part in inputs for one in (part if isinstance(part, list | tuple) else (part,))]
        columns = {"x" if len(flat) == 1 else f"x{i}": one for i, one in enumerate(flat, 1)}
        columns |= {} if target is None else {"y": target}
    else:
        raise TypeError(f"a batch of {name} must be (x, y) or a dict of tensors, got {kind(batch)}")
    columns = {key: as_tensor(value, f"{name}.{key}") for key, value in columns.items()}
    if len({len(values) for values in columns.values()}) > 1:
        sizes = ", ".join(f"{key} {len(values)}" for key, values in columns.items())
        raise ValueError(f"columns of {name} must have one row an example, got {sizes}")
    target_name = next((key for key in TARGETS if key in columns), None)
    targets = None if target_name is None else columns.pop(target_name)
    if not columns:
        raise ValueError(f"{name} must hold inputs beside the targets {target_name}")
    return Sample(columns, targets, named)
