"""Double descent: the exact curve against fits, its peak, what falls beyond it, and the ridge that removes the peak."""

import math

import torch

from lemmata.generalization.min_norm import double_descent_risk, min_norm_fit
from lemmata.judge import all_of, always, at_least, at_most, claim, close, lie, mean_is

N, FEATURES, NOISE = 20, 60, 0.25


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


@claim("slt.double_descent")
@lie("the degrees of freedom are n - p, not n - p - 1", lost=0.0)
@lie("beyond the threshold nothing of the signal is lost", kept=0.0)
@lie("there is a peak whatever the ridge", peak=2.0)
@lie("without a ridge there is no peak either", ridge=hardly_any)
def the_risk_descends_twice(draw, lost=1.0, kept=1.0, peak=0.0, ridge=best_ridge):
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
            lambda v: v, lambda n, p=p: risks(draw, weight, p, n)[0], formula(p), effect=0.1 * shown[p], alpha=1e-10
        )
        for p in (10, 40)
    ]
    length = mean_is(
        lambda v: v, lambda n: risks(draw, weight, 40, n)[1], curve[40].squared_norm, effect=0.05, alpha=1e-10
    )
    half, full, twice = (
        risks(draw, weight, p, 300, ridge(float(weight[p:].square().sum()) + NOISE, 2.0 / FEATURES))[0].median()
        for p in (N // 2, N, 2 * N)
    )
    return all_of(
        close([curve[p].risk for p in sizes], [formula(p) for p in sizes], ulps=256),
        *simulated,
        length,
        always([math.isinf(curve[p].risk) for p in (N - 1, N, N + 1)]),
        at_most(norms.diff(), 0.0),
        at_least(1.3 * torch.maximum(half, twice), full)
        if not peak
        else at_least(full, peak * torch.maximum(half, twice)),
    )
