"""Interval arithmetic against exact ranges: every operation encloses what it should, and not much more."""

from fractions import Fraction

import torch

from lemmata.foundations.function_values import batch_gradients, batch_hessians, batch_values
from lemmata.foundations.interval_curvature import Jet, curvature_bounds
from lemmata.foundations.intervals import Interval
from lemmata.foundations.regions import Box
from lemmata.judge import always, at_least, at_most, close

EPS = torch.finfo(torch.float64).eps
LOWS, HIGHS = torch.tensor(
    [[1.0, -2.0, -1.0, -2.0, 0.0, -1.0, 0.5, -0.5, -0.5], [2.0, -1.0, 2.0, 1.0, 1.0, 0.0, 0.5, -0.5, 0.5]],
    dtype=torch.float64,
)
SHARES = torch.linspace(0.0, 1.0, 31, dtype=torch.float64)
INSIDE = LOWS + (HIGHS - LOWS) * SHARES[:, None]  # with 0 among the points wherever it lies inside


def enclosures(draw):
    """All that certifies a curvature: intervals, derivatives over a box, and the cutting of the box."""
    return [*ranges(), *cosines(draw), *exact_arithmetic(draw), *sums(draw), *derivatives(draw), *cut_boxes()]


def is_range(found, values):
    """The smallest interval that holds the values, up to rounding outwards."""
    low, high = values.amin(0), values.amax(0)
    return [
        always((found.low <= low) & (high <= found.high)),
        close(found.low, low, scale=8.0),
        close(found.high, high, scale=8.0),
    ]


def ranges():
    """Sums, products and functions of one variable at all patterns of signs, against the values on a grid."""
    one, two = Interval(LOWS, HIGHS)[:, None], Interval(LOWS, HIGHS)[None]
    x, y = INSIDE[:, None, :, None], INSIDE[None, :, None, :]
    apart = (LOWS > 0) | (HIGHS < 0)
    parts = [
        *is_range(one + two, (x + y).flatten(0, 1)),
        *is_range(one * two, (x * y).flatten(0, 1)),
        *is_range(-Interval(LOWS, HIGHS), -INSIDE),
        *is_range(Interval(LOWS, HIGHS)[apart].reciprocal(), 1 / INSIDE[:, apart]),
        *is_range(Interval(LOWS, HIGHS).increasing(torch.exp), INSIDE.exp()),
        *is_range(Interval(LOWS, HIGHS).even_falling(lambda u: 1 / (1 + u**2)), 1 / (1 + INSIDE**2)),
    ]
    for exponent in range(6):
        parts += is_range(Interval(LOWS, HIGHS).power(exponent), INSIDE**exponent)
    return parts


def cosines(draw):
    """Where a turn lies inside, the cosine reaches 1 or -1 there; elsewhere its ends are those of the interval."""
    low = draw.uniform(150, low=-12.0, high=12.0)
    high = low + draw.uniform(150, high=8.0) * (draw.uniform(150) < 0.9)
    values = torch.cos(low + (high - low) * torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)[:, None])
    found = Interval(low, high).cosine()
    return [
        always((found.low <= values.amin(0)) & (values.amax(0) <= found.high)),
        close(found.low, values.amin(0), within=3e-6),  # the grid misses an extreme by half a step: 0.002² / 2
        close(found.high, values.amax(0), within=3e-6),
    ]


def holds(found, exact):
    """Whether each interval holds its fraction."""
    ends = zip(found.low.tolist(), exact, found.high.tolist(), strict=True)
    return [Fraction(low) <= middle <= Fraction(high) for low, middle, high in ends]


