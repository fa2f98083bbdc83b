"""Divergences of discrete distributions: Kullback-Leibler, Jensen-Shannon, and the change of measure."""

import math

import torch
from scipy import special
from scipy.spatial import distance

from lemmata.foundations.information.claims.information import distributions
from lemmata.foundations.information.discrete import entropy, jensen_shannon, kl_divergence, total_variation
from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


def with_zeros(draw, count, outcomes):
    """Distributions with impossible outcomes among them."""
    weights = distributions(draw, count, outcomes) * (draw.uniform(count, outcomes) < 0.6)
    weights[:, 0] += 0.1
    return weights / weights.sum(-1, keepdim=True)


def infinite_wherever_q_vanishes(p, q):
    """Infinite as soon as q has a zero, though p has one there too."""
    return torch.where((q == 0).any(-1), math.inf, kl_divergence(p, q))


@claim("information.kl")
@lie("it is not defined where q(x) = 0, whatever p(x)", divergence=infinite_wherever_q_vanishes)
@lie("the expectation is under q", under="q")
@lie("the ratio is inverted", sign=-1.0)
def the_divergence_is_the_mean_logarithm_of_the_ratio(draw, divergence=kl_divergence, under="p", sign=1.0):
    """The mean log-ratio of random distributions, nearly certain ones too; impossible outcomes and infinite values."""
    p = with_zeros(draw, 200, 6)
    q = torch.cat([distributions(draw, 100, 6), with_zeros(draw, 100, 6)])
    terms = torch.tensor(special.rel_entr(p.numpy(), q.numpy())).sum(-1)  # another library's
    lost = ((q == 0) & (p > 0)).any(-1)
    harmless = ((q == 0) & (p == 0)).any(-1) & ~lost
    # Some are so nearly certain that their least probabilities are 1e-100 and less.
    one, other = (
        torch.cat([distributions(draw, 250, 5), distributions(draw, 50, 5, sharpness=80.0)]) for _ in range(2)
    )
    # Samples in the very proportions of a distribution: their mean log-ratio is the divergence itself.
    few, even = torch.tensor([[5.0, 2.0, 1.0], [2.0, 2.0, 4.0]], dtype=torch.float64) / 8
    drawn = torch.tensor([0] * 5 + [1] * 2 + [2])
    mean = (sign * (one if under == "p" else other) * (one / other).log()).sum(-1)
    return all_of(
        close(divergence(one, other), mean, scale=10 + mean.abs()),
        close(divergence(p, q), terms, scale=10.0),
        exactly(divergence(p, q).isinf(), lost),
        always([bool(harmless.any()), bool(lost.any())], detail="both kinds of zeros occur"),
        close((few / even).log()[drawn].mean(), divergence(few, even)),
    )


@claim("information.kl_nonnegative")
@lie("it is never positive", relation=at_most)
@lie("it is at least four times the squared total variation", constant=4.0)
def the_divergence_is_positive_unless_the_distributions_are_equal(draw, relation=at_least, constant=2.0):
    """Random pairs, near ones too, against Pinsker's bound, which says how far from 0; and where it is attained."""
    p, other = distributions(draw, 1000, 5), distributions(draw, 1000, 5)
    weight = draw.uniform(1000, 1, low=-6.0, high=0.0).exp()
    q = (1 - weight) * p + weight * other
    distances = total_variation(p, q)
    # Fair coins made slightly unfair are where Pinsker's constant is attained, in the limit.
    fair = torch.tensor([0.5, 0.5], dtype=torch.float64)
    tilt = torch.tensor([0.05, 1e-3], dtype=torch.float64)[:, None] * torch.tensor([1.0, -1.0], dtype=torch.float64)
    ratio = kl_divergence(fair + tilt, fair) / total_variation(fair + tilt, fair).square()
    events = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 5)
    return all_of(
        # Both sides are rounded at the size of the logarithms that cancel in them.
        relation(kl_divergence(p, q) + 1e-13, constant * distances.square()),
        close(kl_divergence(p, p), torch.zeros(1000, dtype=torch.float64), scale=1.0),
        always(distances > 1e-6),
        at_least(ratio, constant),
        close(ratio[-1], constant, within=1e-5),  # the next term of the expansion is of the order of the tilt squared
        close(distances, ((p - q) @ events.mT).amax(-1), scale=1.0),
    )


@claim("information.kl_asymmetric")
@lie("both directions are equal", forward=0.3681)
@lie("the triangle inequality holds", compare=torch.le)
def the_divergence_is_neither_symmetric_nor_a_metric(draw, forward=0.5108, compare=torch.gt):
    """A fair and an unfair coin, both ways; three coins for which the detour is shorter; random pairs."""
    fair, unfair = torch.tensor([[0.5, 0.5], [0.9, 0.1]], dtype=torch.float64)
    coins = [torch.tensor([p, 1 - p], dtype=torch.float64) for p in (0.5, 0.25, 0.1)]
    detour = kl_divergence(coins[0], coins[1]) + kl_divergence(coins[1], coins[2])
    p, q = distributions(draw, 200, 4), distributions(draw, 200, 4)
    return all_of(
        close(kl_divergence(fair, unfair), forward, within=5e-5),
        close(kl_divergence(unfair, fair), 0.3681, within=5e-5),
        always(compare(kl_divergence(coins[0], coins[2]), detour)[None]),
        # Of random pairs, too, though among many one may come near to equality.
        at_least((kl_divergence(p, q) - kl_divergence(q, p)).abs().median(), 0.01),
    )


