"""What a discriminator can reach: on distributions of few outcomes whose probabilities are counts, nothing is drawn.

Examples that stand for a distribution are its outcomes, each as often as its count says; the system sees their logits.
"""

import itertools
import math

import torch

from lemmata.foundations.information import entropy, jensen_shannon
from lemmata.generative.adversarial.gan import GAN
from lemmata.generative.adversarial.gan_losses import discriminator_loss
from lemmata.judge import all_of, at_least, at_most, claim, close, exactly, lie

LN2 = math.log(2)


def drawn_counts(draw, outcomes=6, total=60):
    """Two distributions over the same outcomes, of which each has one that the other lacks, as counts."""
    counts = torch.stack([draw.integers(1, total // 4, outcomes) for _ in range(2)])
    counts[0, -1], counts[1, 0] = 0, 0
    counts[0, 1], counts[1, 1] = 4 * total, 1  # and one is far likelier in one of them
    return counts  # (2, outcomes)


def masses(counts):
    return counts.double() / counts.sum(-1, keepdim=True)


def logistic_loss(logits, counts):
    """The loss of a discriminator with these logits at each outcome, on examples of both kinds."""
    return discriminator_loss(*(logits.repeat_interleave(each) for each in counts))


def bayes_logits(counts, fakes=1.0):
    """The logarithm of how much likelier each outcome is among real examples; infinite where one kind has none."""
    p, q = masses(counts)
    return p.log() - (fakes * q).log()


def lowest_place(loss, size):
    """Where descent from zero ends, with the curvature that it has seen on its way."""
    place = torch.zeros(size, dtype=torch.float64, requires_grad=True)
    settings = {"tolerance_grad": 1e-11, "tolerance_change": 1e-15, "line_search_fn": "strong_wolfe"}
    descent = torch.optim.LBFGS([place], max_iter=200, **settings)

    def closure():
        descent.zero_grad()
        value = loss(place)
        value.backward()
        return value

    descent.step(closure)
    return place.detach()


# --- The labels, and what is expected of them ---


def as_often_each(half, counts):
    return half


def as_often_as_counted(half, counts):
    return counts[0].sum() / counts.sum()


def where_both_are_alike(half, counts):
    return masses(counts).prod(0).sum()


@claim("gan.mixture")
@lie("real examples are a little rarer", half=0.49)
@lie("each label as often as there are examples of its kind", frequency=as_often_as_counted)
@lie("the label 1 is as likely as two equal draws", frequency=where_both_are_alike)
def both_labels_are_as_likely(draw, half=0.5, frequency=as_often_each):
    """The weights of outcomes with either label, seen in the slopes of the loss where a label costs all or nothing."""
    counts = drawn_counts(draw)
    slopes = []
    for sure in (-40.0, 40.0):  # where the other label's slope is below 1e-17
        logits = torch.full((counts.shape[1],), sure, dtype=torch.float64, requires_grad=True)
        slopes.append(torch.autograd.grad(logistic_loss(logits, counts), logits)[0])
    joint = torch.stack([-slopes[0], slopes[1]])  # (label 1 and 0, outcomes)
    p, q = masses(counts)
    chance = frequency(half, counts)
    return all_of(
        close(joint, torch.stack([chance * p, (1 - chance) * q]), detail="each outcome with each label"),
        close(joint.sum(), 1.0, detail="all of it"),
        close(joint.sum(0), (p + q) / 2, detail="outcomes alone"),
        close(joint[0].sum(), 0.5, detail="the label 1 alone"),
    )


def of_the_kinds(fakes, odds):
    return odds / (odds + fakes)


def turned_around(fakes, odds):
    return fakes / (odds + fakes)


@claim("gan.bayes_discriminator")
@lie("generated examples count twice", fakes=2.0)
@lie("the part of the generated examples", part=turned_around)
def the_best_discriminator_is_the_ratio(draw, fakes=1.0, part=of_the_kinds):
    """Slope and curvature of the loss at the ratio, random logits beside it, and descent that ends there."""
    counts = drawn_counts(draw)[:, 1:-1]  # where both have examples, or no logit were best
    p, q = masses(counts)
    best = torch.special.logit(part(fakes, p / q)).requires_grad_()
    found = lowest_place(lambda logits: logistic_loss(logits, counts), len(best))
    lowest = logistic_loss(best, counts)
    (slope,) = torch.autograd.grad(lowest, best)
    others = torch.stack([logistic_loss(best + size * draw.normal(len(best)), counts) for size in (1e-3, 0.1, 3.0)])
    return all_of(
        close(slope, 0.0, scale=1.0, detail="slope of the loss at the ratio"),
        at_least(others, lowest.detach(), detail="loss of other logits"),
        # the slopes left are below 1e-8, over curvatures of at least half the rarer kind's probability
        close(found.sigmoid(), part(fakes, p / q), within=1e-4, detail="where descent ends"),
    )


def unchanged(probability):
    return probability


@claim("gan.value")
@lie("the logarithms are left out", printed="001/1", score=unchanged)
@lie("V is ℓ, not twice as much", times=1.0)
def the_value_is_twice_the_likelihood(draw, times=2.0, score=torch.log):
    """Expectations of both kinds written out, for sure and unsure discriminators; and those of a decoder."""
    counts = drawn_counts(draw)
    p, q = masses(counts)
    tables = [size * draw.normal(len(p)) for size in (0.0, 0.3, 3.0, 10.0)]
    values = [(p * score(a.sigmoid())).sum() + (q * score((-a).sigmoid())).sum() for a in tables]
    likelihoods = [-logistic_loss(a, counts) for a in tables]
    model = GAN((2,), latent=3, widths=(8,), dtype=torch.float64)
    x, seed = draw.normal(20, 2), int(draw.integers(0, 1000, 1))
    z = torch.randn(20, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    real, fake = model.critic(x).sigmoid(), model.critic(model.decoder(z)).sigmoid()
    likelihood = -model.critic_loss(x, generator=torch.Generator().manual_seed(seed))
    return all_of(
        close(times * torch.stack(likelihoods), torch.stack(values), detail="two lists of outcomes"),
        close(times * likelihood, score(real).mean() + score(1 - fake).mean(), ulps=1000, detail="a decoder of noise"),
    )


# --- The best discriminator's likelihood ---


@claim("gan.jsd_objective")
@lie("twice the divergence", times=2.0)
@lie("minus ln 4, though averaged over the label", two=4.0)
def the_best_likelihood_is_a_divergence(draw, times=1.0, two=2.0):
    """The loss at the log-ratio against divergence and entropies: equal, unequal and disjoint distributions."""
    apart = torch.tensor([[3, 5, 0, 0], [0, 0, 2, 9]])
    same = torch.tensor([[3, 1, 2], [6, 2, 4]])
    reached, divergences, entropies = [], [], []
    for counts in (drawn_counts(draw), drawn_counts(draw, outcomes=20), apart, same):
        p, q = masses(counts)
        reached.append(-logistic_loss(bayes_logits(counts), counts))
        divergences.append(jensen_shannon(p, q))
        entropies.append(entropy((p + q) / 2) - entropy(p) / 2 - entropy(q) / 2)
    return all_of(
        close(torch.stack(reached), times * torch.stack(divergences) - math.log(two), detail="by the divergence"),
        close(torch.stack(reached), times * torch.stack(entropies) - math.log(two), detail="by entropies"),
    )


def where_all_counts_agree(counts, real):
    return (counts * real.sum() == real * counts.sum()).all()


def where_the_support_agrees(counts, real):
    return ((counts > 0) == (real > 0)).all()


@claim("gan.global_minimum")
@lie("minus ln 2, though the sum of both expectations", base=2.0)
@lie("attained by every decoder with the data's support", attained=where_the_support_agrees)
def the_least_value_is_at_the_data(draw, base=4.0, attained=where_all_counts_agree):
    """Every distribution of twelve examples over three outcomes, each against its best discriminator."""
    grid = torch.tensor([(a, b, 12 - a - b) for a, b in itertools.product(range(13), repeat=2) if a + b <= 12])
    real = torch.tensor([0, 12, 0])
    while real.max() > 9:
        cuts = draw.integers(1, 12, 2).sort().values
        real = torch.tensor([cuts[0], cuts[1] - cuts[0], 12 - cuts[1]])
    pairs = [torch.stack([real, each]) for each in grid]
    values = torch.stack([-2 * logistic_loss(bayes_logits(pair), pair) for pair in pairs])
    least = (values <= values.min() + 1e-9).nonzero()[:, 0]
    wanted = torch.stack([attained(each, real) for each in grid]).nonzero()[:, 0]
    unsure = bayes_logits(pairs[int(values.argmin())]).nan_to_num(0.0).sigmoid()
    return all_of(
        at_least(values, -math.log(base), attained=True, detail="value of the best discriminator"),
        exactly(least, wanted, detail="where it is least"),
        close(unsure, 0.5, detail="what the discriminator says there"),
    )


# --- Discriminators that cannot say everything ---

POINTS = torch.arange(-2.0, 3.0, dtype=torch.float64)  # outcomes on a line


def log_polynomial(draw, degree):
    """Counts of both kinds whose ratio is 2 to the power of a polynomial of this degree with values in the integers."""
    x = POINTS.long()
    ratio = {1: draw.integers(1, 3, 1) * x, 2: draw.integers(-1, 2, 1) * x - x**2, 3: (x**3 - x) // 2}[degree]
    fake = draw.integers(1, 5, len(POINTS))
    return torch.stack([fake * 2 ** (ratio - ratio.min()), fake])


def reached_value(counts, degree):
    """The largest likelihood of discriminators whose logits are polynomials up to a degree."""
    columns = torch.linalg.qr(torch.stack([POINTS**power for power in range(degree + 1)], 1)).Q
    return -logistic_loss(
        columns @ lowest_place(lambda weights: logistic_loss(columns @ weights, counts), degree + 1), counts
    )


def as_they_are(draw, counts):
    return counts


def a_few_examples(draw, counts):
    """Twelve examples of each kind, drawn with the probabilities of the counts."""
    drawn = [torch.multinomial(each.double(), 12, replacement=True, generator=draw.generator) for each in counts]
    return torch.stack([torch.bincount(rows, minlength=len(POINTS)) + 1 for rows in drawn])


def linear(values):
    return values[0]


def quadratic(values):
    return values[1]


def any_logits(values):
    return values[2]


@claim("gan.discriminator_bound")
@lie("a discriminator reaches at least the divergence", bound=at_least)
@lie("its likelihood on a few training examples is below it too", seen=a_few_examples)
@lie("a linear logit reaches it where the ratio's logarithm is a square", best=linear)
def a_weak_discriminator_sees_less(draw, bound=at_most, best=quadratic, seen=as_they_are):
    """Linear, quadratic and all logits on five points, where the log-ratio is a line, a square, a cube, or zero."""
    same = torch.tensor([[1, 2, 4, 2, 1]]).repeat(2, 1)
    found, divergences, reached = [], [], []
    for degree in (1, 2, 3):
        counts = log_polynomial(draw, degree)
        values = [reached_value(seen(draw, counts), power) for power in (1, 2, 4)]
        found.append(torch.stack(values))
        divergences.append(jensen_shannon(*masses(counts)) - LN2)
        reached.append((linear, best, any_logits)[degree - 1](values))
    found.append(torch.stack([reached_value(seen(draw, same), power) for power in (1, 2, 4)]))
    divergences.append(torch.tensor(-LN2, dtype=torch.float64))
    found, divergences = torch.stack(found), torch.stack(divergences)
    return all_of(
        bound(found, divergences[:, None].expand(4, 3), ulps=1e4, attained=True, detail="three classes on four pairs"),
        at_least(found[:, 1:], found[:, :-1], ulps=1e4, detail="richer classes against poorer ones"),
        close(torch.stack(reached), divergences[:3], within=1e-10, detail="classes that hold the best discriminator"),
        at_least(divergences[2] - found[2, 1], 1e-4, detail="what a square lacks of a cube"),
    )
