"""Uniform bounds: for classes by their growth function, for thresholds by Massart's constants, for finite classes."""

import math

import torch
from scipy import stats

from lemmata.generalization.error_parts import decompose
from lemmata.generalization.risk_bounds import dkw_bound, finite_class_bound, vc_bound
from lemmata.judge import all_of, always, at_least, at_most, claim, close, lie, slope_is


@claim("slt.vc_inequality")
@lie("32 stands before nε² instead of below it", below=1 / 32)
@lie("for thresholds e^{-2.2nε²}", rate=2.2)
@lie("for thresholds without the factor 2", twice=1.0)
def deviations_of_all_classifiers(draw, below=32.0, rate=2.0, twice=2.0):
    """The distribution of the largest deviation of all thresholds, against both bounds and the radii they give."""
    n = torch.tensor([20, 200, 5000], dtype=torch.float64)[:, None]
    reach = torch.cat([torch.linspace(0.2, 2.5, 47, dtype=torch.float64), draw.uniform(10, low=0.2, high=2.5)])
    eps = reach / n.sqrt()  # (n, reach)
    # Smirnov's distribution, for every n and without a limit: that of the uniform distribution, hence of every one.
    tail = torch.as_tensor(stats.kstwo.sf(eps.numpy(), n.numpy().astype(int)))
    failures = [0.01, 0.05, 0.5]
    cases = [(int(k), failure) for k in n[:, 0] for failure in failures]
    radii = [vc_bound(0.0, k + 1, k, 1 - failure).value for k, failure in cases]
    sharp = [dkw_bound(0.0, k, 1 - failure).value for k, failure in cases]
    return all_of(
        at_most(tail, 8 * (n + 1) * torch.exp(-n * eps**2 / below)),
        at_most(tail, twice * torch.exp(-rate * n * eps**2)),
        close(radii, [math.sqrt(below / k * math.log(8 * (k + 1) / failure)) for k, failure in cases], ulps=128),
        close(sharp, [math.sqrt(math.log(twice / failure) / (rate * k)) for k, failure in cases], ulps=128),
        always([vc_bound(0.0, 2**k, k, confidence).vacuous for k in range(1, 400) for confidence in (1e-6, 0.95)]),
        always([not vc_bound(0.0, k + 1, k).vacuous for k in (1000, 10_000)]),
    )


def fixed(losses, samples):
    """The first classifier, whatever was seen."""
    return torch.zeros(len(samples), dtype=torch.long)


def least_empirical_risk(losses, samples):
    """The classifier with the least mean loss on the sample."""
    return losses.T[samples].mean(-2).argmin(-1)


def signed(gap):
    """The gap as it is."""
    return gap


def clipped(gap):
    """What is above zero of it."""
    return gap.clamp(min=0.0)


@claim("slt.generalisation_gap")
@lie("of a fixed classifier the clipped gap has mean zero", of_fixed=clipped)
@lie("the gap of the chosen classifier has mean zero too", chosen=fixed)
@lie(
    "the gap is empirical less expected risk",
    regime="a small factor of the same sign keeps it",
    loose="a larger factor keeps the sign",
    sign=-1.0,
)
def expected_less_empirical_risk(draw, of_fixed=signed, chosen=least_empirical_risk, sign=1.0):
    """Means over all 1,024 samples of five examples, each with its probability: a fixed classifier and a chosen one."""
    samples = torch.cartesian_prod(*[torch.arange(4)] * 5)  # (samples, 5)
    means, clips, gains, least = [], [], [], []
    for _ in range(20):
        losses = draw.uniform(6, 4)
        probability = 0.1 + draw.uniform(4)
        probability = probability / probability.sum()
        weight = probability[samples].prod(-1)  # (samples,)

        def gap(learn, losses=losses, probability=probability):
            return sign * decompose(losses, probability, samples, torch.arange(6), learn(losses, samples)).gap

        means.append(weight @ of_fixed(gap(fixed)))
        clips.append(weight @ clipped(gap(fixed)))
        gains.append(weight @ gap(chosen))
        least.append((clipped(gap(chosen)) - gap(chosen)).min())
    return all_of(
        close(torch.stack(means), torch.zeros(20).double(), scale=1.0),
        at_least(torch.stack(clips), 1e-3),
        at_least(torch.stack(gains), 0.0, ulps=1e3),
        at_least(torch.stack(gains).mean(), 0.01),
        at_least(torch.stack(least), 0.0),
    )


def largest_of_many(n, classifiers, rate=0.5):
    """How far the worst of many independent classifiers is off: places, and the chance to be within each."""
    counts = torch.arange(n + 1, dtype=torch.float64)
    away = (counts / n - rate).abs()
    places = away.unique()
    weight = torch.as_tensor(stats.binom.pmf(counts.numpy(), n, rate))
    within = torch.stack([weight[away <= place + 1e-12].sum() for place in places])
    return places, within.clamp(max=1.0) ** classifiers


def mean_of_largest(n, classifiers):
    """Its mean, by the probabilities to be beyond each place."""
    places, within = largest_of_many(n, classifiers)
    return float(((1 - within[:-1]) * places.diff()).sum() + places[0])


@claim("error.statistical")
@lie("the deviation does not fall with n", power=0.0)
@lie("the variance of each loss is a quarter of what it can be", half=8.0)
@lie("one side is paid for", sides=1.0)
@lie(
    "a larger class deviates less",
    regime="a small factor of the same sign keeps it",
    loose="a larger factor keeps the sign",
    sign=-1.0,
)
def the_largest_deviation_of_a_finite_class(draw, power=-0.5, half=2.0, sides=2.0, sign=1.0):
    """Coverage and mean of the largest deviation of independent classifiers, from binomial distributions alone."""
    failures, covered, radii, formula = [0.01, 0.05, 0.7], [], [], []
    for n in (1, 10, 100, 1000):
        for classifiers in (1, 30, 10_000):
            places, within = largest_of_many(n, classifiers)
            for failure in failures:
                radius = math.sqrt(math.log(sides * classifiers / failure) / (half * n))
                formula.append(radius)
                radii.append(finite_class_bound(0.0, classifiers, n, 1 - failure).value)
                inside = within[places <= radius + 1e-12]
                covered.append(float(inside[-1] if len(inside) else 0.0) - (1 - failure))
    sizes = [1000, 2000, 4000, 8000]
    growing = torch.tensor([mean_of_largest(200, k) for k in (1, 10, 100, 1000, 10_000)], dtype=torch.float64)
    return all_of(
        at_least(covered, 0.0, ulps=1e6),
        close(radii, formula, ulps=256),
        slope_is(sizes, [mean_of_largest(n, 50) for n in sizes], power, within=0.01),
        at_least(sign * growing.diff(), 1e-3),
    )
