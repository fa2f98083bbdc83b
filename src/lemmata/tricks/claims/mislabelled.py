"""What smoothing does to examples with wrong labels: it bounds how sure a classifier becomes of them."""

import math

import torch

from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.softmax import cross_entropy
from lemmata.judge import all_of, at_least, claim, close, lie, reaches

EPSILON, WRONG, EXAMPLES = 0.1, 0.3, 500  # of smoothing, of labels redrawn


def mislabelled():
    """Five hundred digits, of which three in ten are labelled at random."""
    generator, data = torch.Generator().manual_seed(0), load("digits").train
    x, y = data.x[:EXAMPLES].flatten(1).float(), data.y[:EXAMPLES]
    redrawn = torch.rand(EXAMPLES, generator=generator) < WRONG
    given = torch.where(redrawn, torch.randint(10, y.shape, generator=generator), y)
    return x - x.mean(0), given, given != y


def network():
    return MLP(64, 10, widths=(256,))


def learn_all_of_them(model, generator, smoothing):
    """Five hundred steps on all examples at once, until every label is fitted."""
    x, y, _ = mislabelled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(500):
        optimizer.zero_grad()
        cross_entropy(model(x), y, smoothing).backward()
        optimizer.step()


def _mean_confidence(draw, smoothing):
    """The mean probability that is given to wrong labels."""
    model, (x, y, wrong) = draw.trained(network, learn_all_of_them, smoothing=smoothing), mislabelled()
    with torch.no_grad():
        return float(model(x).softmax(1).gather(1, y[:, None])[wrong].mean())


def _logit_gaps(draw, k, smoothing):
    """By how much the label leads among free logits, after two hundred steps of descent and after two thousand."""
    y, logits, found = draw.integers(0, k, 20), draw.normal(20, k), []
    for step in range(2001):
        if step in (200, 2000):
            label = logits.gather(1, y[:, None])
            found.append((label - logits.scatter(1, y[:, None], -math.inf).amax(1, keepdim=True))[:, 0])
        logits.requires_grad_()
        (slope,) = torch.autograd.grad(cross_entropy(logits, y, smoothing, reduction="sum"), logits)
        logits = logits.detach() - 2 * slope
    return found


@claim("reg.label_smoothing.mislabelled")
@lie("the wrong classes have ε each, and not ε together", classes=0.0)
@lie("without smoothing a net is no surer of wrong labels", smoothing=0.0)
def smoothing_bounds_how_sure_a_net_becomes(draw, classes=1.0, smoothing=0.1):
    """Free logits of two and of six classes, with smoothing and without; then digits of which every label is fitted."""
    found, bound, growth = [], [], []
    for k in (2, 6):
        found.append(_logit_gaps(draw, k, EPSILON)[1])
        bound.append(torch.full((20,), math.log((1 - EPSILON + EPSILON / k) / (EPSILON / k**classes))).double())
        early, late = _logit_gaps(draw, k, 0.0)
        growth.append(late - early)
    exact = all_of(
        close(torch.cat(found), torch.cat(bound), within=1e-6),
        at_least(
            torch.cat(growth), 2.0, detail="the gap without smoothing grows by log 10 = 2.3 in ten times the steps"
        ),
    )
    if not exact.holds:
        return exact  # decided without training
    cap = 1 - EPSILON + EPSILON / 10
    return all_of(
        exact,
        reaches(_mean_confidence(draw, 0.0), 0.99, detail="mean probability of the wrong labels, without smoothing"),
        reaches(
            _mean_confidence(draw, smoothing), cap + 0.02, at_most=True, detail="with smoothing, against the cap 0.91"
        ),
    )
