r"""Linear separability, decided with a proof either way: a separating hyperplane, or multipliers that exclude it.

Every stored number is a fraction, so nothing needs to be left to rounding. A linear program in floating point guesses
the answer; what it guesses is proved by a rounding bound or in fractions, and where that fails decided in fractions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
import torch
from jaxtyping import Float, Shaped
from scipy.optimize import linprog
from torch import Tensor

from lemmata import validate
from lemmata.connectionism.linear_threshold import augment
from lemmata.marks import system
from lemmata.measure.gordan import positive_or_cancelling
from lemmata.measure.rounding import exact_signs, fractions, gamma

__all__ = ["Separation", "separate", "signed_rows"]

TINY = torch.finfo(torch.double).tiny  # more than a product can lose that leaves the range below


def signed_rows(x: Float[Tensor, "points features"], y: Tensor, bias: bool = True) -> Float[Tensor, "points inputs"]:
    r"""One row per point such that a unit classifies the point correctly iff its weights have a positive product.

    $$ z_i = y_i\,(x_i, 1) \quad\text{with a bias}, \qquad z_i = y_i\,x_i \quad\text{without} $$

    Shapes:
        x: (points, features), y: (points,)    returns: (points, features + 1), or (points, features) without bias

    Claims: perceptron.homogeneous, perceptron.xor, perceptron.algorithm

    >>> signed_rows(torch.tensor([[2.0], [3.0]]), torch.tensor([1, -1]))
    tensor([[ 2.,  1.],
            [-3., -1.]])
    """
    x = validate.matrix("x", x)
    y = validate.labels("y", y, like=x)
    validate.flag("bias", bias)
    inputs = augment(x) if bias else x  # (points, features + 1) or (points, features)
    return y[:, None] * inputs.detach()


@dataclass(frozen=True, eq=False)
class Separation:
    r"""The answer of `separate`: a hyperplane if there is one, otherwise multipliers that exclude every hyperplane.

    $$ y_i(w^\top x_i + b) > 0 \ \ \forall i \qquad\text{or}\qquad
       \lambda \ge 0,\ \sum_i \lambda_i = 1,\ \sum_i \lambda_i y_i (x_i, 1) = 0 $$

    Exactly one of the two exists (Gordan's alternative): the inequalities on the left, multiplied by $\lambda_i$ and
    added up, would give $0 > 0$. Tensors are float64, on the device of the data; fields of the other case are None.
    `exact` is the plane $(w, b)$, or the multipliers, in fractions where float64 has no room for it: `weight` and
    `bias` alone separate unless it is there. Multipliers without it are rounded: the exact ones lie next to them.

    Claims: perceptron.xor, perceptron.algorithm

    >>> found = separate(torch.tensor([[0.0], [1.0]]), torch.tensor([-1, 1]))
    >>> found.separable, found.multipliers
    (True, None)
    """

    separable: bool
    weight: Tensor | None = None
    bias: Tensor | None = None
    multipliers: Tensor | None = None
    biased: bool = True
    exact: tuple[Fraction, ...] | None = None

    def verify(self, x: Shaped[Tensor, "points features"], y: Tensor) -> bool:
        r"""Check the answer against the data alone, as they are stored, without the solver that found it.

        A hyperplane counts if every activation has the sign of its label exactly. Multipliers count if their sum
        vanishes exactly, or if it vanishes up to rounding and a rounding bound proves that it does so exactly for
        multipliers next to them.
        """
        rows = _SignedRows(x, y, self.biased)
        if self.multipliers is not None and not self.separable:
            return rows.cancelled_by(self.multipliers.double().cpu(), self.exact)
        if self.weight is not None and self.bias is not None and self.separable:
            weights = torch.cat([self.weight, self.bias[None]]) if self.biased else self.weight
            return rows.positive_under(weights.double().cpu() if self.exact is None else self.exact)
        return False

    def signs(self, inputs: Shaped[Tensor, "points inputs"]) -> Tensor:
        """The side of the hyperplane on which inputs lie, exactly: -1, 0 or +1; with a bias their last entry is 1."""
        if self.weight is None or self.bias is None:
            raise ValueError("there is no hyperplane: separable is False")
        if self.exact is not None:
            products = [_dot(row, self.exact) for row in fractions(inputs)]
            return torch.tensor([(product > 0) - (product < 0) for product in products], dtype=torch.int8)
        return exact_signs(inputs, torch.cat([self.weight, self.bias[None]]) if self.biased else self.weight)


@system("separability", title="Linear separability with a certificate", kind="function")
def separate(x: Shaped[Tensor, "points features"], y: Tensor, bias: bool = True) -> Separation:
    r"""Decide whether a hyperplane separates the two classes, as the numbers are stored, and prove the answer.

    $$ \max_{|w_j| \le 1,\,t}\ t \ \text{ s.t. } z_i^\top w \ge t \qquad\text{whose dual is}\qquad
       \min_{\lambda \ge 0,\ \sum_i\lambda_i = 1}\ \Big\| \sum_i \lambda_i z_i \Big\|_1 $$

    with $z_i = y_i(x_i, 1)$. The optimum is positive iff the data are separable; if it is 0 the dual solution is the
    certificate. The program is solved in floating point and its answer proved; where rounding leaves it open, the
    simplex method goes on in fractions. Only proved answers are returned: if even that would take too long, for many
    points or features within rounding of each other, the data are refused with an ArithmeticError.

    Shapes:
        x: (points, features), floating point or integer, y: (points,) of -1 and +1

    Claims: perceptron.xor, perceptron.algorithm

    >>> x = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> exclusive_or = separate(x, torch.tensor([-1, -1, 1, 1]))
    >>> exclusive_or.separable, exclusive_or.multipliers
    (False, tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64))
    >>> separate(torch.tensor([[10**13], [10**13 + 1]]), torch.tensor([-1, 1])).separable
    True
    """
    rows = _SignedRows(x, y, bias)
    weights, multipliers, order = _guess(rows.rounded.numpy())  # (inputs,), (points,), (points,)
    if rows.positive_under(weights):
        return _plane(weights, bias, x.device)
    multipliers = _refined(rows.rounded, multipliers)
    if rows.cancelled_by(multipliers):
        return Separation(False, multipliers=multipliers.to(x.device), biased=bias)
    try:
        vector, shares = rows.decide(order)
    except ArithmeticError as error:
        raise ArithmeticError(f"x and y are too close to the edge of separability to decide: {error}") from None
    if vector is None:
        rounded = torch.tensor([float(share) for share in shares], dtype=torch.double)
        return Separation(False, multipliers=rounded.to(x.device), biased=bias, exact=tuple(shares))
    # Where the vector itself, rounded, leaves a narrow cone, a multiple of it may stay inside.
    for factor in range(8, 16):
        weights = _rounded([factor * value for value in vector])
        if rows.positive_under(weights):
            return _plane(weights, bias, x.device)
    return _plane(weights, bias, x.device, exact=tuple(vector))


def _plane(weights: Tensor, bias: bool, device: torch.device, exact: tuple[Fraction, ...] | None = None) -> Separation:
    weights = weights.to(device)
    weight, intercept = (weights[:-1], weights[-1]) if bias else (weights, weights.new_zeros(()))
    return Separation(True, weight, intercept, biased=bias, exact=exact)


class _SignedRows:
    """The signed points, in double and in fractions."""

    def __init__(self, x: Tensor, y: Tensor, bias: bool) -> None:
        whole = isinstance(x, Tensor) and not x.is_floating_point() and not x.is_complex()
        # (points, inputs), and whether nothing was rounded: only whole numbers may need more than 53 bits.
        self.rounded = signed_rows(x.double() if whole else x, y, bias).double().cpu()
        self.faithful = not whole or x.element_size() < 8 or all(abs(value) <= 2**53 for value in x.flatten().tolist())
        self.x, self.y, self.bias = x, y, bias

    def fractions(self, indices: Iterable[int]) -> list[list[Fraction]]:
        chosen = list(indices)
        if self.faithful:
            return fractions(self.rounded[chosen])
        constant = [Fraction(1)] if self.bias else []
        labels = self.y[chosen].tolist()
        return [
            [int(label) * value for value in row + constant]
            for label, row in zip(labels, fractions(self.x[chosen]), strict=True)
        ]

    def positive_under(self, vector: Tensor | Sequence[Fraction]) -> bool:
        """Whether the vector has a positive product with every row."""
        if len(vector) != self.rounded.shape[1]:
            return False
        if isinstance(vector, Tensor) and not vector.isfinite().all():
            return False
        if isinstance(vector, Tensor) and self.faithful:
            products = self.rounded @ vector
            lost = 2 * gamma(len(vector)) * (self.rounded.abs() @ vector.abs()) + len(vector) * TINY
            open = ~(products > lost)  # NaN, where a sum overflowed, is open as well
            if not open.any() or (products < -lost).any():
                return not open.any()
            # The likely culprit first, which saves asking all in vain.
            open = self.rounded[open][products[open].argsort()]
            return all(bool((exact_signs(rows, vector) > 0).all()) for rows in (open[:1], open[1:]))
        exact = fractions(vector) if isinstance(vector, Tensor) else vector
        return all(_dot(row, exact) > 0 for row in self.fractions(range(len(self.rounded))))

    def cancelled_by(self, multipliers: Tensor, exact: Sequence[Fraction] | None = None) -> bool:
        """Whether these multipliers, or provably some next to them, are a convex combination of the rows that is 0."""
        total = multipliers.sum()
        if len(multipliers) != len(self.rounded) or not total.isfinite() or (multipliers < 0).any():
            return False
        if abs(total - 1) > gamma(len(multipliers)):
            return False
        if exact is not None:
            faithful = [float(share) for share in exact] == multipliers.tolist()
            return faithful and min(exact) >= 0 and sum(exact) == 1 and self._cancel(exact)
        if self.faithful:  # what rounding cannot hide takes no fractions
            support = _Support(self.rounded, multipliers)
            if support.plain and not support.vanishes:
                return False
            if support.vanishes_nearby:
                return True
        return self._cancel(fractions(multipliers))

    def _cancel(self, exact: Sequence[Fraction]) -> bool:
        support = [index for index, share in enumerate(exact) if share]
        shares = [exact[index] for index in support]
        return not any(_dot(column, shares) for column in zip(*self.fractions(support), strict=True))

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
        weights = _rounded(vector)
        # A weight below the range would be wrong by all of itself.
        normal = all(abs(weight) >= TINY or not value for weight, value in zip(weights.tolist(), vector, strict=True))
        if self.faithful and normal:
            products, sizes = self.rounded @ weights, self.rounded.abs() @ weights.abs()
            # One rounding for each weight, and those of the sum.
            lost = 2 * gamma(len(weights) + 1) * sizes + len(weights) * TINY
            wrong = (products < -lost).nonzero().flatten()
            if len(wrong):
                return wrong[(products / sizes)[wrong].argsort()].tolist()
            open = (~(products > lost)).nonzero().flatten().tolist()
        else:
            open = range(len(self.rounded))
        return [index for index, row in zip(open, self.fractions(open), strict=True) if _dot(row, vector) <= 0]


def _guess(rows: np.ndarray) -> tuple[Tensor, Tensor, list[int]]:
    """What a linear program in floating point says: weights, multipliers, and the rows in the order of their weight.

    Columns and rows are divided by powers of two, which rounds nothing, so that the solver's absolute tolerances mean
    something.
    """
    across = _exponents(rows, axis=0)  # (inputs,)
    along = _exponents(np.ldexp(rows, -across), axis=1)  # (points,)
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
    return _rounded(weights), torch.from_numpy(shares / max(shares.sum(), 1e-300)), order.tolist()


def _exponents(rows: np.ndarray, axis: int) -> np.ndarray:
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
            across = _exponents(counted, axis=0)
            along = _exponents(np.ldexp(counted, -across), axis=1)
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


def _refined(rows: Tensor, multipliers: Tensor) -> Tensor:
    found = multipliers.clone()
    found[multipliers > 0] *= _Support(rows, multipliers).refined()
    return found / found.sum()


def _rounded(values: list[Fraction]) -> Tensor:
    """The direction of a vector in double, at its own length unless numbers would leave the range."""
    exponents = [value.numerator.bit_length() - value.denominator.bit_length() for value in values if value]
    low, high = min(exponents, default=0), max(exponents, default=0)
    shift = 0 if low > -900 and high < 1000 else 1000 - high
    return torch.tensor([float(value * Fraction(2) ** shift) for value in values], dtype=torch.double)


def _dot(row: Iterable[Fraction], other: Iterable[Fraction]) -> Fraction:
    return sum(map(mul, row, other), Fraction(0))
