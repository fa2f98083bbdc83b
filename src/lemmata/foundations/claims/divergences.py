"""Divergences of discrete laws: Kullback-Leibler, Jensen-Shannon, and the change of measure."""

import math

import torch
from scipy import special
from scipy.spatial import distance

from lemmata.foundations.change_of_measure import change_of_measure_bound, gibbs_law
from lemmata.foundations.claims.information import laws
from lemmata.foundations.gaussian import Gaussian
from lemmata.foundations.gaussian_divergence import gaussian_kl
from lemmata.foundations.information import entropy, jensen_shannon, kl_divergence, total_variation
from lemmata.foundations.sampled_information import sampled_kl
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie

INFINITE = torch.tensor(math.inf, dtype=torch.float64)


def with_zeros(draw, count, outcomes):
    """Laws with impossible outcomes among them."""
    weights = laws(draw, count, outcomes) * (draw.uniform(count, outcomes) < 0.6)
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
    """Another library's terms on random laws, impossible outcomes, infinite values, gradients, and samples."""
    p = with_zeros(draw, 200, 6)
    q = torch.cat([laws(draw, 100, 6), with_zeros(draw, 100, 6)])
    terms = torch.tensor(special.rel_entr(p.numpy(), q.numpy())).sum(-1)
    lost = ((q == 0) & (p > 0)).any(-1)
    both = ((q == 0) & (p == 0)).any(-1) & ~lost
    # Some laws are so nearly certain that their least probabilities are 1e-100 and less.
    log_ratio = tuple(torch.cat([laws(draw, 250, 5), laws(draw, 50, 5, sharpness=80.0)]) for _ in range(2))
    weight = log_ratio[0] if under == "p" else log_ratio[1]
    mean = (sign * weight * (log_ratio[0] / log_ratio[1]).log()).sum(-1)
    logits = draw.normal(2, 5).requires_grad_()
    (slope,) = torch.autograd.grad(divergence(log_ratio[0][0], logits[1].softmax(-1)), logits)
    # Samples in the very proportions of p: the mean log-ratio over them is the divergence itself.
    eighths = torch.tensor([5.0, 2.0, 1.0], dtype=torch.float64) / 8, torch.tensor([0.25, 0.25, 0.5]).double()
    drawn = torch.tensor([0] * 5 + [1] * 2 + [2])
    sampled = sampled_kl(eighths[0].log()[drawn], eighths[1].log()[drawn])
    spread = (eighths[0] / eighths[1]).log()[drawn]
    never = sampled_kl(torch.zeros(2).double(), torch.tensor([0.0, -math.inf]).double())
    return all_of(
        close(divergence(*log_ratio), mean, scale=10 + mean.abs()),
        close(divergence(p, q), terms, scale=10.0),
        exactly(divergence(p, q).isinf(), lost),
        always([bool(both.any()), bool(lost.any())], detail="both kinds of zeros occur"),
        close(slope[1], logits[1].softmax(-1) - log_ratio[0][0], ulps=256),
        close(divergence(p[:, None], q[:3])[:, 2], divergence(p, q[2:3]), scale=10.0),
        close(sampled.value, kl_divergence(*eighths)),
        close(sampled.standard_error, (spread - spread.mean()).square().sum().div(7 * 8).sqrt()),
        exactly(never.value, INFINITE),
    )


@claim("information.kl_nonnegative")
@lie("it is at least four times the squared total variation", constant=4.0)
@lie("it is never positive", loose="a multiple above 1 raises the larger side", sign=-1.0)
@lie("a constant below two is the best", constant=1.9)
def the_divergence_is_positive_unless_the_laws_are_equal(draw, constant=2.0, sign=1.0):
    """Random pairs, near ones too, against Pinsker's bound, which says how far from 0; and events for its distance."""
    p, other = laws(draw, 1000, 5), laws(draw, 1000, 5)
    share = draw.uniform(1000, 1, low=-6.0, high=0.0).exp()
    q = (1 - share) * p + share * other
    distances = total_variation(p, q)
    # Fair coins made slightly unfair are where Pinsker's constant is attained, in the limit.
    fair = torch.tensor([0.5, 0.5], dtype=torch.float64)
    tilt = torch.tensor([0.05, 1e-3], dtype=torch.float64)[:, None] * torch.tensor([1.0, -1.0], dtype=torch.float64)
    ratio = kl_divergence(fair + tilt, fair) / total_variation(fair + tilt, fair).square()
    events = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 5)
    return all_of(
        # Both sides are rounded at the size of the logarithms that cancel in them.
        at_least(sign * kl_divergence(p, q) + 1e-13, constant * distances.square()),
        close(kl_divergence(p, p), torch.zeros(1000, dtype=torch.float64), scale=1.0),
        always(distances > 1e-6),
        at_least(ratio, constant),
        close(ratio[-1], constant, within=1e-5),  # the next term of the expansion is of the order of the tilt squared
        close(distances, ((p - q) @ events.mT).amax(-1), scale=1.0),
        close(total_variation(p[0], q[0]), distances[0], scale=1.0),
    )


