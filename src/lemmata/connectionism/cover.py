r"""Cover's function counting: how many labellings of a set of points a linear threshold unit can realise.

`dichotomies` is the closed form for points in general position, `count_dichotomies` counts for the points at hand,
whatever their position, and proves each of its answers, on the numbers as they are stored. By default units have no
bias; a bias is one more dimension, in which every point has the coordinate 1.
"""

import itertools
import math
from fractions import Fraction

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.exact_elimination import exact_rank
from lemmata.certified.rounding import gamma
from lemmata.connectionism.linear_threshold import augment
from lemmata.connectionism.separability import Separation, separate
from lemmata.marks import system

MAX_SUBSETS = 10**7  # a limit of time

__all__ = ["dichotomies", "fraction_separable", "separable_labellings", "count_dichotomies", "in_general_position"]


@system("dichotomies", title="Cover's count of linear dichotomies", kind="function")
def dichotomies(points: int, dimensions: int, bias: bool = False) -> int:
    r"""The number of labellings of points in general position that a linear threshold unit realises (Cover's theorem).

    $$ C(s, n) = 2\sum_{i=0}^{n-1}\binom{s-1}{i} $$

    An exact integer, which does not depend on where the points lie. With a bias, $n + 1$ stands for $n$.

    Claims: cover.theorem, cover.recurrence, cover.base_cases, cover.shattering, cover.capacity
    Source: Cover 1965.

    >>> dichotomies(4, 3), dichotomies(4, 2), dichotomies(4, 2, bias=True)
    (14, 8, 14)
    """
    points = validate.count("points", points)
    terms = validate.count("dimensions", dimensions, least=0) + validate.flag("bias", bias)
    total, binomial = 0, 1
    for i in range(min(terms, points)):
        total += binomial
        binomial = binomial * (points - 1 - i) // (i + 1)
    return 2 * total


def fraction_separable(points: int, dimensions: int, bias: bool = False) -> Fraction:
    r"""The probability that random labels of points in general position are linearly separable, as an exact fraction.

    $$ \frac{C(s,n)}{2^s}: \quad 1 \text{ for } s \le n, \qquad \tfrac12 \text{ at the capacity } s = 2n, \qquad
       \to 0 \text{ beyond} $$

    Claims: cover.capacity, cover.shattering

    >>> fraction_separable(3, 3), fraction_separable(6, 3), fraction_separable(12, 3)
    (Fraction(1, 1), Fraction(1, 2), Fraction(67, 2048))
    """
    return Fraction(dichotomies(points, dimensions, bias), 2**points)


