"""Entropy and cross-entropy of discrete laws; mutual information of tables."""

import math

import torch

from lemmata.foundations.densities import Density
from lemmata.foundations.information import cross_entropy, entropy, kl_divergence, surprisal
from lemmata.foundations.joint_information import conditional_entropy, mutual_information
from lemmata.foundations.joint_tables import JointTable
from lemmata.foundations.sampled_information import empirical_joint, empirical_law, sampled_entropy
from lemmata.judge import Figure, Heat, all_of, always, at_least, at_most, claim, close, exactly, lie

LOG_2 = math.log(2)


def laws(draw, count, outcomes, sharpness=2.0):
    """Random laws, some of them nearly certain."""
    return (sharpness * draw.normal(count, outcomes)).softmax(-1)


@claim("information.entropy")
@lie("the entropy of a density is not negative either", least=0.0)
@lie("the entropy is at most the logarithm of one outcome fewer", fewer=1)
@lie("an impossible outcome adds to the entropy", zero=0.1)
def the_entropy_lies_between_zero_and_the_logarithm_of_the_outcomes(draw, least=-LOG_2, fewer=0, zero=0.0):
    """Random, certain and uniform laws; grouping; impossible outcomes; the density on [0, 1/2], of entropy -log 2."""
    parts = []
    for outcomes in (2, 3, 5, 8, 1000):
        sure = torch.eye(outcomes, dtype=torch.float64)[:1]
        even = torch.full_like(sure, 1 / outcomes)
        p = torch.cat([laws(draw, 70, outcomes), laws(draw, 10, outcomes, sharpness=80.0), sure, even])
        h = entropy(p)
        parts += [
            at_least(h, 0.0, attained=True),
            at_most(h, math.log(outcomes - fewer), attained=True),
            close(h, (p * surprisal(p)).nan_to_num(0.0).sum(-1)),
            close(entropy(torch.nn.functional.pad(p, (0, 2))) + zero, h),
        ]
    # Grouping characterises it: choosing among three is choosing a group, and then within it.
    p = laws(draw, 50, 3)
    pair = p[:, 1:].sum(-1, keepdim=True)
    grouped = entropy(torch.cat([p[:, :1], pair], -1)) + pair[:, 0] * entropy(p[:, 1:] / pair)
    half = Density(lambda t: torch.full_like(t, 2.0), 0.0, 0.5)
    # Samples in the very proportions of a law, two outcomes of which never occur: its entropy is their mean surprise.
    counts = torch.tensor([1, 2, 5, 8, 0, 0])
    drawn = torch.repeat_interleave(torch.arange(6), counts)
    return all_of(
        *parts,
        close(grouped, entropy(p)),
        close(entropy(torch.tensor([0.5, 0.5], dtype=torch.float64)), LOG_2),
        at_least(half.entropy(), least, attained=True),
        exactly(empirical_law(drawn, 6), counts.double() / 16),
        close(sampled_entropy(drawn, 6, corrected=False), surprisal(counts.double() / 16)[drawn].mean()),
    ).showing(simplex())


def simplex(points=40):
    """The entropy of all laws on three outcomes, two of whose probabilities are the axes."""
    axis = torch.linspace(0, 1, points, dtype=torch.float64)
    p, q = torch.meshgrid(axis, axis, indexing="ij")
    inside = p + q <= 1
    full = torch.stack([p, q, (1 - p - q).clamp(min=0)], -1)
    values = torch.full_like(p, math.nan)
    values[inside] = entropy(full[inside] / full[inside].sum(-1, keepdim=True))
    heat = Heat(values, axis, axis, "nats")
    return Figure("Entropy of three outcomes", "probability of the first", "of the second", [heat])


@claim("information.cross_entropy")
@lie("the expectation is under q and the code for p", exchanged=True)
@lie("the logarithm is to base 2", base=2.0)
@lie("the terms are averaged over the outcomes", terms=1 / 6)
def the_cross_entropy_is_the_mean_length_of_the_wrong_code(draw, exchanged=False, base=math.e, terms=1.0):
    """Random laws and logits against the loss of the same name, values and gradients; batches; certain outcomes."""
    p, logits = laws(draw, 40, 6), draw.normal(40, 6).requires_grad_()
    q = logits.softmax(-1)
    found = cross_entropy(q, p) if exchanged else cross_entropy(p, q)
    loss = torch.nn.functional.cross_entropy(logits, p, reduction="none")
    (slope,) = torch.autograd.grad(found.sum(), logits, retain_graph=True)
    sure = torch.eye(6, dtype=torch.float64)
    return all_of(
        close(terms * found / math.log(base), loss),
        close(slope, q - p, ulps=256),
        close(cross_entropy(sure, q[:1]), surprisal(q[0].detach())),
        close(cross_entropy(p[:, None], q[:3]), torch.stack([cross_entropy(p, q[i : i + 1]) for i in range(3)], 1)),
        at_least(cross_entropy(p, q), 0.0),
        exactly(cross_entropy(sure[:2], sure[1]), torch.tensor([math.inf, 0.0], dtype=torch.float64)),
    )


