r"""Eigenvalues counted without rounding: every stored number is a fraction, and signs of fractions are exact."""

import itertools
import operator
from fractions import Fraction

from jaxtyping import Float
from torch import Tensor

from lemmata.certified.rounding import fractions

__all__ = []  # for certificates; users meet only their answers

LARGEST = 16  # the most rows that are worth it: n^4 products of numbers that grow


def eigenvalue_counts(matrix: Float[Tensor, "n n"], bound: Fraction) -> tuple[int, int, int]:
    r"""How many eigenvalues of a symmetric matrix, exactly as it is stored, lie below, at and above a number.

    $$ p(\lambda) = \det(\lambda I - M), \qquad
       \#\{i : \lambda_i > t\} = \text{changes of sign among the coefficients of } p(\lambda + t) $$

    The coefficients are those of Faddeev and Le Verrier. Descartes' rule of signs bounds the positive roots of a
    polynomial by the changes of sign; where all roots are real, as here, it counts them.

    >>> eigenvalue_counts(torch.tensor([[1.0, 1.0], [1.0, 1.0]]), Fraction(0))
    (0, 1, 1)
    """
    rows = fractions(matrix)
    n = len(rows)
    coefficients, power = [Fraction(1)], [[Fraction(0)] * n for _ in range(n)]
    for k in range(1, n + 1):  # from the highest power of the variable down
        for i in range(n):
            power[i][i] += coefficients[-1]
        columns = list(zip(*power, strict=True))
        power = [[sum(map(operator.mul, row, column), Fraction(0)) for column in columns] for row in rows]
        coefficients.append(-sum((power[i][i] for i in range(n)), Fraction(0)) / k)
    # Horner's rule, again and again, expands the polynomial around the bound.
    for last in range(n, 0, -1):
        for i in range(1, last + 1):
            coefficients[i] += bound * coefficients[i - 1]
    signs = [value > 0 for value in coefficients if value]
    above = sum(one != other for one, other in itertools.pairwise(signs))
    at = next(count for count, value in enumerate(reversed(coefficients)) if value)
    return n - at - above, at, above
