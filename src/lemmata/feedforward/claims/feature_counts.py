"""Features that are fixed beforehand: how many a space of many dimensions takes."""

import itertools
import math

import torch

from lemmata.figure import Figure, Line
from lemmata.judge import Domain, all_of, claim, close, exactly, lie, probability_is, same_everywhere, slope_is


def _binomial_count(d, degree):
    return math.comb(d + degree, degree)


def _product_count(d, degree):
    return d * degree


@claim("mlp.polynomial_features")
@lie("d K features", formula=_product_count)
@lie("as many of degree exactly K", fewer=0)
@lie("they grow as d^(K-1)", exponent=2.0)
def monomials_are_counted_by_a_binomial(draw, formula=_binomial_count, fewer=1, exponent=3.0):
    """Every list of exponents of few variables; growth at degree three, up to ten thousand variables."""

    def up_to(d, degree):
        return sum(1 for powers in itertools.product(range(degree + 1), repeat=d) if sum(powers) <= degree)

    def exact(d, degree):
        return sum(1 for _ in itertools.combinations_with_replacement(range(d), degree))

    sizes = [1000, 2000, 5000, 10_000]
    counts = [formula(d, 3) for d in sizes]
    few = range(1, 30)
    figure = Figure(
        "Monomials", "variables", "features",
        [Line(list(few), [formula(d, k) for d in few], f"degree {k}") for k in (1, 2, 3, 4, 5)], y_log=True,
    )  # fmt: skip
    cases = Domain.range(1, 6) * Domain.range(1, 6)
    return all_of(
        same_everywhere(cases, up_to, formula),
        same_everywhere(Domain.range(1, 7) * Domain.range(1, 7), exact, lambda d, k: math.comb(d + k - fewer, k)),
        slope_is(sizes, counts, exponent, within=0.02),
        close([n / (d**exponent / 6) for n, d in zip(counts, sizes, strict=True)], 1.0, within=0.01),
    ).showing(figure)


def _power_count(bins, d):
    return bins**d


@claim("mlp.grid_features")
@lie("K d cells suffice", cells=_product_count)
@lie("one axis needs no bins", axes=-1)
def a_grid_has_exponentially_many_cells(draw, cells=_power_count, axes=0):
    """The cells that points of a fine lattice fall into; and how often a random point falls into K d drawn cells."""
    sizes = [(2, 1), (2, 5), (3, 4), (5, 3), (10, 2)]
    hit = []
    for bins, d in sizes:
        side = (torch.arange(2 * bins, dtype=torch.float64) + 0.5) / (2 * bins)
        lattice = torch.cartesian_prod(*[side] * d).reshape(-1, d)
        hit.append(len(torch.unique((bins * lattice).long(), dim=0)))
    some = draw.permutation(4**3)[: 4 * 3]

    def held(n):
        number = (4 * draw.uniform(n, 3)).long() @ 4 ** torch.arange(3)  # of each point's cell
        return torch.isin(number, some)

    return all_of(
        exactly(hit, [cells(bins, d + axes) for bins, d in sizes]),
        probability_is(held, 4 * 3 / cells(4, 3 + axes), effect=0.01),
    )