def exact_arithmetic(draw):
    """Sums and products of numbers of all sizes hold the exact fraction, and functions may err by six units."""
    found = []
    for size, other in ((1.0, 1.0), (1e10, 1e10), (1e-10, 1e-10), (1e200, 1e-200), (1e-200, 1e-200)):
        a, b = size * draw.normal(60), other * draw.normal(60)
        pairs = [(Fraction(p), Fraction(q)) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
        found += holds(Interval(a) + Interval(b), [p + q for p, q in pairs])
        found += holds(Interval(a) * Interval(b), [p * q for p, q in pairs])
    x = 20 * draw.normal(200)
    wrong = [Interval(x).increasing(lambda u, e=e: u.exp() * (1 + e * EPS)) for e in (-6, 6)]
    return [
        always(found),
        *(always((image.low <= x.exp()) & (x.exp() <= image.high)) for image in wrong),
        *(at_most((image.high - image.low) / x.exp(), 32 * EPS) for image in wrong),
    ]


def sums(draw):
    """Sums in which all digits cancel but the last, and images under matrices, over points of the intervals."""
    great = 2.0**52 * draw.normal(40, 1).round()
    terms = torch.cat([great, draw.normal(40, 6), -great], dim=1)
    exact = [sum(map(Fraction, row), Fraction(0)) for row in terms.tolist()]
    found = Interval(terms).sum(1)
    low, matrix = draw.normal(5, 3), draw.normal(4, 5)
    high = low + draw.uniform(5, 3)
    weight = matrix[..., None]
    by_sign = [(weight * torch.where(weight > 0, *ends)).sum(1) for ends in ((low, high), (high, low))]
    mapped, cancelled = Interval(low, high).mapped(matrix), Interval(terms.T).mapped(torch.ones(1, 8).double())
    total = Interval(low, high).sum(0)
    return [
        always(holds(found, exact)),
        always(holds(cancelled[0], exact)),
        close([mapped.low, mapped.high], torch.stack(by_sign), scale=8.0),
        always((mapped.low <= by_sign[0]) & (by_sign[1] <= mapped.high)),
        close([total.low, total.high], torch.stack([low.sum(0), high.sum(0)]), scale=8.0),
        at_most(found.high - found.low, 64 * EPS * terms.abs().sum(1)),
    ]


def steps_intervals_know(draw):
    """Functions of three variables, which between them take every step that intervals know."""
    matrix, shift, along = draw.normal(4, 3), draw.normal(4), draw.uniform(3, low=0.5, high=1.0)
    functional, one = torch.nn.functional, torch.ones(3, dtype=torch.float64)
    return [
        lambda t: (torch.exp(-0.3 * t.square()) * torch.tanh(matrix @ t)[:3]).sum(),
        lambda t: (one - t).sum() ** 3 + (3 + t[0]) ** -2.0 + (t[1] + 0.1) ** 0 * t[2] ** 1 - t[0] * (t[1] * t[1]),
        lambda t: 0.1 / (2 + torch.cos(2 * t)).sum() - torch.sin(t).mean() * 0.5 + sum(t**5),
        lambda t: torch.log(1.5 + t.square()).sum() / 2.5 + (1 + t @ t).sqrt() + (t @ along + 5) ** 0.5,
        lambda t: (torch.sigmoid(3 * t) / (2 + torch.tanh(t))).sum(),
        lambda t: functional.softplus(functional.linear(t, matrix, bias=shift)).reshape(-1).sum() * t[0],
        lambda t: functional.softplus(functional.linear(t, matrix)).sum() / (t[1:] @ along[1:] + 9).reshape(-1).sum(),
        lambda t: torch.logsumexp(t @ matrix.T + 900 * torch.tensor([1.0, -1.0, 1.0, 1.0]), dim=0),
        lambda t: torch.add(t, 1.0)[1] * t.sum() - (along / (4 + t)).sum(),
    ]


def derivatives(draw):
    """At a point the derivatives of automatic differentiation; over a box, enclosures of those at its points."""
    parts = []
    x = draw.uniform(3, low=-0.5, high=0.5)
    corners = Box(x - 0.1, x + 0.1).corners()
    for f in steps_intervals_know(draw):
        exact = [of(f, torch.cat([x[None], corners])) for of in (batch_values, batch_gradients, batch_hessians)]
        point, box = over(f, x, x), over(f, x - 0.1, x + 0.1)
        for at_point, over_box, values in zip(point, box, exact, strict=True):
            low, high = over_box.low.reshape(values[0].shape), over_box.high.reshape(values[0].shape)
            size = float(values[0].abs().max()) + 1
            parts += [
                close(at_point.low.reshape(values[0].shape), values[0], within=1e-9 * size),
                close(at_point.high.reshape(values[0].shape), values[0], within=1e-9 * size),
                always((low <= values) & (values <= high)),
                at_most(high - low, 100 * size),
            ]
    return parts


def over(f, low, high):
    """The enclosures of a function, its gradient and its Hessian over a box."""
    n = len(low)
    found = f(Jet(Interval(low, high), Interval(torch.eye(n)), Interval(torch.zeros(n, n, n))))
    return found.value, found.slope, found.bend


def box(low, high):
    return Box(torch.tensor(low, dtype=torch.float64), torch.tensor(high, dtype=torch.float64))


def cut_boxes():
    """Over a whole box the bound is that of the enclosed matrix; where the box must be cut, one part in a hundred."""
    # Told that what was seen is enormous, it has nothing to cut: the Hessian of the first is [[6x, 3], [3, 6y]].
    sides = box([0.0, 1.0], [1.0, 4.0])
    whole = curvature_bounds(lambda t: t[0] ** 3 + t[1] ** 3 + 3 * t[0] * t[1], sides, 1e9, "largest")
    middle = torch.linalg.eigvalsh(torch.tensor([[3.0, 3.0], [3.0, 15.0]], dtype=torch.float64))
    bowl = curvature_bounds(lambda t: torch.exp(t.square()).sum(), box([-1.0], [1.0]), 1e9, "largest") or (0.0, 0.0)
    unknown = [lambda t: torch.sub(t, t, alpha=2).sum(), lambda t: t.abs().sum()]

    # One variable matters little, and its side of the box is the longest.
    def bowl_of_one(t):
        return 5 * t[1] ** 2 + t[1] * torch.exp(-t[1])

    grid = torch.linspace(1.0, 2.0, 101, dtype=torch.float64)
    bends = 10 + (grid - 2) * torch.exp(-grid)
    sides = box([2500.0, 1.0], [3000.0, 2.0])
    (least, _), (steepest, _), (_, largest) = (
        curvature_bounds(f, sides, seen, aim) or (0.0, 0.0)
        for f, seen, aim in (
            (lambda t: bowl_of_one(t) + 20 * t[0] ** 2, float(bends.min()), "least"),
            (lambda t: -1e-3 * bowl_of_one(t), 1e-3 * float(bends.max()), "largest"),
            (bowl_of_one, float(bends.max()), "largest"),
        )
    )
    return [
        close(whole or (0.0, 0.0), (float(middle[0]) - 9, float(middle[1]) + 9), within=1e-12),
        close(bowl[0], 2.0, within=1e-12),
        always([curvature_bounds(f, box([0.0], [1.0]), 1.0, "largest") is None for f in unknown]),
        at_most(least, bends.min()),
        at_least(least, 0.989 * bends.min()),
        at_least(largest, bends.max()),
        at_most(largest, 1.011 * bends.max()),
        at_most(1e3 * steepest, -bends.max()),
        at_least(1e3 * steepest, -1.011 * bends.max()),
    ]