def one_expectation(p, q):
    """E[-log p/q] + E[-log q/p] under one and the same distribution."""
    return (p * (-(p / q).log() - (q / p).log())).sum(-1)


def jeffreys(p, q):
    """The two divergences added, without the mixture."""
    return kl_divergence(p, q) + kl_divergence(q, p)


@claim("information.jsd")
@lie("E[-log p/q] + E[-log q/p], with one expectation", printed="004/1", divergence=one_expectation)
@lie("the divergences are added without the mixture", divergence=jeffreys)
@lie("the divergence itself is a metric", loose="smaller powers of a metric are metrics", power=1.0)
def the_jensen_shannon_divergence_goes_through_the_mixture(draw, divergence=jensen_shannon, power=0.5):
    """Entropy of the mixture less the mean entropy, another library's distance, symmetry, the triangle inequality."""
    parts = []
    for outcomes in (2, 5, 20):
        p, q = distributions(draw, 100, outcomes), distributions(draw, 100, outcomes)
        gap = entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2
        peer = [distance.jensenshannon(*pair) ** 2 for pair in zip(p.numpy(), q.numpy(), strict=True)]
        found = torch.stack([divergence(p, q), divergence(p, q), divergence(q, p)])
        parts.append(close(found, torch.stack([gap, torch.tensor(peer), gap]), scale=10.0))
    a, b, c = distributions(draw, 3 * 500, 3).reshape(3, 500, 3)
    middle = torch.cat([b, (a + c) / 2])
    a, c = a.repeat(2, 1), c.repeat(2, 1)
    detour = jensen_shannon(a, middle) ** power + jensen_shannon(middle, c) ** power
    return all_of(
        *parts,
        always(jensen_shannon(with_zeros(draw, 200, 4), with_zeros(draw, 200, 4)).isfinite()),
        at_most(jensen_shannon(a, c) ** power, detour),
    )


@claim("information.jsd_bounds")
@lie("half of log 2 bounds it", bits=0.5)
@lie("it is log 2 for distributions that overlap", overlap=0.01)
def the_jensen_shannon_divergence_lies_between_zero_and_log_two(draw, bits=1.0, overlap=0.0):
    """Random pairs, equal and disjoint ones among them: range, symmetry, and where the ends are attained."""
    p, q = with_zeros(draw, 1000, 6), with_zeros(draw, 1000, 6)
    q[:50] = p[:50]
    left, right = distributions(draw, 50, 3), distributions(draw, 50, 3)
    p[50:100] = torch.cat([left * (1 - overlap), overlap * right], -1)
    q[50:100] = torch.cat([torch.zeros_like(left), right], -1)
    found = jensen_shannon(p, q)
    disjoint = ((p > 0) & (q > 0)).sum(-1) == 0
    return all_of(
        at_most(found, bits * math.log(2), attained=True),
        close(found[50:100], math.log(2) * torch.ones(50, dtype=torch.float64)),
        at_least(found + 1e-14, 0.0),  # rounding of logarithms of size 1
        close(found, jensen_shannon(q, p)),
        always((found > 1e-9) == (total_variation(p, q) > 1e-9), detail="0 for equal ones alone"),
        always((found > math.log(2) - 1e-9) <= disjoint, detail="log 2 for disjoint ones alone"),
    )


def of_p_from_q(q, p):
    return kl_divergence(p, q)


def gibbs_distribution(p, x):
    """p tilted by e^x."""
    return (p.log() + x).softmax(-1)


def untilted(p, x):
    return p


@claim("information.donsker_varadhan")
@lie("the divergence is that of p from q", divergence=of_p_from_q)
@lie("the exponential moment is not needed", moment=0.0)
@lie("p itself attains it", best=untilted)
def a_change_of_measure_costs_the_divergence(draw, divergence=kl_divergence, moment=1.0, best=gibbs_distribution):
    """Random distributions and variables; the tilted one, for which it is an equality; Gaussians in closed form."""
    p, q, x = distributions(draw, 10_000, 6), distributions(draw, 10_000, 6), 2 * draw.normal(10_000, 6)
    p[:100], q[:100] = with_zeros(draw, 100, 6), with_zeros(draw, 100, 6)
    log_moment = (p.log() + x).logsumexp(-1)
    tilted = best(p, x)
    changed = torch.cat([q, tilted])
    bound = divergence(changed, p.repeat(2, 1)) + moment * log_moment.repeat(2)
    # q = N(m, 1), p = N(0, 1), X = m x - m²/2 is the log-ratio: E_q X = m²/2 = KL, and E_p e^X = 1.
    m, one = draw.normal(1), torch.eye(1, dtype=torch.float64)
    gaussians = gaussian_kl(Gaussian(m, one), Gaussian(torch.zeros(1).double(), one))
    return all_of(
        at_most((changed * x.repeat(2, 1)).sum(-1), bound + 1e-13),
        close((tilted * x).sum(-1), bound[10_000:], scale=20.0),
        # What is missing to equality is the divergence from the tilted one, and so 0 for it alone.
        close(bound[:10_000] - (q * x).sum(-1), kl_divergence(q, tilted), scale=30.0),
        close(gaussians, m.square()[0] / 2, scale=1.0),
    )