@claim("information.kl_asymmetric")
@lie("both directions are equal", backward=0.3680642071684971)
@lie("the triangle inequality holds", compare=torch.le)
def the_divergence_is_neither_symmetric_nor_a_metric(draw, backward=0.5108256237659907, compare=torch.gt):
    """A fair and an unfair coin, both ways; three coins for which the detour is shorter."""
    fair, unfair = (torch.tensor(law, dtype=torch.float64) for law in ([0.5, 0.5], [0.9, 0.1]))
    coins = [torch.tensor([p, 1 - p], dtype=torch.float64) for p in (0.5, 0.25, 0.1)]
    detour = kl_divergence(coins[0], coins[1]) + kl_divergence(coins[1], coins[2])
    p, q = laws(draw, 200, 4), laws(draw, 200, 4)
    both = torch.stack([kl_divergence(p, q), kl_divergence(q, p)])
    return all_of(
        close(kl_divergence(fair, unfair), backward),
        close(kl_divergence(unfair, fair), math.log(2) - entropy(unfair)),
        always(compare(kl_divergence(coins[0], coins[2]), detour)[None]),
        at_least((both[0] - both[1]).abs(), 1e-6),
    )


def one_expectation(p, q):
    """E[-log p/q] + E[-log q/p] under one and the same law."""
    return (p * (-(p / q).log() - (q / p).log())).sum(-1)


def jeffreys(p, q):
    """The two divergences added, without the mixture."""
    return kl_divergence(p, q) + kl_divergence(q, p)


@claim("information.jsd")
@lie("E[-log p/q] + E[-log q/p], with one expectation", printed="004/1", divergence=one_expectation)
@lie("the divergences are added without the mixture", divergence=jeffreys)
@lie("p weighs twice as much as q in the mixture", weight=2 / 3)
@lie("the divergence itself is a metric", loose="smaller powers of a metric are metrics", power=1.0)
def the_jensen_shannon_divergence_goes_through_the_mixture(draw, divergence=jensen_shannon, weight=0.5, power=0.5):
    """Entropy of the mixture less the mean entropy, another library's distance, symmetry, the triangle inequality."""
    parts = []
    for outcomes in (2, 5, 20):
        p, q = laws(draw, 100, outcomes), laws(draw, 100, outcomes)
        mixture = weight * p + (1 - weight) * q
        gap = entropy(mixture) - weight * entropy(p) - (1 - weight) * entropy(q)
        peer = [distance.jensenshannon(*pair) ** 2 for pair in zip(p.numpy(), q.numpy(), strict=True)]
        parts += [
            close(divergence(p, q), gap, scale=10.0),
            close(divergence(p, q), torch.tensor(peer), scale=10.0),
            close(divergence(p, q), divergence(q, p), scale=10.0),
        ]
    p, q = with_zeros(draw, 200, 4), with_zeros(draw, 200, 4)
    apart = jensen_shannon(torch.eye(2).double(), torch.eye(2).double().flip(0))
    a, b, c = laws(draw, 3 * 500, 3).reshape(3, 500, 3)
    middle = torch.cat([b, (a + c) / 2])
    a, c = a.repeat(2, 1), c.repeat(2, 1)
    detour = jensen_shannon(a, middle) ** power + jensen_shannon(middle, c) ** power
    return all_of(
        *parts,
        always(jensen_shannon(p, q).isfinite()),
        close(apart, [math.log(2), math.log(2)]),
        at_most(jensen_shannon(a, c) ** power, detour),
    ).showing(drifting_apart())


def drifting_apart():
    """Two boxes that move apart: one divergence jumps to infinity, the other saturates, the distance grows."""
    shifts, width = torch.arange(0, 60, 2), 30
    laws = torch.zeros(len(shifts), 100, dtype=torch.float64)
    for row, shift in enumerate(shifts.tolist()):
        laws[row, shift : shift + width] = 1 / width
    still = laws[0]
    marks = [
        Line(shifts, jensen_shannon(laws, still), "Jensen-Shannon"),
        Line(shifts, kl_divergence(laws, still), "Kullback-Leibler (infinite beyond 0)"),
        Line(shifts, shifts / width, "distance moved, in widths"),
    ]
    return Figure("Two boxes drift apart", "shift", "nats", marks)


