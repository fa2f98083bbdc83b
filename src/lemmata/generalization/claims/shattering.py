"""Sets of labellings, growth functions and VC dimension: counted, and compared with what classifiers do."""

import itertools
import math

import torch

from lemmata.generalization.risk_bounds import sauer_bound
from lemmata.generalization.shattering import growth_function, is_shattered, labellings, sine_frequency, vc_dimension
from lemmata.judge import Domain, all_of, always, at_most, claim, exactly, lie, same_everywhere


def rows(table):
    """A set of labellings."""
    return {tuple(row) for row in table.int().tolist()}


def cuts(x):
    """A place before, between and behind the numbers."""
    x = x.sort().values
    return torch.cat([x[:1] - 1, (x[1:] + x[:-1]) / 2, x[-1:] + 1])


def by_trying(x):
    """What thresholds, intervals and rectangles do when their ends are put at every place that makes a difference."""
    a, b = (cuts(x[:, k]) for k in (0, 1))
    above = [x[:, 0] >= low for low in a]
    between = [(x[:, 0] >= low) & (x[:, 0] <= high) for low in a for high in a]
    boxes = [inside & (x[:, 1] >= low) & (x[:, 1] <= high) for inside in between for low in b for high in b]
    return rows(torch.stack(above)), rows(torch.stack(between)), rows(torch.stack(boxes))


def by_lines(draw, x):
    """What 4,000 random lines do, not all that lines can."""
    sides = x @ draw.normal(2, 4000) > draw.normal(4000)
    return rows(sides.T)


@claim("slt.outcome_set")
@lie("intervals without the empty labelling", empty=0)
@lie("the growth function is the least number of labellings", over=min)
@lie("at most 1.9^n labellings", base=1.9)
@lie("lines label like lines through the origin", terms=2)
def every_labelling_once(draw, empty=1, over=max, base=2.0, terms=3):
    """Labellings of random points by trying classifiers, growth functions over all orders of the points."""
    x = draw.normal(5, 2)
    found = [rows(labellings(name, x[:, :1])) for name in ("thresholds", "intervals")]
    found.append(rows(labellings("rectangles", x)))
    lines = rows(labellings("half-spaces", x))
    sizes = range(1, 8)
    ways = {
        n: [len(labellings("rectangles", orders(heights))) for heights in itertools.permutations(range(n))]
        for n in (3, 4)
    }
    counts = [growth_function(name, n) for name in ("intervals", "half-spaces", "rectangles") for n in sizes]
    return all_of(
        exactly(tuple(found), by_trying(x)),
        always([by_lines(draw, x) <= lines, len(lines) == 2 * sum(math.comb(4, i) for i in range(terms))]),
        exactly([growth_function("thresholds", n) for n in sizes], [n + 1 for n in sizes]),
        exactly([growth_function("intervals", n) for n in sizes], [n * (n + 1) // 2 + empty for n in sizes]),
        exactly([growth_function("rectangles", n) for n in ways], [over(ways[n]) for n in ways]),
        at_most(counts, [base**n for _ in range(3) for n in sizes], attained=True),
        always([is_shattered("half-spaces", x[:3]), not is_shattered("half-spaces", x[:4])]),
    )


def orders(heights):
    """Points from left to right at these heights."""
    return torch.stack([torch.arange(len(heights)), torch.tensor(heights)], dim=1).double()


def largest_indicator(name, **choices):
    """The maximum over n of the indicator that F(n) = 2^n."""
    return max(int(growth_function(name, n, **choices) == 2**n) for n in range(1, 6))


def largest_indicator_of_sets(name, points=None, dimensions=2):
    """The maximum over sets of the indicator that all their labellings are realised."""
    if points is None:
        return largest_indicator(name, dimensions=dimensions)
    subsets = (list(s) for n in range(1, len(points) + 1) for s in itertools.combinations(range(len(points)), n))
    table = labellings(name, points)
    return max(int(len(torch.unique(table[:, s], dim=0)) == 2 ** len(s)) for s in subsets)


def without_one(labels):
    """The frequency without the summand 1 in its bracket."""
    return sine_frequency(labels) - math.pi


@claim("slt.vc_dim")
@lie("the maximum of the indicator itself", printed="000/1", dimension=largest_indicator)
@lie("the maximum of an indicator over sets", printed="001/2", dimension=largest_indicator_of_sets)
@lie("half-spaces of d dimensions shatter d points and no more", more=0)
@lie("Sauer's sum ends one term before the dimension", loose="more terms are a bound too", last=-1)
@lie("sines without the summand 1", frequency=without_one)
def the_largest_shattered_set(draw, dimension=vc_dimension, more=1, last=0, frequency=sine_frequency):
    """Dimensions of known classes, of random finite ones by their definition, and sines, which have none."""
    tables = [draw.integers(0, 2, 12, 5).bool() for _ in range(8)]
    places = torch.arange(5)[:, None]
    names = ["thresholds", "intervals", "rectangles", "discs"]
    growth = [(vc_dimension(name), n, growth_function(name, n)) for name in names for n in range(1, 7)]
    points = 2.0 ** -torch.arange(1, 9).double()
    return all_of(
        exactly([dimension(name) for name in names], [1, 2, 4, 3]),
        exactly([dimension("half-spaces", dimensions=d) for d in (1, 2, 3, 7)], [d + more for d in (1, 2, 3, 7)]),
        exactly([dimension(lambda _, t=table: t, points=places) for table in tables], [largest(t) for t in tables]),
        at_most([found for _, _, found in growth], [sauer_bound(n, d + last) for d, n, _ in growth], attained=True),
        same_everywhere(
            Domain.bits(8),
            lambda y: torch.sin(frequency(y)[:, None] * points) > 0,
            lambda y: y.bool(),
            vectorised=True,
        ),
    )


def largest(table):
    """The size of the largest set of columns with all patterns, by going through all of them."""
    found = 0
    for n in range(1, table.shape[1] + 1):
        for subset in itertools.combinations(range(table.shape[1]), n):
            if len({tuple(row[i] for i in subset) for row in table.tolist()}) == 2**n:
                found = n
    return found