def separable_labellings(x: Float[Tensor, "points features"], bias: bool = False) -> Float[Tensor, "labellings points"]:
    r"""Every labelling of the points that a linear threshold unit realises, one row of -1 and +1 for each.

    $$ \{\, y \in \{\pm1\}^s : \exists w\ \forall i:\ y_i w^\top x_i > 0 \,\} $$

    The points join one at a time. A labelling of the first $k$ points extends to the next one in the way its own unit
    already classifies that point, and possibly in the other way: only this takes a linear program. Hence about
    $C(s, n)$ programs instead of $2^s$.

    Shapes:
        x: (points, features)    returns: (labellings, points)

    Claims: cover.count, cover.theorem, cover.recurrence, cover.base_cases, cover.shattering, cover.capacity

    >>> separable_labellings(torch.tensor([[1.0], [-2.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = validate.matrix("x", x).detach()
    rows = (augment(x) if validate.flag("bias", bias) else x).double().cpu()  # (points, inputs)
    known = [([1.0], unit) for unit in _unit_for_labels(rows[:1], [1.0], None)]
    for k in range(2, len(rows) + 1):
        known = [
            ([*labels, label], wider)
            for labels, unit in known
            for label in (1.0, -1.0)
            for wider in _unit_for_labels(rows[:k], [*labels, label], unit)
        ]
    half = torch.tensor([labels for labels, _ in known], dtype=x.dtype, device=x.device).reshape(-1, len(x))
    # If w realises y, then -w realises -y: the first label may be held at +1.
    return torch.cat([half, -half])  # (labellings, points)


def count_dichotomies(x: Float[Tensor, "points features"], bias: bool = False) -> int:
    r"""The number of labellings of these very points that a linear threshold unit realises.

    $$ \mathcal C(S, n) = \left|\{\, y \in \{\pm1\}^s : \exists w\ \forall i:\ y_i w^\top x_i > 0 \,\}\right| $$

    Equal to `dichotomies(points, features)` in general position, smaller otherwise.

    Shapes:
        x: (points, features)

    Claims: cover.count, cover.theorem, cover.base_cases, cover.shattering, cover.capacity

    >>> square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> count_dichotomies(square, bias=True)  # all 16 but exclusive or and its complement
    14
    """
    return len(separable_labellings(x, bias))


def in_general_position(x: Float[Tensor, "points features"], bias: bool = False) -> bool:
    r"""Whether the points are as independent as their number allows: any $\min(s, n)$ of them are linearly independent.

    With a bias that reads: no two are equal, no three lie on a line, no four in a plane, ..., up to $n + 1$ points.
    It is asked of the numbers as they are stored: a rounding bound proves most subsets independent, and the rank of the
    others is taken without rounding.

    Shapes:
        x: (points, features)

    Claims: cover.theorem

    >>> line = torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
    >>> in_general_position(line), in_general_position(line, bias=True)
    (True, False)
    """
    x = validate.matrix("x", x).detach()
    rows = (augment(x) if validate.flag("bias", bias) else x).double().cpu()  # (points, inputs)
    size = min(rows.shape)
    if math.comb(len(rows), size) > MAX_SUBSETS:
        raise ValueError(
            f"x must have fewer points: {len(rows)} of them have {math.comb(len(rows), size):,} subsets to test"
        )
    scaled = _scale_rows(rows)
    subsets = itertools.combinations(range(len(rows)), size)
    while block := list(itertools.islice(subsets, 100_000)):
        chosen = torch.tensor(block)  # (subsets, size)
        for subset in chosen[~_rows_independent(scaled[chosen])].tolist():
            if exact_rank(rows[subset]) < size:
                return False
    return True


def _scale_rows(rows: Tensor) -> Tensor:
    """The rows, and their columns, divided by powers of two; NaN where that would round: nothing is proved of it."""
    scaled = rows
    for axis in (0, 1):
        exponents = torch.frexp(scaled.abs().amax(dim=axis, keepdim=True)).exponent
        scaled = torch.ldexp(torch.ldexp(scaled, -(exponents // 2)), exponents // 2 - exponents)  # 2^1074 is no float
    return torch.where((rows == 0) | (scaled.abs() > 2.0**-500), scaled, torch.nan)


def _rows_independent(rows: Tensor) -> Tensor:
    """Whether the rows of each matrix are proved independent: they have a right inverse but for an error below 1.

    The error is that of the inverse and of the product that tests it, the bound twice over for its own rounding.
    """
    size = rows.shape[-2]
    square = size == rows.shape[-1]
    inverse = torch.linalg.inv_ex(rows).inverse if square else torch.linalg.pinv(rows.nan_to_num())
    error = (rows @ inverse - torch.eye(size, dtype=rows.dtype)).abs()
    error = error + 2 * gamma(rows.shape[-1] + 1) * (rows.abs() @ inverse.abs())
    return 2 * error.sum(-1).amax(-1) < 1  # false for NaN and infinity


def _unit_for_labels(rows: Tensor, labels: list[float], unit: Separation | None) -> list[Separation]:
    """A unit that gives the rows these labels, or none: the one at hand if it does, else what `separate` finds."""
    if unit is not None and unit.signs(rows[-1:]).item() == labels[-1]:
        return [unit]
    found = separate(rows, torch.tensor(labels, dtype=torch.double), bias=False)
    return [found] if found.separable else []
