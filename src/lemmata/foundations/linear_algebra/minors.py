r"""Sylvester's criterion in its correct form: which signs of which minors tell the definiteness of a matrix."""

import itertools
from fractions import Fraction

import torch
from jaxtyping import Shaped
from torch import Tensor

from lemmata.foundations.linear_algebra.exact_elimination import eliminate, whole_rows
from lemmata.marks import system

__all__ = ["leading_minors", "principal_minors", "definiteness_by_minors"]

MAX_SIZE = 12  # 4,095 principal minors, about a second


def leading_minors(matrix: Shaped[Tensor, "n n"]) -> list[Fraction]:
    r"""The determinants of the upper left $k \times k$ blocks, exactly, for $k = 1, \dots, n$.

    $$ \Delta_k = \det A_{1..k,\,1..k} $$

    Shapes:
        matrix: (n, n), floating point or integer

    Claims: linalg.sylvester

    >>> leading_minors(torch.tensor([[2, 1], [1, 3]]))
    [Fraction(2, 1), Fraction(5, 1)]
    """
    _check(matrix)
    return _minors(matrix, [tuple(range(k)) for k in range(1, len(matrix) + 1)])


def principal_minors(matrix: Shaped[Tensor, "n n"]) -> dict[tuple[int, ...], Fraction]:
    r"""The determinant of every block that keeps the same rows and columns, exactly, by the indices it keeps.

    $$ \det A_{I,I}, \qquad \emptyset \ne I \subseteq \{0, \dots, n-1\} $$

    There are $2^n - 1$ of them, so $n$ is at most 12.

    Shapes:
        matrix: (n, n), floating point or integer

    Claims: linalg.sylvester

    >>> principal_minors(torch.tensor([[0, 0], [0, -1]]))
    {(0,): Fraction(0, 1), (1,): Fraction(-1, 1), (0, 1): Fraction(0, 1)}
    """
    _check(matrix)
    numbers = range(len(matrix))
    kept = [indices for k in numbers for indices in itertools.combinations(numbers, k + 1)]
    return dict(zip(kept, _minors(matrix, kept), strict=True))


@system("sylvester", title="Sylvester's criterion", kind="function")
def definiteness_by_minors(matrix: Shaped[Tensor, "n n"]) -> str:
    r"""What the signs of its minors say about a symmetric matrix, decided without rounding.

    $$ A \succ 0 \iff \Delta_k > 0\ \forall k, \qquad A \prec 0 \iff (-1)^k \Delta_k > 0\ \forall k, \qquad
       A \succeq 0 \iff \det A_{I,I} \ge 0\ \forall I $$

    The leading minors $\Delta_k$ decide definiteness only. For semidefiniteness all principal minors are needed:
    $\mathrm{diag}(0, -1)$ has leading minors $0, 0$ and is not positive semidefinite.

    Shapes:
        matrix: (n, n) symmetric, floating point or integer, n at most 12
        returns: "positive definite", "negative definite", "positive semidefinite", "negative semidefinite", "zero" or
        "indefinite"; the semidefinite answers are for singular matrices

    Claims: linalg.sylvester
    Differs: numerical tests ask for a tolerance; this one takes the stored numbers as they are. For large matrices,
        and with a violating vector, use `certify_definiteness`.

    >>> definiteness_by_minors(torch.tensor([[1, 0], [0, 0]])), definiteness_by_minors(torch.tensor([[0, 0], [0, -1]]))
    ('positive semidefinite', 'negative semidefinite')
    """
    _check(matrix)
    if not torch.equal(matrix, matrix.mT):
        raise ValueError("matrix must be symmetric to the last bit: use (matrix + matrix.mT) / 2")
    if not matrix.any():
        return "zero"
    for name, signed in (("positive", matrix), ("negative", -matrix)):
        if all(minor > 0 for minor in leading_minors(signed)):
            return f"{name} definite"
        if all(minor >= 0 for minor in principal_minors(signed).values()):
            return f"{name} semidefinite"
    return "indefinite"


def _minors(matrix: Tensor, kept: list[tuple[int, ...]]) -> list[Fraction]:
    rows, denominator = whole_rows(matrix)
    blocks = [[[rows[i][j] for j in indices] for i in indices] for indices in kept]
    return [Fraction(eliminate(block)[1], denominator ** len(block)) for block in blocks]


def _check(matrix: Tensor) -> None:
    if not isinstance(matrix, Tensor):
        raise TypeError(f"matrix must be a tensor, got {type(matrix).__name__}: use torch.as_tensor(matrix)")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be an (n, n) tensor, got shape {tuple(matrix.shape)}")
    if not 1 <= len(matrix) <= MAX_SIZE:
        raise ValueError(f"matrix must have 1 to {MAX_SIZE} rows, got {len(matrix)}: use certify_definiteness")
