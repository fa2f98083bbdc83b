r"""A sparse pattern by rows: which columns stand in each row, and where in the list of entries each one was."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

__all__ = ["Rows", "rows_of"]

# A pattern and its transpose, as operators of torch take them.
PATTERN = "Tensor pointers, Tensor columns, Tensor entries"


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
        rows = torch.arange(self.number, device=self.pointers.device)
        return rows.repeat_interleave(self.lengths(), output_size=len(self.columns))


def rows_of(rows: Int[Tensor, " entries"], columns: Int[Tensor, " entries"], number: int) -> Rows:
    r"""The entries of a list sorted by row; within a row they keep the order of the list.

    >>> rows_of(torch.tensor([1, 0, 1]), torch.tensor([5, 6, 7]), number=3)
    Rows(pointers=tensor([0, 1, 3, 3]), columns=tensor([6, 5, 7]), entries=tensor([1, 0, 2]))
    """
    entries = rows.argsort(stable=True)
    pointers = torch.zeros(number + 1, dtype=torch.int64, device=rows.device)
    pointers[1:] = torch.bincount(rows, minlength=number).cumsum(0)
    return Rows(pointers, columns[entries].to(torch.int64), entries)  # compiled code reads 64 bits


def check_rows(name: str, values: Tensor, rows: int) -> None:
    """Refuse values without a row of features for each: what is not there must not be read, and compiled code would."""
    if values.ndim != 2 or len(values) != rows:
        raise ValueError(f"{name} must be ({rows}, features), got shape {tuple(values.shape)}")
