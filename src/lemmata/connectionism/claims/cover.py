"""Cover's function counting theorem: closed form, enumeration by linear programming, and what follows for capacity."""

import itertools
import math
import operator
from collections import Counter
from fractions import Fraction

import torch
from torch import Tensor

from lemmata.certified.exact_elimination import exact_rank
from lemmata.connectionism.cover import (
    count_dichotomies,
    dichotomies,
    fraction_separable,
    in_general_position,
    separable_labellings,
)
from lemmata.connectionism.separability import separate
from lemmata.connectionism.version_space import VersionSpace
from lemmata.judge import Figure, Heat, Line, all_of, always, claim, exactly, lie, probability_is


def _sorted_rows(labellings: Tensor) -> list[tuple[float, ...]]:
    return sorted(tuple(row) for row in labellings.tolist())


def _signs_of_random_units(draw, x: Tensor, bias: bool) -> list[tuple[float, ...]]:
    """All sign patterns met by 20,000 units: none is missed if each is met with a chance of a thousandth."""
    units = draw.normal(20_000, x.shape[1] + bias)
    activations = units[:, : x.shape[1]] @ x.T + (units[:, -1:] if bias else 0.0)
    return _sorted_rows(torch.unique(torch.sign(activations), dim=0))


def _narrowest_angle(x: Tensor) -> float:
    """Between the lines through the origin and each point of the plane: the least fraction of units times pi."""
    angles = (torch.atan2(x[:, 1], x[:, 0]) % math.pi).sort().values
    return float(torch.cat([angles.diff(), angles[:1] + math.pi - angles[-1:]]).min())


def _with_ties(x: Tensor, bias: bool = False) -> int:
    return 2 ** len(x)  # y_i w^T x_i >= 0 is solved by w = 0 for every y


def _one_of_each_pair(x: Tensor, bias: bool = False) -> int:
    return count_dichotomies(x, bias) // 2


