r"""Gordan's alternative without rounding: a vector whose products with all rows are positive, or what excludes it.

$$ \exists w:\ z_i^\top w > 0 \ \ \forall i \qquad\text{or}\qquad
   \exists \lambda \ge 0:\ \sum_i \lambda_i = 1,\ \sum_i \lambda_i z_i = 0 $$

Exactly one of the two holds: the inequalities on the left, multiplied by $\lambda_i$ and added up, would give $0 > 0$.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import mul

__all__ = []  # for certificates; users meet only their answers

MAX_WORDS = 60_000_000  # of 64 bits to multiply: ten to twenty seconds


def positive_or_cancelling(
    rows: Sequence[Sequence[Fraction]], first: Iterable[int] = ()
) -> tuple[list[Fraction] | None, list[Fraction] | None]:
    r"""The vector $w$ and None, or None and the multipliers $\lambda$.

    The dual simplex method on $\sum_i\lambda_i(z_i, 1) = (0, 1)$, $\lambda \ge 0$, in integers. A basis of rows
    has one solution of the equations. If a multiplier in it is negative, the row of the inverse that gives it has
    product 1 with its own $(z_i, 1)$ and 0 with the others of the basis; where it is not negative with any row at all,
    it is $(w, t)$ with $t < 0$ and $z_i^\top w \ge -t$. Otherwise rows are exchanged, the least candidate in one order
    for the least (Bland's rule), so that no basis comes back and the search ends. `first` are the rows to begin with:
    a guess, which costs nothing but time. Too large a problem is an ArithmeticError.

    >>> positive_or_cancelling([[Fraction(1)], [Fraction(2)]])
    ([Fraction(1, 2)], None)
    >>> positive_or_cancelling([[Fraction(1)], [Fraction(-3)]])
    (None, [Fraction(3, 4), Fraction(1, 4)])
    """
    units = [_power_of_two(column) for column in zip(*rows, strict=True)]
    scaled = [[value / unit for value, unit in zip(row, units, strict=True)] for row in rows]
    factors = [math.lcm(*(value.denominator for value in row)) for row in scaled]  # positive: they change no sign
    columns = [[int(value * factor) for value in row] + [1] for row, factor in zip(scaled, factors, strict=True)]
    order = list(dict.fromkeys([*first, *range(len(rows))]))
    basis = _Basis(columns, order)
    vector = basis.decide()
    if vector is not None:
        return [value / unit for value, unit in zip(vector, units, strict=True)], None
    shares = [Fraction(0)] * len(rows)
    for index, row in zip(basis.members, basis.inverse, strict=True):
        if index is not None:
            shares[index] = Fraction(row[-1] * factors[index])
    total = sum(shares)
    return None, [share / total for share in shares]


class _Basis:
    """The chosen columns, one for each equation (None: no column yet), with their inverse times the determinant.

    Everything stays an integer: each division below leaves no remainder (Edmonds, Bareiss).
    """

    def __init__(self, columns: list[list[int]], order: list[int]) -> None:
        self.columns, self.order = columns, order
        self.place = {index: position for position, index in enumerate(order)}
        size = len(columns[0])
        self.members: list[int | None] = [None] * size
        self.inverse = [[int(i == j) for j in range(size)] for i in range(size)]
        self.determinant = 1
        self.words = 0

    def decide(self) -> list[Fraction] | None:
        """The vector, or None once the basis has multipliers of which none is negative."""
        for index in self.order:
            idle = (row for row, member in enumerate(self.members) if member is None)
            row = next((row for row in idle if self._row_product(row, index)), None)
            if row is not None:
                self._enter_column(row, index)
        for row, member in zip(self.inverse, self.members, strict=True):
            # At right angles to all columns: unless the right side is 0 here, the equations contradict each other.
            if member is None and row[-1]:
                return [Fraction(value, -row[-1]) for value in row[:-1]]
        while True:
            members = enumerate(self.members)
            negative = {self.place[index]: i for i, index in members if index is not None and self.inverse[i][-1] < 0}
            if not negative:
                return None
            row = negative[min(negative)]
            index = next((index for index in self.order if self._row_product(row, index) < 0), None)
            if index is None:
                return [Fraction(value, -self.inverse[row][-1]) for value in self.inverse[row][:-1]]
            self._enter_column(row, index)

    def _row_product(self, row: int, index: int) -> int:
        self._count_products(len(self.inverse))
        return sum(map(mul, self.inverse[row], self.columns[index]))

    def _count_products(self, products: int) -> None:
        self.words += products * (1 + self.determinant.bit_length() // 64)
        if self.words > MAX_WORDS:
            size = f"{len(self.columns)} rows of {len(self.inverse) - 1} numbers"
            raise ArithmeticError(f"{size} are too many for exact arithmetic")

    def _enter_column(self, row: int, index: int) -> None:
        weights = [self._row_product(i, index) for i in range(len(self.inverse))]
        pivot, top = weights[row], self.inverse[row]
        self._count_products(len(top) ** 2)
        for i, weight in enumerate(weights):
            if i != row:
                pairs = zip(self.inverse[i], top, strict=True)
                self.inverse[i] = [(pivot * old - weight * new) // self.determinant for old, new in pairs]
        self.members[row], self.determinant = index, pivot
        if pivot < 0:
            self.determinant = -pivot
            self.inverse = [[-value for value in old] for old in self.inverse]


def _power_of_two(column: Iterable[Fraction]) -> Fraction:
    """About as large as the largest entry, so that features of any size give integers of few digits."""
    largest = max(map(abs, column))
    exponent = largest.numerator.bit_length() - largest.denominator.bit_length()
    return Fraction(2) ** exponent if largest else Fraction(1)
