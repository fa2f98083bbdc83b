r"""Rank and determinant without rounding: every finite floating-point number is a fraction, and fractions are exact."""

import math
from fractions import Fraction

from jaxtyping import Shaped
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["exact_determinant", "exact_rank"]


@system("exact_rank", title="Rank without rounding", kind="function")
def exact_rank(matrix: Shaped[Tensor, "rows columns"]) -> int:
    r"""The rank of a matrix exactly as it is stored, by elimination in whole numbers.

    $$ \mathrm{rank}(AB) \le \min\{\mathrm{rank}\,A, \mathrm{rank}\,B\}, \qquad \mathrm{rank}\,A \le \min\{m, n\} $$

    No tolerance decides what counts as zero. A matrix that was rounded when it was stored has the rank of what is
    stored: $(0.1, 0.2, 0.3)$ and $(1, 2, 3)$ are independent in binary. Meant for small matrices: it costs $O(n^3)$
    operations on whole numbers that grow.

    Shapes:
        matrix: (rows, columns), floating point or integer

    Claims: linalg.rank_product, linalg.general_position

    >>> exact_rank(torch.tensor([[1, 2], [2, 4]])), exact_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0 + 1e-6]]))
    (1, 2)
    """
    rows, _ = whole_rows(matrix)
    return eliminate(rows)[0]


def exact_determinant(matrix: Shaped[Tensor, "n n"]) -> Fraction:
    r"""The determinant of a matrix exactly as it is stored, a fraction.

    $$ \det A = \sum_\pi \mathrm{sgn}(\pi) \prod_i a_{i\,\pi(i)} $$

    Shapes:
        matrix: (n, n), floating point or integer

    Claims: linalg.psd_eigenvalues

    >>> exact_determinant(torch.tensor([[0.5, 1.0], [3.0, 2.0]]))
    Fraction(-2, 1)
    """
    rows, denominator = whole_rows(matrix)
    if len(rows) != len(rows[0]):
        raise ValueError(f"matrix must be square, got shape {tuple(matrix.shape)}")
    return Fraction(eliminate(rows)[1], denominator ** len(rows))


def whole_rows(matrix: Tensor) -> tuple[list[list[int]], int]:
    """The rows of a matrix as whole numbers over one common denominator."""
    if isinstance(matrix, Tensor) and matrix.ndim != 2:
        raise ValueError(f"matrix must be a (rows, columns) tensor, got shape {tuple(matrix.shape)}")
    if isinstance(matrix, Tensor) and matrix.is_complex():
        raise TypeError(f"matrix must be real, got {matrix.dtype}")
    if not isinstance(matrix, Tensor) or matrix.is_floating_point() or not matrix.numel():
        validate.floating("matrix", matrix)
    if not matrix.is_floating_point():
        return [[int(value) for value in row] for row in matrix.tolist()], 1
    rows = [[Fraction(value) for value in row] for row in matrix.tolist()]
    denominator = math.lcm(*(value.denominator for row in rows for value in row))
    return [[int(value * denominator) for value in row] for row in rows], denominator


def eliminate(rows: list[list[int]]) -> tuple[int, int]:
    """Rank, and determinant where there is one, by Bareiss's elimination: every division in it leaves no remainder."""
    rows = [list(row) for row in rows]
    rank, sign, last = 0, 1, 1
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        if pivot != rank:
            rows[rank], rows[pivot], sign = rows[pivot], rows[rank], -sign
        top = rows[rank]
        for row in rows[rank + 1 :]:
            row[:] = [(top[column] * a - row[column] * b) // last for a, b in zip(row, top, strict=True)]
        rank, last = rank + 1, top[column]
        if rank == len(rows):
            break
    return rank, sign * last if rank == len(rows) else 0