@claim("cover.count")
@lie("inequalities that may be ties: w = 0 realises every labelling", count=_with_ties)
@lie("a labelling and its opposite counted as one", count=_one_of_each_pair)
@lie("a unit without a bias realises as many as one with a bias", extra=1)
def dichotomies_are_the_labellings_that_units_give(draw, count=count_dichotomies, extra=0):
    """The labellings found by linear programming are those that random units give to the points; on points in special
    position (repeated, opposite, dependent) their number is that of the separable ones among all labellings."""
    plane = draw.until(lambda: draw.normal(5, 2), lambda x: _narrowest_angle(x) > 0.1)
    line = torch.linspace(-1.0, 1.0, 4, dtype=torch.float64)[:, None]
    special = torch.tensor([[1.0, 0, 0], [2, 0, 0], [0, 1, 0], [-1, -1, 0]], dtype=torch.float64)
    labels = 2.0 * torch.cartesian_prod(*[torch.arange(2)] * len(special)) - 1
    solvable = [separate(special, y, bias=False).separable for y in labels[len(labels) // 2 :]]  # y_1 = +1
    lifted = torch.cat([plane, torch.ones(5, extra, dtype=torch.float64)], dim=1)
    return all_of(
        exactly(count(lifted), len(_signs_of_random_units(draw, plane, bias=False))),
        exactly(_sorted_rows(separable_labellings(line, bias=True)), _signs_of_random_units(draw, line, bias=True)),
        exactly(count(special), 2 * sum(solvable)),
        # The program's unit for the first point has the next two on its boundary, where it decides nothing.
        exactly(count(torch.tensor([[2.0, 2, -2], [0, -1, -1], [0, -2, -2]]).double()), 4),
    )


def _sum_of_binomials(points: int, dimensions: int, factor: int, less: int, more: int) -> int:
    return factor * sum(math.comb(points - 1 + more, i) for i in range(dimensions - less + 1))


def _constant_in_the_points(points: int, dimensions: int, factor: int, less: int, more: int) -> int:
    return factor * sum(math.comb(dimensions, i) for i in range(dimensions + 1))


def _with_a_dependent_triple(points: int, dimensions: int, draw) -> Tensor:
    x = draw.normal(points, dimensions)
    x[2] = x[0] + x[1] if dimensions > 2 else 2 * x[0]
    return x


def _general_points(points: int, dimensions: int, draw) -> Tensor:
    return draw.until(lambda: draw.normal(points, dimensions), in_general_position)


_SMALL = [  # in general position, and not; the last two for a unit with a bias
    ([[0, 1], [1, 2], [2, 3]], {}),
    ([[1, 0], [0, 1], [-2, 0]], {}),
    ([[1, 0, 0], [0, 1, 0]], {}),
    ([[1, 2, 3], [2, 4, 6]], {}),
    ([[1, 0, 0], [0, 1, 0], [1, 1, 0]], {}),
    ([[0, 0], [1, 0], [0, 1]], {"bias": True}),
    ([[0, 1], [1, 2], [2, 3]], {"bias": True}),
]


@claim("cover.theorem")
@lie(
    "the sum runs to n over the binomials of n: the same for any number of points",
    printed="002/1",
    formula=_constant_in_the_points,
)
@lie("the sum runs to n", less=0)
@lie("the binomials are those of all points", more=1)
@lie("the factor 2 is dropped", factor=1)
@lie("true of any points: three of them are dependent", place=_with_a_dependent_triple)
def a_sum_of_binomials_counts_the_dichotomies(
    draw, formula=_sum_of_binomials, factor=2, less=1, more=0, place=_general_points
):  # fmt: skip
    """Closed form against enumeration by linear programming on random points; the two agree exactly where the points
    are in general position."""
    sizes = [(1, 1), (4, 2), (5, 3), (4, 4)]
    small = [(torch.tensor(points, dtype=torch.float64), unit) for points, unit in _SMALL]
    full = [count_dichotomies(x, **unit) == dichotomies(len(x), x.shape[1], **unit) for x, unit in small]
    by_formula = [[formula(s, n, factor, less, more) for s in range(1, 21)] for n in range(9)]
    enumerated = [count_dichotomies(_general_points(s, n, draw) if s < 3 else place(s, n, draw)) for s, n in sizes]
    fractions = [[count / 2**s for s, count in enumerate(row[:16], start=1)] for row in by_formula[1:]]
    figure = Figure(
        "Fraction of the labellings that are separable", "points", "dimensions",
        [Heat(fractions, x=list(range(1, 17)), y=list(range(1, 9)), label="C(s, n) / 2ˢ")],
    )  # fmt: skip
    return all_of(
        exactly(enumerated, [by_formula[n][s - 1] for s, n in sizes]),
        exactly([dichotomies(s, n) for n in range(9) for s in range(1, 21)], list(itertools.chain(*by_formula))),
        exactly(full, [in_general_position(x, **unit) for x, unit in small]),
    ).showing(figure)


@claim("cover.recurrence")
@lie("every new point doubles the count", fewer=0)
@lie("split labellings are counted twice", times=2)
def a_new_point_splits_the_labellings_of_one_dimension_less(draw, times=1, fewer=1):
    """Integers up to 30 points and dimensions; and by linear programming: the labellings of five points that extend to
    a sixth in both ways are as many as five points have in one dimension less."""
    x = draw.until(lambda: draw.normal(6, 3), in_general_position)
    extensions = Counter(row[:-1] for row in _sorted_rows(separable_labellings(x)))
    both = sum(ways == 2 for ways in extensions.values())
    sizes = [(s, n) for s in range(1, 31) for n in range(fewer, 31)]
    return all_of(
        exactly(
            [dichotomies(s + 1, n) for s, n in sizes],
            [dichotomies(s, n) + times * dichotomies(s, n - fewer) for s, n in sizes],
        ),
        exactly(len(extensions), dichotomies(5, 3)),
        exactly(times * both, dichotomies(5, 3 - fewer)),
    )


@claim("cover.base_cases")
@lie("in one dimension every labelling is separable: C(s, 1) = 2^s", growth=2)
@lie("a single point has one labelling", single=1)
@lie("in no dimension the two constant labellings remain: C(s, 0) = 2", nothing=2)
def one_point_or_one_dimension_leaves_two_labellings(draw, single=2, growth=1, nothing=0):
    """Closed form and enumeration, up to eight points on a line and one point in up to eight dimensions."""
    numbers, some = range(1, 9), (1, 2, 8)

    def on_a_line(points):
        return 2 * growth ** (points - 1)

    lines = [draw.signs(s, 1) * draw.uniform(s, 1, low=0.1) for s in some]
    return all_of(
        exactly([count_dichotomies(draw.normal(1, n)) for n in some], [single] * 3),
        exactly([dichotomies(1, n) for n in numbers], [single] * 8),
        exactly([count_dichotomies(x) for x in lines], [on_a_line(s) for s in some]),
        exactly([dichotomies(s, 1) for s in numbers], [on_a_line(s) for s in numbers]),
        exactly([dichotomies(s, 0) for s in numbers], [nothing] * 8),
    )


@claim("cover.shattering")
@lie("n + 1 points are shattered too: C(n + 1, n) = 2^(n + 1)", missing=0)
@lie(
    "n points are shattered wherever they lie: here in a hyperplane",
    loose="points that span the space stay in general position",
    rank=4,
)
def as_many_points_as_dimensions_are_shattered(draw, missing=2, rank=5):
    """Integers up to 20 dimensions, and by linear programming on five points in five dimensions and in four."""
    # Whole numbers: products of real ones leave a hyperplane by rounding, and are shattered then.
    x = draw.until(
        lambda: draw.integers(-9, 10, 5, rank).double() @ draw.integers(-9, 10, rank, 5).double(),
        lambda x: exact_rank(x) == rank,
    )
    within = [(s, n) for n in range(1, 21) for s in range(1, n + 1)]
    beyond = range(1, 21)
    return all_of(
        exactly([dichotomies(s, n) for s, n in within], [2**s for s, n in within]),
        always(fraction_separable(s, n) == 1 for s, n in within),
        exactly([dichotomies(n + 1, n) for n in beyond], [2 ** (n + 1) - missing for n in beyond]),
        exactly(count_dichotomies(x), 2**5),
        exactly(count_dichotomies(draw.normal(5, 4)), 2**5 - missing),
    )


@claim("cover.capacity")
@lie("for s > 2n an empty version space is the exception, otherwise the rule", printed="001/1", rule=operator.lt)
@lie("after 2n the number of separable labellings moves quickly towards 0", printed="000/2", per=1)
@lie("after 2n the number of separable labellings decreases", printed="003/3", change=operator.lt)
@lie("2n is the capacity of a unit with a bias, too", extra=0)
@lie("a unit without bias stores 3n labels", times=3)
def half_of_the_labellings_are_separable_at_twice_the_dimension(
    draw, times=2, extra=1, per=2, change=operator.gt, rule=operator.gt
):
    """Exact fractions up to 4,000 dimensions, enumeration for a biased unit, and random labels of random points short
    of the capacity and beyond it."""
    half, dimensions = Fraction(1, 2), range(1, 201)
    spread = draw.until(lambda: draw.normal(2 * (1 + extra), 1), lambda x: in_general_position(x, bias=True))
    near = [(s, n) for n in (2, 5, 50) for s in range(1, 4 * n) if s != 2 * n]
    # A twentieth short of the capacity and beyond it, in ever more dimensions.
    missing = [1 - Fraction(dichotomies(19 * n // 10, n), per ** (19 * n // 10)) for n in (100, 1000, 4000)]
    left = [Fraction(dichotomies(21 * n // 10, n), per ** (21 * n // 10)) for n in (100, 1000, 4000)]

    def empty(points):
        return lambda trials: torch.tensor(
            [VersionSpace(draw.normal(points, 5), draw.signs(points), bias=False).is_empty for _ in range(trials)]
        )

    return all_of(
        exactly([fraction_separable(times * n, n) for n in dimensions], [half] * 200),
        exactly([fraction_separable(2 * (n + extra), n, bias=True) for n in dimensions], [half] * 200),
        exactly(2 * count_dichotomies(spread, bias=True), 2 ** len(spread)),
        always(first > 10 * then > 1000 * last and last < 1e-5 for first, then, last in (missing, left)),
        always((change if s > 2 * n else operator.gt)(dichotomies(s + 1, n), dichotomies(s, n)) for s, n in near),
        always(rule(1 - fraction_separable(s, n), half) is (s > 2 * n) for s, n in near),
        *(probability_is(empty(s), float(1 - fraction_separable(s, 5)), effect=0.5, alpha=5e-10) for s in (6, 20)),
    ).showing(_capacity_drop(times, extra, per))


def _capacity_drop(times: int, extra: int, per: int) -> Figure:
    """The fraction of separable labellings, which falls at the capacity, and where the capacity is said to be."""

    def curve(n: int, bias: bool, label: str) -> Line:
        points = sorted({round(n * k / 12) for k in range(1, 49)} - {0})
        return Line([s / n for s in points], [dichotomies(s, n, bias) / per**s for s in points], label=label)

    marks = [curve(n, False, f"n = {n}") for n in (5, 20, 100)]
    marks += [Line([times] * 2, [0.0, 1.0], "capacity"), curve(5, True, "n = 5 and a bias")]
    marks.append(Line([2 * (5 + extra) / 5] * 2, [0.0, 1.0], "capacity with a bias, n = 5"))
    title = "The fraction of separable labellings drops at two points per dimension"
    return Figure(title, "points per dimension", "fraction", marks)
