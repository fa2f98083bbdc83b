r"""Rank without rounding: every finite floating-point number is a fraction, and fractions are exact."""

import math

from jaxtyping import Shaped
from torch import Tensor

from lemmata import validate
from lemmata.certified.rounding import fractions
from lemmata.marks import system

__all__ = ["exact_rank"]


@system("exact_rank", title="Rank without rounding", kind="function")
def exact_rank(matrix: Shaped[Tensor, "rows columns"]) -> int:
    r"""The rank of a matrix exactly as it is stored, by elimination in integers.

    $$ \mathrm{rank}(AB) \le \min\{\mathrm{rank}\,A, \mathrm{rank}\,B\}, \qquad \mathrm{rank}\,A \le \min\{m, n\} $$

    No tolerance decides what counts as zero. A matrix that was rounded when it was stored has the rank of what is
    stored: $(0.1, 0.2, 0.3)$ and $(1, 2, 3)$ are independent in binary. Meant for small matrices: it costs $O(n^3)$
    operations on integers that grow.

    Shapes:
        matrix: (rows, columns), floating point or integer

    Claims: linalg.rank_product, linalg.general_position

    >>> exact_rank(torch.ones(3, 4)), exact_rank(torch.tensor([[1, 2], [2, 5]]))
    (1, 2)
    """
    rows, rank, last = whole_rows(matrix), 0, 1
    # Bareiss's elimination: every division in it leaves no remainder.
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        top = rows[rank]
        for row in rows[rank + 1 :]:
            row[:] = [(top[column] * a - row[column] * b) // last for a, b in zip(row, top, strict=True)]
        rank, last = rank + 1, top[column]
        if rank == len(rows):
            break
    return rank


def whole_rows(matrix: Tensor) -> list[list[int]]:
    """The rows of a matrix as integers: all entries times one common denominator."""
    if isinstance(matrix, Tensor) and matrix.ndim != 2:
        raise ValueError(f"matrix must be a (rows, columns) tensor, got shape {tuple(matrix.shape)}")
    if isinstance(matrix, Tensor) and matrix.is_complex():
        raise TypeError(f"matrix must be real, got {matrix.dtype}")
    if not isinstance(matrix, Tensor) or matrix.is_floating_point() or not matrix.numel():
        validate.floating("matrix", matrix)
    rows = fractions(matrix)
    denominator = math.lcm(*(value.denominator for row in rows for value in row))
    return [[int(value * denominator) for value in row] for row in rows]
