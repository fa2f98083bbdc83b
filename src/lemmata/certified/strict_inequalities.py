r"""Strict inequalities $z_i^\top w > 0$: guessed in floating point, then proved by a rounding bound or in fractions.

Either a vector $w$ satisfies them all, or multipliers $\lambda \ge 0$ with $\sum_i\lambda_i z_i = 0$ exclude it.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from operator import mul

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from lemmata.certified.gordan import positive_or_cancelling
from lemmata.certified.rounding import exact_signs, fractions, gamma

__all__ = []  # for certificates; users meet only their answers

TINY = torch.finfo(torch.double).tiny  # more than a product can lose that leaves the range below


class StrictInequalities:
    """Rows whose product with a vector should be positive: in double and, by `exact`, in fractions where that rounds.

    Shapes:
        rounded: (rows, inputs) float64    exact: indices of rows to these rows; None where nothing was rounded
    """

    def __init__(self, rounded: Tensor, exact: Callable[[list[int]], list[list[Fraction]]] | None = None) -> None:
        self.rounded, self.exact = rounded, exact

    def fractions(self, indices: Iterable[int]) -> list[list[Fraction]]:
        chosen = list(indices)
        return fractions(self.rounded[chosen]) if self.exact is None else self.exact(chosen)

    def positive_under(self, vector: Tensor | Sequence[Fraction]) -> bool:
        """Whether the vector has a positive product with every row."""
        if len(vector) != self.rounded.shape[1]:
            return False
        if isinstance(vector, Tensor) and not vector.isfinite().all():
            return False
        if isinstance(vector, Tensor) and self.exact is None:
            products = self.rounded @ vector
            lost = 2 * gamma(len(vector)) * (self.rounded.abs() @ vector.abs()) + len(vector) * TINY
            open = ~(products > lost)  # NaN, where a sum overflowed, is open as well
            if not open.any() or (products < -lost).any():
                return not open.any()
            # The likely culprit first, which saves asking all in vain.
            open = self.rounded[open][products[open].argsort()]
            return all(bool((exact_signs(rows, vector) > 0).all()) for rows in (open[:1], open[1:]))
        exact = fractions(vector) if isinstance(vector, Tensor) else vector
        return all(exact_dot(row, exact) > 0 for row in self.fractions(range(len(self.rounded))))

    def cancelled_by(self, multipliers: Tensor, exact: Sequence[Fraction] | None = None) -> bool:
        """Whether these multipliers, or provably some next to them, are a convex combination of the rows that is 0."""
        total = multipliers.sum()
        if len(multipliers) != len(self.rounded) or not total.isfinite() or (multipliers < 0).any():
            return False
        if abs(total - 1) > gamma(len(multipliers) + 1):
            return False
        if exact is not None:
            rounded = [float(share) for share in exact] == multipliers.tolist()
            return rounded and min(exact) >= 0 and sum(exact) == 1 and self._shares_cancel(exact)
        if self.exact is None:  # what rounding cannot hide takes no fractions
            support = _Support(self.rounded, multipliers)
            if support.plain and not support.vanishes:
                return False
            if support.vanishes_nearby:
                return True
        return self._shares_cancel(fractions(multipliers))

    def _shares_cancel(self, exact: Sequence[Fraction]) -> bool:
        support = [index for index, share in enumerate(exact) if share]
        shares = [exact[index] for index in support]
        return not any(exact_dot(column, shares) for column in zip(*self.fractions(support), strict=True))

    def decide(self, order: list[int]) -> tuple[list[Fraction] | None, list[Fraction]]:
        """Gordan's alternative for the first few rows of the order, and for more until its answer is that for all."""
        few = self.rounded.shape[1] + 1
        chosen = order[:few]
        while True:
            vector, shares = positive_or_cancelling(self.fractions(chosen))
            if vector is None:
                found = [Fraction(0)] * len(order)
                for index, share in zip(chosen, shares or [], strict=True):
                    found[index] = share
                return None, found
            wrong = self._not_positive(vector)
            if not wrong:
                return vector, []
            chosen += wrong[:few]

    def _not_positive(self, vector: list[Fraction]) -> list[int]:
        """The rows whose product with the vector is not positive, the worst first."""
        weights = rounded_direction(vector)
        # A weight below the range would be wrong by all of itself.
        normal = all(abs(weight) >= TINY or not value for weight, value in zip(weights.tolist(), vector, strict=True))
        if self.exact is None and normal:
            products, sizes = self.rounded @ weights, self.rounded.abs() @ weights.abs()
            # One rounding for each weight, and those of the sum.
            lost = 2 * gamma(len(weights) + 1) * sizes + len(weights) * TINY
            wrong = (products < -lost).nonzero().flatten()
            if len(wrong):
                return wrong[(products / sizes)[wrong].argsort()].tolist()
            open = (~(products > lost)).nonzero().flatten().tolist()
        else:
            open = range(len(self.rounded))
        return [index for index, row in zip(open, self.fractions(open), strict=True) if exact_dot(row, vector) <= 0]


