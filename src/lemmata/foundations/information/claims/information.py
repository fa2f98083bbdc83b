"""Entropy and cross-entropy of discrete distributions; mutual information of tables."""

import math

import torch

from lemmata.foundations.information.discrete import cross_entropy, entropy, kl_divergence, mutual_information
from lemmata.foundations.probability.claims.quadrature import Density
from lemmata.judge import all_of, at_least, at_most, claim, close, exactly, lie


def distributions(draw, count, outcomes, sharpness=2.0):
    """Random distributions, some of them nearly certain."""
    return (sharpness * draw.normal(count, outcomes)).softmax(-1)


@claim("information.entropy")
@lie("the entropy of a density is not negative either", least=0.0)
@lie("the entropy is at most the logarithm of one outcome fewer", more=-1)
@lie("an impossible outcome adds to the entropy", zero=0.1)
def the_entropy_lies_between_zero_and_the_logarithm_of_the_outcomes(draw, least=-1.0, more=0, zero=0.0):
    """Random, certain and uniform distributions; grouping; impossible outcomes; the density e on [0, 1/e]."""
    parts = []
    for outcomes in (2, 3, 5, 8, 1000):
        sure = torch.eye(outcomes, dtype=torch.float64)[:1]
        even = torch.full_like(sure, 1 / outcomes)
        sharp = distributions(draw, 10, outcomes, sharpness=80.0)
        p = torch.cat([distributions(draw, 70, outcomes), sharp, sure, even])
        h = entropy(p)
        parts += [
            at_least(h, 0.0, attained=True),
            at_most(h, math.log(outcomes + more), attained=True),
            close(h, torch.special.entr(p).sum(-1)),
            close(entropy(torch.nn.functional.pad(p, (0, 2))) + zero, h),
        ]
    # Grouping characterises it: choosing among three is choosing a group, and then within it.
    p = distributions(draw, 50, 3)
    pair = p[:, 1:].sum(-1, keepdim=True)
    grouped = entropy(torch.cat([p[:, :1], pair], -1)) + pair[:, 0] * entropy(p[:, 1:] / pair)
    narrow = Density(lambda t: torch.full_like(t, math.e), 0.0, 1 / math.e)
    # The mean information content of samples in the very proportions of a distribution.
    counts = torch.tensor([1, 2, 5, 8])
    drawn = counts.repeat_interleave(counts) / torch.tensor(16, dtype=torch.float64)
    return all_of(
        *parts,
        close(grouped, entropy(p)),
        at_least(narrow.entropy(), least, attained=True),
        close(-drawn.log().mean(), entropy(counts.double() / 16)),
    )


@claim("information.cross_entropy")
@lie("the expectation is under q and the code for p", exchanged=True)
@lie("the logarithm is to base 2", base=2.0)
def the_cross_entropy_is_the_mean_length_of_the_wrong_code(draw, exchanged=False, base=math.e):
    """Random distributions and logits against the loss of the same name, values and gradients; certain outcomes."""
    p, logits = distributions(draw, 40, 6), draw.normal(40, 6).requires_grad_()
    q = logits.softmax(-1)
    found = cross_entropy(q, p) if exchanged else cross_entropy(p, q)
    loss = torch.nn.functional.cross_entropy(logits, p, reduction="none")
    (slope,) = torch.autograd.grad(found.sum(), logits, retain_graph=True)
    sure = torch.eye(6, dtype=torch.float64)
    return all_of(
        close(found / math.log(base), loss),
        close(slope, q - p, ulps=256),
        close(cross_entropy(sure, q[:1]), -q[0].log()),
        at_least(found, 0.0),
        exactly(cross_entropy(sure[:2], sure[1]), torch.tensor([math.inf, 0.0], dtype=torch.float64)),
    )


@claim("information.ce_decomposition")
@lie("the entropy is that of q", of="q")
@lie("the divergence is subtracted", sign=-1.0)
def cross_entropy_is_entropy_plus_divergence(draw, of="p", sign=1.0):
    """Random pairs, and pairs where an outcome is impossible under one of the distributions or both."""
    parts = []
    for outcomes in range(2, 9):
        p, q = distributions(draw, 60, outcomes), distributions(draw, 60, outcomes)
        p = torch.nn.functional.pad(p, (0, 1))
        q = torch.cat([torch.nn.functional.pad(q[:30], (0, 1)), distributions(draw, 30, outcomes + 1)])
        total = entropy(p if of == "p" else q) + sign * kl_divergence(p, q)
        parts.append(close(cross_entropy(p, q), total, ulps=256))
    p, q = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    return all_of(*parts, exactly(cross_entropy(p, q), kl_divergence(p, q), detail="both infinite"))


def itself(p):
    return p


def uniform(p):
    return torch.full_like(p, 1 / len(p))


@claim("information.ce_minimizer")
@lie("the uniform distribution minimises it", minimiser=uniform)
@lie("it is minimal in p at p = q too", exchanged=True)
@lie("its least value is 0", floor=0.0)
def the_cross_entropy_is_least_at_p(draw, minimiser=itself, exchanged=False, floor=1.0):
    """The slope in the logits at q = p, the least value, and a thousand other distributions, far and near."""
    p = distributions(draw, 1, 6, 0.5)[0]
    best = minimiser(p)
    logits = best.log().requires_grad_()
    (slope,) = torch.autograd.grad(cross_entropy(p, logits.softmax(-1)), logits)
    others = torch.cat([distributions(draw, 500, 6), (p.log() + 0.1 * draw.normal(500, 6)).softmax(-1)])
    values = cross_entropy(others, p) if exchanged else cross_entropy(p, others)
    return all_of(
        close(slope, torch.zeros(6, dtype=torch.float64), within=1e-12),
        at_least(values, cross_entropy(p, best)),
        close(cross_entropy(p, best), floor * entropy(p), scale=1.0),
    )


@claim("information.mutual_information")
@lie("the marginals determine it", joint="product")
@lie("the other variable's entropy is taken", of="Y")
@lie("it is twice the divergence", factor=2.0)
def mutual_information_is_a_property_of_the_joint_distribution(draw, joint="dependent", of="X", factor=1.0):
    """The two forms on tables of samples, symmetry, sign; two tables of fair coins with equal marginals."""
    x, noise = draw.integers(0, 3, 300, 400), draw.integers(0, 4, 300, 400)
    y = torch.where(draw.uniform(300, 400) < 0.5, x, noise)
    samples = [torch.nn.functional.one_hot(label, classes).double() for label, classes in ((x, 3), (y, 4))]
    tables = samples[0].mT @ samples[1] / 400  # the fraction of each pair of classes
    found = mutual_information(tables)
    product = tables.sum(-1, keepdim=True) * tables.sum(-2, keepdim=True)
    given_y = (tables.sum(1) * entropy((tables / tables.sum(1, keepdim=True)).mT)).sum(-1)
    coins = {"dependent": torch.eye(2, dtype=torch.float64) / 2, "product": torch.full((2, 2), 0.25).double()}
    return all_of(
        close(mutual_information(coins[joint]), math.log(2), scale=1.0, detail="two equal fair coins"),
        close(found, factor * torch.xlogy(tables, tables / product).sum((1, 2)), scale=1.0),
        close(found, entropy(tables.sum(-1 if of == "X" else -2)) - given_y, scale=1.0),
        close(found, mutual_information(tables.mT), scale=1.0),
        at_least(found, 1e-3),
        close(mutual_information(product), torch.zeros(300, dtype=torch.float64), scale=1.0),
    )
