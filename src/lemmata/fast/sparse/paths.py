r"""Which path adds up neighbours."""

from torch import Tensor

from lemmata.fast.sparse.reference import gathered_dots, gathered_sums
from lemmata.fast.sparse.rows import Rows

__all__ = []  # for the operators


def sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The sum over the entries of each row."""
    return gathered_sums(x, weights, rows)


def dots(a: Tensor, b: Tensor, rows: Rows) -> Tensor:
    """The inner product of each entry's row and column, in the order of the list."""
    return gathered_dots(a, b, rows)
