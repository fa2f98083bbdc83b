"""Novikoff's theorem: its two lemmas, the bound with and without a bias, and how hard small margins really are."""

import itertools
import math
from fractions import Fraction

import torch

from lemmata.connectionism.linear_threshold import augment, dataset_margin, geometric_margin
from lemmata.connectionism.max_margin import MaximumMarginClassifier
from lemmata.connectionism.perceptron import Perceptron
from lemmata.judge import (
    Figure,
    Line,
    Points,
    all_of,
    at_least,
    at_most,
    claim,
    close,
    exactly,
    lie,
    mean_is,
    slope_is,
)


def planted(draw, points, features, margin):
    """Unit vectors with their labels, all at least `margin` away from the boundary of a unit vector w; and w."""
    w = draw.unit(features)
    x = draw.unit(12 * points, features)
    x = x[(x @ w).abs() >= margin][:points]
    return x, torch.where(x @ w > 0, 1.0, -1.0).to(x), w


def planted_sets(draw, number):
    """Planted data of many sizes and margins."""
    sizes = itertools.cycle(itertools.product([5, 20, 100], [2, 4, 10], [0.05, 0.2]))
    return [planted(draw, *size) for size in itertools.islice(sizes, number)]


def fit(x, y, bias=False):
    """The run of the perceptron whose steps the theorem counts."""
    return Perceptron(bias=bias, record=True).fit(x, y)


def without_label(weight, bias, x, y):
    """The signed distance to the boundary, whatever the label."""
    return geometric_margin(weight, bias, x, torch.ones_like(y))


@claim("perceptron.alignment_lemma")
@lie("every update gains twice the margin", factor=2.0)
@lie("the gain is the margin without the label", gain=without_label)
def every_update_gains_the_margin(draw, factor=1.0, gain=geometric_margin):
    """The product of planted and learnt weights after every update, for 50 planted sets and a single point."""
    sets = [*planted_sets(draw, 50), (torch.ones(1, 1).double(), torch.ones(1).double(), torch.ones(1).double())]
    progress, lower, gains, margins = [], [], [], []
    for x, y, w in sets:
        learnt = fit(x, y)
        along = learnt.trajectory_[:, :-1] @ w  # (updates + 1,)
        progress.append(along[1:])
        lower.append(factor * torch.arange(1, len(along)).double() * dataset_margin(w, 0.0, x, y))
        gains.append(along.diff())
        margins.append(gain(w, 0.0, x[learnt.updates_], y[learnt.updates_]))
    return all_of(
        at_least(torch.cat(progress), torch.cat(lower), attained=True),
        close(torch.cat(gains), torch.cat(margins), scale=torch.cat(progress).max()),
    )


@claim("perceptron.norm_lemma")
@lie("the norm grows only like the fourth root", power=0.25)
@lie("R is the mean length of the points", radius=torch.mean)
def the_norm_grows_like_the_root_of_the_updates(draw, power=0.5, radius=torch.amax):
    """The length of the weights after every update on planted, on inseparable and on orthogonal data."""
    sets = [(x * draw.uniform(len(x), 1, low=0.5), y) for x, y, _ in planted_sets(draw, 30)]
    square = torch.tensor(list(itertools.product([0.0, 1.0], repeat=2)), dtype=torch.float64)
    sets.append((augment(square), torch.tensor([-1, 1, 1, -1])))
    sets += [(2 * torch.eye(n, dtype=torch.float64), draw.signs(n)) for n in (2, 5, 9)]
    lengths, bounds = [], []
    for x, y in sets:
        path = fit(x, y).trajectory_[1:, :-1]
        lengths.append(path.norm(dim=1))
        bounds.append(radius(x.norm(dim=1)) * torch.arange(1, len(path) + 1).double() ** power)
    # Orthogonal points of one length attain the bound at every update.
    orthogonal = close(torch.cat(lengths[-3:]), torch.cat(bounds[-3:]))
    return all_of(at_most(torch.cat(lengths), torch.cat(bounds)), orthogonal)


def stretched_axes(*squares):
    """Orthogonal points of these squared lengths, all labelled +1, with the exact R²/γ² of their best margin."""
    x = torch.diag(torch.tensor([float(square) for square in squares], dtype=torch.float64).sqrt())
    # The best unit vector has the same margin at all of them: 1/γ² is the sum of their 1/‖x‖².
    return x, torch.ones(len(squares)), max(squares) * sum(1 / Fraction(square) for square in squares)


