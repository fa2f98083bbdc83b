r"""A sparse pattern by rows: which columns stand in each row, and where in the list of entries each one was.

Compiled code reads where a pattern says, and anybody can make one by hand. So each is looked at before its first use,
once: whether it is still the same is told by torch's count of changes in place.
"""

import weakref
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from lemmata import validate

__all__ = ["Rows", "rows_of"]

# A pattern and its transpose, as operators of torch take them.
PATTERN = "Tensor pointers, Tensor columns, Tensor entries"


MOST = 1 << 40  # rows of a pattern


class Rows(NamedTuple):
    """Row r holds the columns `columns[pointers[r] : pointers[r + 1]]`; `entries` are their places in the list."""

    pointers: Int[Tensor, " rows_and_one"]
    columns: Int[Tensor, " entries"]
    entries: Int[Tensor, " entries"]

    @property
    def number(self) -> int:
        """How many rows there are."""
        return len(self.pointers) - 1

    def lengths(self) -> Int[Tensor, " rows"]:
        """How many entries each row has."""
        return self.pointers.diff()

    def row_of_each(self) -> Int[Tensor, " entries"]:
        """The row of every column."""
        if is_looked_at():
            pattern_width(self)
        rows = torch.arange(self.number, device=self.pointers.device)
        return rows.repeat_interleave(self.lengths(), output_size=len(self.columns))


def rows_of(rows: Int[Tensor, " entries"], columns: Int[Tensor, " entries"], number: int) -> Rows:
    r"""The entries of a list sorted by row; within a row they keep the order of the list.

    >>> rows_of(torch.tensor([1, 0, 1]), torch.tensor([5, 6, 7]), number=3)
    Rows(pointers=tensor([0, 1, 3, 3]), columns=tensor([6, 5, 7]), entries=tensor([1, 0, 2]))
    """
    for name, value in (("rows", rows), ("columns", columns)):
        if validate.tensor(name, value).ndim != 1 or value.shape != rows.shape or value.device != rows.device:
            raise ValueError(f"{name} must be one number for each entry, got shape {tuple(value.shape)}")
        if value.is_floating_point() or value.is_complex() or value.dtype is torch.bool:
            raise TypeError(f"{name} must hold integers, got {value.dtype}: use {name}.long()")
        if value.layout is not torch.strided:
            raise TypeError(f"{name} must be dense, got {value.layout}: use {name}.to_dense()")
    validate.count("number", number, least=0, most=MOST)
    known = is_looked_at() and has_values(rows)
    (least, most), (low, high) = (_least_and_largest(value) if known else (0, -1) for value in (rows, columns))
    if least < 0 or most >= number:
        raise ValueError(f"rows must be from 0 to {number - 1}, got {least} to {most}")
    if low < 0:
        raise ValueError(f"columns must be 0 or more, got {low}")
    entries = rows.argsort(stable=True)
    pointers = torch.zeros(number + 1, dtype=torch.int64, device=rows.device)
    pointers[1:] = torch.bincount(rows, minlength=number).cumsum(0)
    made = Rows(pointers, columns[entries].to(torch.int64), entries)  # compiled code reads 64 bits
    return remember_pattern(made, high + 1) if known else made


def _least_and_largest(values: Int[Tensor, " entries"]) -> tuple[int, int]:
    """The smallest and the largest number; of none, what lies outside of nothing."""
    low, high = values.aminmax() if len(values) else (0, -1)
    return int(low), int(high)


def check_rows(name: str, values: Tensor, rows: int) -> None:
    """Refuse values without a row of features for each: what is not there must not be read, and compiled code would."""
    if values.ndim != 2 or len(values) != rows:
        raise ValueError(f"{name} must be ({rows}, features), got shape {tuple(values.shape)}")


# --- Whether a pattern is right ---


class _Known(NamedTuple):
    """What was found of a pattern, for as long as its pointers live."""

    pointers: weakref.ref[Tensor]
    columns: Tensor
    entries: Tensor
    versions: tuple[int, int, int]
    width: int


_known: dict[int, _Known] = {}  # by the identity of the pointers; torch's own weak dictionary takes ten times as long


def remember_pattern(rows: Rows, width: int) -> Rows:
    """A pattern that is right; its columns are below `width`."""
    if not any(part.is_inference() for part in rows):  # whose changes torch does not count
        key = id(rows.pointers)
        alive = weakref.ref(rows.pointers, lambda _: _known.pop(key, None))
        _known[key] = _Known(alive, rows.columns, rows.entries, _row_versions(rows), width)
    return rows


def _row_versions(rows: Rows) -> tuple[int, int, int]:
    return rows.pointers._version, rows.columns._version, rows.entries._version


def pattern_width(rows: Rows, name: str = "rows") -> int:
    """One more than the largest column of a pattern that is right; else a sentence."""
    known = _known.get(id(rows.pointers)) if isinstance(rows, Rows) else None
    if (
        known
        and known.pointers() is rows.pointers
        and known.columns is rows.columns
        and known.entries is rows.entries
        and known.versions == _row_versions(rows)
    ):
        return known.width
    check_shapes(rows, name)
    pointers, columns, entries = rows
    number = len(columns)
    if pointers.device.type == "meta":
        return 0
    if int(pointers[0]) != 0 or int(pointers[-1]) != number or bool((pointers.diff() < 0).any()):
        raise ValueError(f"pointers of {name} must go up from 0 to {number}, got others: use rows_of")
    low, high = (int(end) for end in columns.aminmax()) if number else (0, -1)
    if low < 0:
        raise ValueError(f"columns of {name} must be 0 or more, got {low}: use rows_of")
    least, most = (int(end) for end in entries.aminmax()) if number else (0, -1)
    if (least, most) != (0, number - 1) or (number and int(torch.bincount(entries).max()) != 1):
        raise ValueError(f"entries of {name} must be each number from 0 to {number - 1} once, got others: use rows_of")
    remember_pattern(rows, high + 1)
    return high + 1


def check_shapes(rows: Rows, name: str = "rows") -> None:
    """Whether a pattern is one by type, sizes and place."""
    if not isinstance(rows, Rows):
        raise TypeError(f"{name} must be Rows, got {type(rows).__name__}: use rows_of")
    for part, value in zip(rows._fields, rows, strict=True):
        if not isinstance(value, Tensor) or value.dtype is not torch.int64 or value.layout is not torch.strided:
            kind = f"{value.dtype} {value.layout}" if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(f"{part} of {name} must be an int64 tensor, got {kind}: use rows_of")
        if value.ndim != 1 or value.device != rows.pointers.device or not value.is_contiguous():
            raise ValueError(f"{part} of {name} must be one contiguous axis on one device: use rows_of")
    if not len(rows.pointers) or len(rows.columns) != len(rows.entries):
        sizes = tuple(map(len, rows))
        raise ValueError(f"pointers, columns and entries of {name} must fit together, got lengths {sizes}: use rows_of")


def is_looked_at() -> bool:
    """Whether torch computes what it is told: not while it compiles, exports, transforms or fakes a function.

    Only then may values decide anything, and only then does what is computed outlive the call.
    """
    traced = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    return not (traced or torch._C._len_torch_dispatch_stack())


def has_values(value: Tensor) -> bool:
    """Whether a tensor holds values: neither one that torch traces, nor on the meta device."""
    if torch.compiler.is_compiling() or value.device.type == "meta":
        return False
    return not torch._C._len_torch_dispatch_stack() and type(value) in (Tensor, torch.nn.Parameter)
