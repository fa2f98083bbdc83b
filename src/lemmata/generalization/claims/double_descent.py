"""Double descent: the exact curve against fits, its peak, what falls beyond it, and the ridge that removes the peak."""

import math

import torch

from lemmata.generalization.min_norm import double_descent_risk, min_norm_fit
from lemmata.judge import all_of, always, at_most, claim, close, lie, mean_is

N, FEATURES, NOISE = 12, 36, 0.25


def best_ridge(unexplained, each):
    """The ridge with the least expected risk, for true weights that are drawn alike: noise over signal."""
    return unexplained / (N * each)


def hardly_any(unexplained, each):
    """Next to no ridge."""
    return 1e-9


def risks(draw, weight, p, count, ridge=0.0):
    """Risks of `count` fits of the first p features to N examples each, and their squared lengths."""
    x = draw.normal(count, N, len(weight))
    y = x @ weight + math.sqrt(NOISE) * draw.normal(count, N)
    fit = min_norm_fit(x[..., :p].contiguous(), y, ridge)  # (count, p)
    return (fit - weight[:p]).square().sum(1) + weight[p:].square().sum() + NOISE, fit.square().sum(1)


def medians(draw, weight, ridge):
    """Median risks before, at and beyond the threshold."""
    each = float(weight.square().mean())
    found = []
    for p in (N // 2, N, 2 * N):
        unexplained = float(weight[p:].square().sum()) + NOISE
        found.append(float(risks(draw, weight, p, 300, ridge(unexplained, each))[0].median()))
    return found


@claim("slt.double_descent")
@lie("the degrees of freedom are n - p, not n - p - 1", lost=0.0)
@lie("beyond the threshold nothing of the signal is lost", kept=0.0)
@lie("there is a peak whatever the ridge", peaked=best_ridge)
@lie("without a ridge there is no peak either", smooth=hardly_any)
def the_risk_descends_twice(draw, lost=1.0, kept=1.0, peaked=hardly_any, smooth=best_ridge):
    """The formula against the means of fits, the shape of the whole curve, and medians of fits with the best ridge."""
    weight = draw.signs(FEATURES) * (2.0 / FEATURES) ** 0.5
    sizes = [*range(N - 1), *range(N + 2, FEATURES + 1)]

    def formula(p):
        inside, rest = float(weight[:p].square().sum()), float(weight[p:].square().sum()) + NOISE
        if p < N:
            return rest * (1 + p / (N - p - lost))
        return inside * (1 - kept * N / p) + rest * (1 + N / (p - N - lost))

    curve = [double_descent_risk(weight, p, N, NOISE) for p in range(FEATURES + 1)]
    shown = {p: curve[p].risk for p in sizes}
    norms = torch.tensor([curve[p].squared_norm for p in sizes if p > N], dtype=torch.float64)
    simulated = [
        mean_is(
            lambda v: v, lambda n, p=p: risks(draw, weight, p, n)[0], formula(p), effect=0.15 * shown[p], alpha=1e-10
        )
        for p in (3, 30)
    ]
    length = mean_is(
        lambda v: v, lambda n: risks(draw, weight, 30, n)[1], curve[30].squared_norm, effect=0.1, alpha=1e-10
    )
    first = torch.tensor([1.0, 1.0] + [0.0] * (FEATURES - 2), dtype=torch.float64)  # all signal in two features
    least = [
        [min(double_descent_risk(w, p, N, NOISE).risk for p in sizes if (p > N) == beyond) for beyond in (False, True)]
        for w in (weight, first)
    ]
    with_peak, without = (medians(draw, weight, ridge) for ridge in (peaked, smooth))
    return all_of(
        close([curve[p].risk for p in sizes], [formula(p) for p in sizes], ulps=256),
        *simulated,
        length,
        always([math.isinf(curve[p].risk) for p in (N - 1, N, N + 1)]),
        always([least[0][1] < least[0][0], least[1][1] > least[1][0]]),
        at_most(norms.diff(), 0.0),
        always([with_peak[1] > 2 * max(with_peak[0], with_peak[2]), without[1] < 1.3 * max(without[0], without[2])]),
    )