def even_axes(draw, n):
    """Orthogonal points of one length, their labels, and the unit vector of the best margin."""
    length = draw.uniform(1, low=0.1, high=9.0)
    return length * torch.eye(n).double(), torch.ones(n), torch.ones(n).double() / n**0.5


@claim("perceptron.novikoff")
@lie("fewer than ⌊R²/γ²⌋ updates", printed="003/1", more=-1)
@lie("the bound is the next whole number above R²/γ²", rounded=math.ceil)
@lie("at most R/γ updates", exponent=1.0)
@lie("the cosine grows like the number of updates", growth=1.0)
def mistakes_are_at_most_the_squared_ratio(draw, more=0, rounded=math.floor, exponent=2.0, growth=0.5):
    """Updates against R²/γ² on 100 planted sets, and on orthogonal points where the bounds are attained."""

    def bound(ratio):
        return rounded(ratio**exponent * (1 + 1e-12)) + more  # the margin is known up to rounding

    mistakes, ratios, bounds, cosines, lower = [], [], [], [], []
    for x, y, w in planted_sets(draw, 100) + [even_axes(draw, n) for n in (2, 5, 9)]:
        learnt, margin, radius = fit(x, y), dataset_margin(w, 0.0, x, y), x.norm(dim=1).max()
        path = learnt.trajectory_[1:, :-1]  # (updates, features)
        cosines.append(path @ w / path.norm(dim=1))
        lower.append(torch.arange(1, len(path) + 1).double() ** growth * margin / radius)
        mistakes.append(learnt.mistakes_)
        ratios.append(float(radius / margin))
        bounds.append(bound(ratios[-1]))
    axes = [stretched_axes(*s) for s in [(1,), (1, 1), (1,) * 5, (1,) * 60, (4, 4, 3), (2, 3, 3, 3, 3), (8, 8, 7, 6)]]
    sharp = [rounded(square ** (Fraction(exponent) / 2)) + more for _, _, square in axes]
    return all_of(
        at_most(mistakes, bounds),
        exactly([fit(x, y).mistakes_ for x, y, _ in axes], sharp),
        at_least(torch.cat(cosines), torch.cat(lower)),
        close(torch.cat(cosines[-3:]), torch.cat(lower[-3:])),  # orthogonal points of one length
    ).showing(below_the_bound(ratios, mistakes, bound, growth))


def below_the_bound(ratios, mistakes, bound, growth):
    """Every run and the stairs of the bound as it was moved, and where the bound on the cosine would pass 1."""
    across = torch.logspace(math.log10(min(ratios)), math.log10(max(ratios)), 300).tolist()
    stairs = [(x, bound(before)) for before, after in itertools.pairwise(across) for x in (before, after)]
    drawn = [(x, y) for x, y in stairs if y > 0]  # the axis is logarithmic: a bound of 0 lies below it
    above = [ratio for ratio, made in zip(ratios, mistakes, strict=True) if made > bound(ratio)]
    within = [ratio for ratio in ratios if ratio not in above]
    made = dict(zip(ratios, mistakes, strict=True))
    name = "the bound" if len(drawn) == len(stairs) else "the bound, 0 before it"
    marks = [
        Points(within, [made[ratio] for ratio in within], "one data set each"),
        Line([x for x, _ in drawn], [y for _, y in drawn], name),
        Line(across, [ratio ** (1 / growth) for ratio in across], "where the cosine would pass 1"),
    ]
    marks += [Points(above, [made[ratio] for ratio in above], "above the bound")] if above else []
    return Figure("Novikoff's bound", "R/γ", "updates", marks, x_log=True, y_log=True)


def absorbed(x, y, added):
    """R² + 1 and the best margin of (w, b) as one vector, on the points (x, 1)."""
    return longest(x) + added, MaximumMarginClassifier(bias=False).fit(augment(x), y).margin_


def raw(x, y, added):
    """R² and the best margin of the points as they are."""
    return longest(x), MaximumMarginClassifier().fit(x, y).margin_


def longest(x):
    """The largest squared length."""
    return x.square().sum(dim=1).max()