@claim("information.ce_decomposition")
@lie("the entropy is that of q", share=0.0)
@lie("the divergence is subtracted", sign=-1.0)
def cross_entropy_is_entropy_plus_divergence(draw, share=1.0, sign=1.0):
    """Random pairs, and pairs where an outcome is impossible under one of the laws or both."""
    parts = []
    for outcomes in range(2, 9):
        p, q = laws(draw, 60, outcomes), laws(draw, 60, outcomes)
        p = torch.nn.functional.pad(p, (0, 1))
        q = torch.cat([torch.nn.functional.pad(q[:30], (0, 1)), laws(draw, 30, outcomes + 1)])
        total = share * entropy(p) + (1 - share) * entropy(q) + sign * kl_divergence(p, q)
        parts.append(close(cross_entropy(p, q), total, ulps=256))
    p, q = (torch.tensor(law, dtype=torch.float64) for law in ([0.5, 0.5, 0.0], [1.0, 0.0, 0.0]))
    return all_of(*parts, exactly(cross_entropy(p, q), kl_divergence(p, q), detail="both infinite"))


@claim("information.ce_minimizer")
@lie("the uniform law minimises it", towards=1.0)
@lie("it is minimal in p at p = q too", exchanged=True)
@lie("its least value is 0", floor=0.0)
def the_cross_entropy_is_least_at_p(draw, towards=0.0, exchanged=False, floor=1.0):
    """The slope in the logits at q = p, a thousand other laws, and where descent on the logits ends."""
    p = laws(draw, 1, 6, 0.5)[0]
    best = (1 - towards) * p + towards / 6
    logits = best.log().requires_grad_()
    (slope,) = torch.autograd.grad(cross_entropy(p, logits.softmax(-1)), logits)
    others = torch.cat([laws(draw, 500, 6), (p.log() + 0.1 * draw.normal(500, 6)).softmax(-1)])
    values = cross_entropy(others, p) if exchanged else cross_entropy(p, others)
    here = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    for _ in range(150):  # the curvature in the logits is at most 1/2
        (step,) = torch.autograd.grad(cross_entropy(p, here.softmax(-1)), here)
        here = (here - 2 * step).detach().requires_grad_()
    return all_of(
        close(slope, torch.zeros(6, dtype=torch.float64), within=1e-12),
        at_least(values, cross_entropy(p, best)),
        close(cross_entropy(p, best), floor * entropy(p), scale=1.0),
        close(here.softmax(-1), best, within=1e-4),
    )


@claim("information.mutual_information")
@lie("the marginals determine it", joint="product")
@lie("the other variable's entropy is taken", side=-2)
@lie("it is twice the divergence", factor=2.0)
def mutual_information_is_a_property_of_the_joint_law(draw, joint="dependent", side=-1, factor=1.0):
    """Three forms on random tables, symmetry, bounds; two tables with equal marginals; samples of a known table."""
    tables = draw.uniform(300, 12).square()
    tables = (tables / tables.sum(-1, keepdim=True)).reshape(300, 3, 4)
    found = mutual_information(tables)
    product = tables.sum(-1, keepdim=True) * tables.sum(-2, keepdim=True)
    conditionals = torch.stack([mean_row_entropy(JointTable(table, "X Y")) for table in tables[:40]])
    fair = torch.full((2, 2), 0.25, dtype=torch.float64)
    equal = torch.eye(2, dtype=torch.float64) / 2
    copies = equal if joint == "dependent" else fair
    x, noise = draw.integers(0, 3, 5, 400), draw.integers(0, 4, 5, 400)
    y = torch.where(draw.uniform(5, 400) < 0.5, x, noise)
    counted = torch.stack([((x == i) & (y == j)).double().mean(-1) for i in range(3) for j in range(4)], -1)
    return all_of(
        close(mutual_information(copies), math.log(2), scale=1.0, detail="two equal fair coins"),
        close(factor * found, kl_divergence(tables.flatten(1), product.flatten(1)), scale=1.0),
        close(found, entropy(tables.sum(side)) - conditional_entropy(tables), scale=1.0),
        close(found, entropy(tables.sum(-1)) + entropy(tables.sum(-2)) - entropy(tables.flatten(1)), scale=1.0),
        close(conditional_entropy(tables[:40]), conditionals, scale=1.0),
        close(found, mutual_information(tables.mT), scale=1.0),
        at_least(found, 1e-3),
        close(mutual_information(product), torch.zeros(300, dtype=torch.float64), scale=1.0),
        always([bool(copies.sum(0).equal(fair.sum(0)))]),
        exactly(empirical_joint(x, y, (3, 4)).flatten(1), counted),
        exactly(empirical_joint(x[0], y[0], (3, 4)).flatten(), counted[0]),
    )


def mean_row_entropy(table):
    """The entropy of X averaged over the values of Y."""
    rows = table.conditional("X", given="Y").mT
    return (table.marginal("Y") * entropy(rows)).sum()