def guessed_by_linear_program(rows: np.ndarray) -> tuple[Tensor, Tensor, list[int]]:
    """What a linear program in floating point says: weights, multipliers, and the rows in the order of their weight.

    Columns and rows are divided by powers of two, which rounds nothing, so that the solver's absolute tolerances mean
    something.
    """
    across = _largest_exponents(rows, axis=0)  # (inputs,)
    along = _largest_exponents(np.ldexp(rows, -across), axis=1)  # (points,)
    scaled = np.ldexp(rows, -across - along[:, None])  # (points, inputs)
    result = linprog(
        c=-np.eye(rows.shape[1] + 1)[-1],
        A_ub=np.hstack([-scaled, np.ones((len(rows), 1))]),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1, 1)] * rows.shape[1] + [(None, None)],  # any box around 0 serves
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:  # no guess: the exact method begins with any rows
        return torch.zeros(rows.shape[1]).double(), torch.zeros(len(rows)).double(), list(range(len(rows)))
    duals = np.maximum(-result.ineqlin.marginals, 0.0)
    shares = np.ldexp(duals, along[duals > 0].min(initial=0) - along)
    weights = [Fraction(value) / Fraction(2) ** int(e) for value, e in zip(result.x[:-1], across, strict=True)]
    order = np.lexsort((scaled @ result.x[:-1], -duals))
    return rounded_direction(weights), torch.from_numpy(shares / max(shares.sum(), 1e-300)), order.tolist()


def _largest_exponents(rows: np.ndarray, axis: int) -> np.ndarray:
    return np.frexp(np.abs(rows).max(axis=axis))[1]


class _Support:
    """The rows that count, without columns of zeros and scaled by powers of two, with their multipliers so scaled.

    `plain` says whether that rounded nothing and no product of two of these numbers will be subnormal.
    """

    def __init__(self, rows: Tensor, multipliers: Tensor) -> None:
        counted = rows[multipliers > 0]
        counted = counted[:, counted.any(0)].numpy()  # (points, inputs) that count
        shares = multipliers[multipliers > 0].numpy()
        if counted.size:
            across = _largest_exponents(counted, axis=0)
            along = _largest_exponents(np.ldexp(counted, -across), axis=1)
            scaled = np.ldexp(counted, -across - along[:, None])
            shares = np.ldexp(shares, along - along.max())
        else:
            scaled = counted
        smallest = min(np.abs(scaled[counted != 0]).min(initial=1), shares.min(initial=1))
        self.plain = bool(smallest > 2.0**-500)
        self.rows, self.shares = torch.from_numpy(scaled), torch.from_numpy(shares)
        self.total, self.size = self.shares @ self.rows, self.shares @ self.rows.abs()  # (inputs,)

    @property
    def vanishes(self) -> bool:
        """Whether the combination of the rows is 0 up to the rounding of it and of the multipliers."""
        return bool((self.total.abs() <= 4 * gamma(len(self.rows) + 1) * self.size).all())

    @property
    def vanishes_nearby(self) -> bool:
        r"""Whether a rounding bound proves that positive multipliers next to these make the combination 0.

        Let $r = Z^\top\lambda$ and let $R$ be nearly a left inverse, $RZ = I + E$. Then $\lambda - \delta$ with
        $\delta = R^\top(I + E^\top)^{-1} r$ makes it 0, and
        $|\delta_i| \le \sum_j |R_{ji}|\,\|r\|_\infty / (1 - \|E^\top\|_\infty)$ must be below $\lambda_i$.
        """
        points, inputs = self.rows.shape
        if not inputs or not self.plain or points < inputs:
            return not inputs  # rows of zeros
        left = torch.linalg.pinv(self.rows)  # (inputs, points)
        rest = self.total.abs() + 2 * gamma(points) * self.size  # (inputs,), at least |r|
        error = (left @ self.rows - torch.eye(inputs).double()).abs()
        error = (error + 2 * gamma(points + 1) * (left.abs() @ self.rows.abs())).sum(0).max()
        # Twice over, for the rounding of these few steps themselves.
        moved = 2 * left.abs().sum(0) * rest.max() / (1 - 2 * error)  # (points,)
        return bool(2 * error < 1) and bool((moved < self.shares).all())

    def refined(self) -> Tensor:
        """The factors by which two steps of refinement change the multipliers, so that the rest is only rounding."""
        if len(self.rows) < self.rows.shape[1]:
            return torch.ones_like(self.shares)
        left, shares = torch.linalg.pinv(self.rows), self.shares
        for _ in range(2):
            shares = shares - (shares @ self.rows) @ left
        return (shares / self.shares).clamp(min=0)


def refined_multipliers(rows: Tensor, multipliers: Tensor) -> Tensor:
    found = multipliers.clone()
    found[multipliers > 0] *= _Support(rows, multipliers).refined()
    return found / found.sum()


def rounded_direction(values: list[Fraction]) -> Tensor:
    """The direction of a vector in double, at its own length unless numbers would leave the range."""
    exponents = [value.numerator.bit_length() - value.denominator.bit_length() for value in values if value]
    low, high = min(exponents, default=0), max(exponents, default=0)
    shift = 0 if low > -900 and high < 1000 else 1000 - high
    return torch.tensor([float(value * Fraction(2) ** shift) for value in values], dtype=torch.double)


def exact_dot(row: Iterable[Fraction], other: Iterable[Fraction]) -> Fraction:
    return sum(map(mul, row, other), Fraction(0))