@claim("perceptron.novikoff_bias")
@lie("R²/γ² of the points as they are is a bound although b is trained", sizes=raw)
@lie("the constant input adds 2 to R²", added=2.0)
def with_a_bias_the_bound_is_that_of_the_absorbed_data(draw, sizes=absorbed, added=1.0):
    """Updates of the perceptron with a bias on planted sets off the origin, and on pairs where simpler bounds fail."""
    sets = []
    for high, low in ((0.01, -0.01), (1.0, -1.0), (11.0, 9.0)):
        sets.append((torch.tensor([[high], [low]], dtype=torch.float64), torch.tensor([1.0, -1.0]).double()))
    for x, y, _ in planted_sets(draw, 40):
        if len(y.unique()) == 2:
            sets.append((x + draw.normal(x.shape[1]), y))
    mistakes = [fit(x, y, bias=True).mistakes_ for x, y in sets]
    ratios = [float(square / margin**2) for square, margin in (sizes(*instance, added) for instance in sets)]
    bounds = [math.floor(ratio * (1 + 1e-12)) for ratio in ratios]  # margins are known up to rounding
    # The second pair, ±1, attains the bound 2 exactly: its absorbed points are orthogonal.
    return all_of(
        at_most(mistakes, bounds),
        exactly(mistakes[1], bounds[1]),
        close([longest(augment(x)) for x, _ in sets], [longest(x) + added for x, _ in sets]),
    )


GAMMAS = [0.4, 0.1, 0.025]


def updates_at_each_margin(draw, count):
    """Updates on `count` independent families of planted sets, one set for each margin of the list."""
    rows = [[fit(*planted(draw, 100, 5, gamma)[:2]).mistakes_ for gamma in GAMMAS] for _ in range(count)]
    return torch.tensor(rows, dtype=torch.float64)


def exponents(updates):
    """The slope of log updates over log 1/margin, for each family by itself."""
    across = -torch.tensor(GAMMAS, dtype=torch.float64).log()
    across = across - across.mean()
    return updates.log() @ across / across.square().sum()


@claim("perceptron.margin_difficulty")
@lie("the worst case grows like the inverse margin", worst=1.0)
@lie(
    "random data are as hard as the worst case",
    regime="the exponent on random data is near 1, well inside the range",
    loose="a wider range is true as well",
    least=2.0,
)
@lie(
    "on random data the number of updates does not depend on the margin",
    regime="the exponent on random data is near 1, well inside the range",
    loose="a wider range is true as well",
    most=0.0,
)
def smaller_margins_take_more_updates(draw, worst=2.0, least=0.5, most=1.5):
    """The power of 1/γ with which updates grow: random sets, and orthogonal points, which are the worst."""
    spread = {"effect": 0.8, "alpha": 5e-10, "pilot": 40}  # the exponent is near 1: either lie is wrong by 1
    dimensions = [2, 8, 32, 128]
    margins = [n**-0.5 for n in dimensions]
    hardest = [fit(torch.eye(n).double(), torch.ones(n)).mistakes_ for n in dimensions]
    shown = updates_at_each_margin(draw, 10)
    return all_of(
        slope_is(margins, hardest, -worst, within=0.01),
        at_most(shown, torch.tensor(GAMMAS, dtype=torch.float64) ** -worst),
        mean_is(exponents, lambda n: updates_at_each_margin(draw, n), least, side="at_least", **spread),
        mean_is(exponents, lambda n: updates_at_each_margin(draw, n), most, side="at_most", **spread),
    ).showing(growth_figure(margins, hardest, shown.log().mean(dim=0).exp(), worst, least, most))


def growth_figure(margins, hardest, shown, worst, least, most):
    """The worst case and random data, each with the powers of the margin that are claimed of it."""
    middle = GAMMAS[1]

    def line(height, power, label):
        return Line([GAMMAS[-1], 1.0], [height * (middle / gamma) ** power for gamma in (GAMMAS[-1], 1.0)], label)

    marks = [
        Points(margins, hardest, "orthogonal points"),
        line(middle**-worst, worst, "worst case"),
        Points(GAMMAS, shown, "mean of ten random sets"),
        line(float(shown[1]), least, "random data: least growth"),
        line(float(shown[1]), most, "random data: largest growth"),
    ]
    return Figure("Updates against the margin, for R = 1", "margin γ", "updates", marks, x_log=True, y_log=True)
