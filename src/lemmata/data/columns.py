"""Columns as people have them, tensors, arrays, tuples and dicts, made into `Examples`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lemmata.data.examples import Examples

__all__ = ["as_examples"]

NAMES = ("x", "y", "z")  # of columns that come without


def as_examples(given: Any, name: str = "data", dtype: torch.dtype = torch.float32) -> Examples:
    r"""Columns of equal length, one row an example: tensors or numpy arrays, alone, in a tuple or in a dict.

    The entries of a tuple are called x, y and z. Real numbers of arrays become `dtype`, whole ones int64, as losses
    want them; bytes (pictures) stay bytes, and tensors stay as they are.

    >>> as_examples((np.zeros((4, 2)), np.arange(4)))
    Examples(x=(4, 2), y=(4,))
    >>> as_examples({"tokens": torch.zeros(4, 7), "label": torch.zeros(4)})
    Examples(tokens=(4, 7), label=(4,))
    """
    if isinstance(given, Examples):
        return given
    if isinstance(given, Mapping):
        columns = given
    elif is_array(given):
        columns = {"x": given}
    elif hasattr(given, "_fields"):  # a namedtuple
        columns = dict(zip(given._fields, given, strict=True))
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        if given and isinstance(given[0], int | float | list):
            raise TypeError(f"{name} holds lists or plain numbers: make an array of each column (numpy.array)")
        if len(given) > len(NAMES):
            raise ValueError(f"{name} has {len(given)} columns without a name: give them as a dict")
        columns = dict(zip(NAMES, given, strict=False))
    else:
        raise TypeError(f"{name} must be tensors or arrays, alone, in a tuple or in a dict, got {kind(given)}")
    return Examples(**{str(column): as_tensor(values, f"{name}.{column}", dtype) for column, values in columns.items()})


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
    raise TypeError(f"{name} must hold numbers, got an array of {array.dtype}: turn names into whole numbers")


def kind(value: Any) -> str:
    """What a value is, in a word."""
    return type(value).__name__
