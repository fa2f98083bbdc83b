"""Data as people have them, read once for all who take them: what is a column, and which column is the target."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset, default_collate
from torch.utils.data import Dataset as TorchDataset

from lemmata.data.examples import Dataset, Examples

__all__ = ["as_examples", "inputs_and_target"]

TARGETS = ("y", "label", "labels", "target", "targets")  # names of the column that is to be predicted
KINDS = "tensors, arrays, a dict of them, a Dataset, a DataLoader or an iterable of batches"


# --- Columns ---


def as_examples(given: Any, name: str = "data", dtype: torch.dtype = torch.float32) -> Examples:
    r"""Columns of equal length, one row an example: tensors or numpy arrays, alone, in a tuple or in a dict.

    The last entry of a tuple is the target: (x, y) has the columns x and y, and (x1, x2, y) and ((x1, x2), y) have x1,
    x2 and y. Real numbers of arrays become `dtype`, integers int64, as losses want them; bytes (images) stay bytes, and
    tensors stay as they are. Lists of strings in a dict are left out.

    >>> as_examples((np.zeros((4, 2)), np.arange(4)))
    Examples(x=(4, 2), y=(4,))
    >>> as_examples((torch.zeros(4, 7), torch.ones(4, 7), torch.zeros(4)))
    Examples(x1=(4, 7), x2=(4, 7), y=(4,))
    >>> as_examples({"tokens": torch.zeros(4, 7), "label": torch.zeros(4)})
    Examples(tokens=(4, 7), label=(4,))
    """
    if isinstance(given, Examples):
        return given
    if isinstance(given, Mapping):
        columns = {str(column): values for column, values in given.items() if not _is_text(values)}
    elif is_array(given):
        columns = {"x": given}
    elif hasattr(given, "_fields"):  # a namedtuple
        columns = dict(zip(given._fields, given, strict=True))
    elif isinstance(given, Sequence) and given and not isinstance(given, str | bytes):
        columns = _columns_of_sequence(given, name)
    else:
        raise TypeError(f"{name} must be tensors or arrays, alone, in a tuple or in a dict, got {kind(given)}")
    tensors = {column: as_tensor(values, f"{name}.{column}", dtype) for column, values in columns.items()}
    if len({len(values) for values in tensors.values()}) > 1:
        sizes = ", ".join(f"{column} {len(values)}" for column, values in tensors.items())
        raise ValueError(f"columns of {name} must have one row an example, got {sizes}")
    return Examples(**tensors)


def _columns_of_sequence(given: Sequence[Any], name: str) -> dict[str, Any]:
    if isinstance(given[0], int | float) or (isinstance(given[0], list) and not is_array(next(iter(given[0]), None))):
        raise TypeError(f"{name} holds lists or plain numbers: make an array of each column (numpy.array)")
    *inputs, target = given if len(given) > 1 else (*given, None)
    flat = [one for part in inputs for one in (part if isinstance(part, list | tuple) else (part,))]
    columns = {"x" if len(flat) == 1 else f"x{number}": one for number, one in enumerate(flat, 1)}
    return columns if target is None else {**columns, "y": target}


def _is_text(values: Any) -> bool:
    return isinstance(values, list | tuple) and len(values) > 0 and all(isinstance(one, str) for one in values)


def is_array(value: Any) -> bool:
    """Whether a value is a tensor, or something that numpy reads as an array by its own word."""
    return isinstance(value, Tensor) or (hasattr(value, "__array__") and not isinstance(value, type))


def as_tensor(values: Any, name: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """A column as a tensor with one row an example, or a sentence that names what it holds instead."""
    if isinstance(values, Tensor):
        if not values.ndim:
            cure = "torch's DataLoader makes batches of single examples"
            raise TypeError(f"{name} must have one row an example, got a single number: {cure}")
        return values
    if not is_array(values):
        raise TypeError(f"{name} must be a tensor or an array with one row an example, got {kind(values)}")
    array = np.asarray(values)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
            return torch.from_numpy(array.astype("f8" if dtype is torch.float64 else "f4", order="C")).to(dtype)
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        return torch.from_numpy(array.astype(np.int64, order="C"))
    if array.dtype.kind in "bcu":
        return torch.from_numpy(np.array(array, order="C"))
    raise TypeError(f"{name} must hold numbers, got an array of {array.dtype}: turn names into integers")


def kind(value: Any) -> str:
    """What a value is, in a word."""
    return type(value).__name__


# --- Inputs and target ---


def inputs_and_target(examples: Examples, name: str = "data") -> tuple[dict[str, Tensor], Tensor | None]:
    """The target is the column y, label or target, if there is one; all others are inputs of the model.

    >>> inputs, target = inputs_and_target(Examples(image=torch.zeros(2, 3), label=torch.ones(2)))
    >>> list(inputs), target
    (['image'], tensor([1., 1.]))
    """
    found = [column for column in examples.columns if column in TARGETS]
    if len(found) > 1:
        raise ValueError(f"{name} has the columns {' and '.join(found)}, each of which may be the target: rename one")
    inputs = {column: values for column, values in examples.columns.items() if column not in found}
    if not inputs:
        raise ValueError(f"{name} must hold inputs beside the target {found[0]}")
    return inputs, examples.columns[found[0]] if found else None


def taken_by_name(model: Any, inputs: Sequence[str], function: str = "loss") -> bool:
    """Whether a model must be given these inputs by name: it has parameters of these names, in another order.

    Inputs that a model cannot take are refused; `function` is the argument that may use them otherwise.
    """
    try:
        parameters = inspect.signature(getattr(model, "forward", model)).parameters.values()
    except (TypeError, ValueError):
        return False
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if list(inputs) == names[: len(inputs)] or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    if set(inputs) <= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}:
        return True
    numbered = [f"x{number}" for number in range(1, len(inputs) + 1)]  # as those of a tuple are called
    if len(inputs) == 1 or (list(inputs) == numbered and len(inputs) <= len(names)):
        return False
    if list(inputs) != numbered and any(p.kind is p.VAR_KEYWORD for p in parameters):
        return True
    takes = f"{type(model).__name__}.forward takes {', '.join(names) or 'none'}"
    cure = f"leave out what is no input, or give {function}=lambda model, batch: ..."
    raise ValueError(f"data has the inputs {' and '.join(inputs)} beside the target, but {takes}: {cure}")


# --- Kinds of data ---


def in_memory(given: Any) -> Any:
    """The tensors of a TensorDataset, and of a part of one as random_split makes it: no need to ask item by item."""
    if isinstance(given, TensorDataset):
        return given.tensors
    if isinstance(given, Subset) and isinstance(given.dataset, TensorDataset | Examples):
        return as_examples(in_memory(given.dataset))[torch.as_tensor(given.indices, dtype=torch.int64)]
    return given


def is_columns(given: Any, name: str = "data") -> bool:
    """Whether these are all examples, column by column; else they come one by one, or batch by batch.

    What is neither, or might be both, is refused.
    """
    if isinstance(given, Dataset):
        parts = " or ".join(f"{given.name}.{part}" for part in given.parts)
        raise TypeError(f"{name} is the data set {given.name} with all its parts: give one, {parts}")
    if isinstance(given, Examples | Mapping) or is_array(given):
        return True
    if not isinstance(given, list | tuple):
        if isinstance(given, str | bytes) or not (isinstance(given, Iterable) or is_map_style(given)):
            cure = f": {GRAPHS}" if hasattr(given, "edges") or hasattr(given, "edge_index") else ""
            raise TypeError(f"{name} must be {KINDS}, got {kind(given)}{cure}")
        return False
    columns = len(given) > 0 and all(map(_is_column, given))
    if isinstance(given, tuple) and any(map(is_array, given)) and not columns:
        odd = next(one for one in given if not _is_column(one))
        raise TypeError(f"{name} must be tensors, got {kind(odd)} among them: {GRAPHS}")
    if isinstance(given, tuple) and any(map(is_array, given)):
        return columns
    if not (len(given) > 0 and all(map(is_array, given))):
        return False
    kinds = {(tuple(one.shape[1:]), str(one.dtype)) for one in given}
    if len(given) > 1 and len(kinds) == 1:
        cure = "give columns as a tuple, and batches as tuples (x,)"
        raise ValueError(f"{name} is a list of {len(given)} arrays of one kind, columns or batches: {cure}")
    return True


GRAPHS = "what is no tensor, such as a graph, is given by a function of (model, batch): loss= of fit, forward= of audit"


def _is_column(value: Any) -> bool:
    return is_array(value) or (isinstance(value, list | tuple) and len(value) > 0 and all(map(is_array, value)))


def is_map_style(given: Any) -> bool:
    """Whether examples can be had by their numbers."""
    if isinstance(given, IterableDataset | DataLoader | list | tuple | str | bytes):
        return False
    return isinstance(given, TorchDataset) or (hasattr(given, "__getitem__") and hasattr(given, "__len__"))


def collated(dataset: Any, indices: list[int]) -> Any:
    """Some examples of a map-style data set, as a batch."""
    several: Callable[[list[int]], Any] | None = getattr(dataset, "__getitems__", None)
    return default_collate(several(indices) if several else [dataset[index] for index in indices])


def stream_batches(given: Any, size: int) -> Iterator[Any]:
    """The batches of a stream; single examples of an IterableDataset are put together."""
    if not isinstance(given, IterableDataset):
        yield from given
        return
    rows: list[Any] = []
    for item in given:
        if isinstance(item, Examples):
            yield item
            continue
        rows.append(item)
        if len(rows) == size:
            yield default_collate(rows)
            rows = []
    if rows:
        yield default_collate(rows)