@claim("information.jsd_bounds")
@lie("half of log 2 bounds it", bits=0.5)
@lie("it may be as large as 2 log 2", bits=2.0)
@lie("it is log 2 for laws that overlap", overlap=0.01)
def the_jensen_shannon_divergence_lies_between_zero_and_log_two(draw, bits=1.0, overlap=0.0):
    """Random pairs, equal and disjoint ones among them: range, symmetry, and where the ends are attained."""
    p, q = with_zeros(draw, 1000, 6), with_zeros(draw, 1000, 6)
    q[:50] = p[:50]
    left, right = laws(draw, 50, 3), laws(draw, 50, 3)
    p[50:100] = torch.cat([left * (1 - overlap), overlap * right], -1)
    q[50:100] = torch.cat([torch.zeros_like(left), right], -1)
    found = jensen_shannon(p, q)
    disjoint = ((p > 0) & (q > 0)).sum(-1) == 0
    return all_of(
        at_most(found, bits * math.log(2), attained=True),
        close(found[50:100], math.log(2) * torch.ones(50, dtype=torch.float64)),
        at_least(found + 1e-14, 0.0),  # rounding of logarithms of size 1
        close(found, jensen_shannon(q, p)),
        close(found[:50], torch.zeros(50, dtype=torch.float64), scale=1.0),
        always((found > 1e-9) == (total_variation(p, q) > 0)),
        always((found > math.log(2) - 1e-9) <= disjoint),
    )


@claim("information.donsker_varadhan")
@lie("the divergence is that of p from q", reverse=1.0)
@lie("the exponential moment is not needed", moment=0.0)
@lie("every law attains it", tilted=0.0)
def a_change_of_measure_costs_the_divergence(draw, reverse=0.0, moment=1.0, tilted=1.0):
    """Random laws and variables; the tilted law, for which it is an equality; Gaussians in closed form."""
    p, q, x = laws(draw, 10_000, 6), laws(draw, 10_000, 6), 2 * draw.normal(10_000, 6)
    p[:100], q[:100] = with_zeros(draw, 100, 6), with_zeros(draw, 100, 6)
    best = tilted * gibbs_law(p, x) + (1 - tilted) * p
    log_moment = change_of_measure_bound(q, p, x) - kl_divergence(q, p)
    parts = []
    for law in (q, best):
        swap = reverse * (kl_divergence(p, law) - kl_divergence(law, p)).nan_to_num(0.0, 0.0, 0.0)
        bound = change_of_measure_bound(law, p, x) + swap + (moment - 1) * log_moment.nan_to_num(0.0)
        parts.append(at_most((law * x).sum(-1), bound + 1e-13))
    # Exponentials that overflow or vanish, and one that would if its outcome could occur.
    impossible = torch.tensor([[0.5, 0.5, 0.0], [3.0, 3.0, 1e4]], dtype=torch.float64)
    shifted, known = torch.stack([x[0] + 800, x[0] - 800]), change_of_measure_bound(q[200], p[200], x[0])
    # q = N(m, 1), p = N(0, 1), X = m x - m²/2 is the log-ratio: E_q X = m²/2 = KL, and E_p e^X = 1.
    one = torch.eye(1, dtype=torch.float64)
    m = draw.normal(1)
    divergence = gaussian_kl(Gaussian(m, one), Gaussian(torch.zeros(1).double(), one))
    return all_of(
        *parts,
        close((best * x).sum(-1), change_of_measure_bound(best, p, x), scale=20.0),
        # What is missing to equality is the divergence from the tilted law, and so 0 for that law alone.
        close(change_of_measure_bound(q, p, x) - (q * x).sum(-1), kl_divergence(q, gibbs_law(p, x)), scale=30.0),
        close(gibbs_law(p[100:], (q / p)[100:].log()), q[100:], scale=1.0),
        close(change_of_measure_bound(q[200], p[200], shifted) - known, [800.0, -800.0]),
        close(divergence, m.square()[0] / 2, scale=1.0),
        exactly(gibbs_law(*impossible), torch.tensor([0.5, 0.5, 0.0]).double()),
        exactly(change_of_measure_bound(impossible[0], *impossible), torch.tensor(3.0).double()),
        exactly(change_of_measure_bound(torch.eye(2)[0].double(), torch.eye(2)[1].double(), x[0, :2]), INFINITE),
    )
