"""Dropout: how often a unit is kept, the mixture of all networks, the network in its place, and the penalty it is."""

import torch
from torch import nn

from lemmata.judge import ALPHA, all_of, at_least, claim, close, exactly, lie, mean_is, probability_is
from lemmata.tricks.dropout import Dropout, dropout_ensemble, scaled_for_inference

KEEP = torch.tensor([0.8, 0.5, 0.25, 0.9], dtype=torch.float64)


class Exchanged(Dropout):
    """Keeps with the probability to drop."""

    def __init__(self, p, inverted=True):
        super().__init__(1 - torch.as_tensor(p), inverted)


class OneCoin(Dropout):
    """Keeps a unit if a number is small that is drawn once for all units."""

    def forward(self, x):
        kept = torch.rand(len(x), 1) < self.keep
        return kept / (self.keep if self.inverted else 1.0) * x if self.training else super().forward(x)


class OneMaskForTwo(Dropout):
    """Draws a mask for every second example, and uses it for the next one too."""

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        return x * super().forward(torch.ones_like(x[::2])).repeat_interleave(2, 0)[: len(x)]


@claim("reg.dropout")
@lie("units are dropped with probability π", layer=Exchanged)
@lie("one number is drawn for all units", layer=OneCoin)
@lie("two examples have one mask", layer=OneMaskForTwo)
@lie("nothing is divided", divided=0.0)
def units_are_kept_with_their_probability(draw, layer=Dropout, divided=1.0):
    """How often a unit is kept, several at once, in two examples at once; the mean of training; and evaluation."""
    trained, plain, alike = layer(1 - KEEP), layer(1 - KEEP, inverted=False), layer(0.3)
    x = torch.tensor([1.5, 2.0, 0.7, 3.0], dtype=torch.float64)

    def kept(dropout, units, probability, examples=1):
        def happens(n):
            return (dropout(torch.ones(n * examples, 4)).view(n, examples, 4)[..., units] != 0).flatten(1).all(1)

        return probability_is(happens, float(probability) ** examples, effect=0.02, alpha=ALPHA / 7)

    return all_of(
        *(kept(plain, units, KEEP[units].prod()) for units in ([2], [0, 1], [0, 1, 2, 3])),
        kept(plain, [1, 3], KEEP[1] * KEEP[3], examples=2),
        # One probability for all is torch's kernel.
        *(kept(alike, [0, 1], (1 - 0.3) ** 2, examples) for examples in (1, 2)),
        mean_is(
            lambda y: y.sum(1),
            lambda n: trained(x.expand(n, 4)),
            float(KEEP ** (1 - divided) @ x),
            effect=0.04,
            alpha=ALPHA / 7,
        ),
        exactly(torch.stack([trained.eval()(x), trained(x)]), x.expand(2, 4)),
        close(plain.eval()(x), KEEP * x, ulps=2**30),  # the probabilities are float32
    )


def _dropout_network(draw, p, inverted):
    """Three hidden units and two inputs that may be dropped, two classes."""
    hidden = Dropout(p[2:], inverted)
    network = nn.Sequential(Dropout(p[:2], inverted), nn.Linear(2, 3), nn.Tanh(), hidden, nn.Linear(3, 2))
    network = network.double().requires_grad_(False)
    for values in network.parameters():
        values.copy_(2 * draw.normal(*values.shape))
    return network


@claim("reg.dropout.ensemble")
@lie("the exponents are exchanged", active=0.0)
@lie("a unit is kept with one probability for all", shared=1.0)
def dropout_averages_all_networks(draw, active=1.0, shared=0.0, ensemble=dropout_ensemble):
    """Two inputs and three hidden units: 32 networks, written out one by one, and many passes in training mode."""
    keep = torch.tensor([0.9, 0.6, 0.3, 0.8, 0.5], dtype=torch.float64)
    network, x = _dropout_network(draw, 1 - keep, inverted=False), draw.normal(1, 2)
    found = ensemble(network, x, lambda logits: logits.softmax(-1))
    first, last = network[1], network[4]
    probability, outputs = [], []
    for b in found.masks.double():
        dropped = (1 - shared) * (1 - keep) + shared * (1 - keep[0])
        probability.append(torch.where(b == active, keep, dropped).prod())
        hidden = torch.tanh(first.weight @ (b[:2] * x[0]) + first.bias) * b[2:]
        outputs.append((last.weight @ hidden + last.bias).softmax(0))
    mixture = torch.stack(probability) @ torch.stack(outputs)
    network.train()
    return all_of(
        close(torch.stack(probability).sum(), 1.0, ulps=1000),
        close(found.probability, torch.stack(probability), ulps=1000),
        close(found.outputs[:, 0], torch.stack(outputs), ulps=1000),
        close(found.mean()[0], mixture, ulps=1000),
        mean_is(
            lambda y: y[:, 0], lambda n: network(x.expand(n, 2)).softmax(-1), float(mixture[0]),
            effect=0.02, bounds=(0.0, 1.0),
        ),
    )  # fmt: skip


class DropScaled(Dropout):
    """Scales by the probability to be dropped."""

    def __init__(self, p, inverted=False):
        super().__init__(1 - torch.as_tensor(p), inverted)


def _arithmetic_mean(ensemble):
    return ensemble.mean()


def _geometric_mean(ensemble):
    return ensemble.geometric_mean()


def _linear_network():
    return nn.Linear(6, 3)


def _deep_network():
    hidden = nn.Linear(6, 5)
    nn.init.constant_(hidden.bias, 0.5)
    return nn.Sequential(hidden, nn.ReLU(), Dropout(0.5, inverted=False), nn.Linear(5, 3))


@claim("reg.dropout.weight_scaling")
@lie("weights are scaled by the probability to be dropped", layer=DropScaled)
@lie("for softmax it is the arithmetic mean", average=_arithmetic_mean)
@lie("it is exact for a network with rectified units", exact=_deep_network)
def one_network_stands_for_the_ensemble(draw, layer=Dropout, average=_geometric_mean, exact=_linear_network):
    """Linear units, softmax regression with equal and unequal probabilities, and a network of rectified units."""
    x, p = 2 * draw.normal(20, 6), draw.uniform(6, low=0.1, high=0.9)

    def pair(head, p):
        """The model with dropout, and the single network."""
        parts = list(head) if isinstance(head, nn.Sequential) else [head]
        model = nn.Sequential(Dropout(p, inverted=False), *parts).double().requires_grad_(False)
        return model, scaled_for_inference(nn.Sequential(layer(p, inverted=False), *parts).double())

    model, single = pair(exact(), p)
    mean, answer = dropout_ensemble(model, x).mean(), single(x)
    means, answers = [], []
    for each in (p, torch.full((6,), 0.5, dtype=torch.float64)):
        model, single = pair(_linear_network(), each)
        means.append(average(dropout_ensemble(model, x, lambda logits: logits.softmax(-1))))
        answers.append(single(x).softmax(-1))
    equal = dropout_ensemble(model, x).probability
    model, single = pair(_deep_network(), p)
    return all_of(
        close(answer, mean, ulps=1000, scale=10.0),
        close(torch.stack(answers), torch.stack(means), ulps=1000),
        close(equal, 1 / 64, ulps=0),
        at_least((single(x) - dropout_ensemble(model, x).mean()).abs().max(), 0.01),
    )


def _mask_variance(pi):
    return pi * (1 - pi)


def _squared_probability(pi):
    return pi * pi


def _dropped_square(pi):
    return (1 - pi) ** 2


@claim("reg.dropout.regulariser")
@lie("the coefficient is π²", coefficient=_squared_probability)
@lie("the coefficient is (1 - π)²", coefficient=_dropped_square)
@lie("the prediction is not shrunk", shrunk=0.0)
@lie("the norms of the columns do not count", weighted=0.0)
def dropout_of_inputs_is_ridge_with_weights(draw, coefficient=_mask_variance, shrunk=1.0, weighted=2.0):
    """All 256 masks of eight inputs, kept rarely, evenly and mostly."""
    x, y, w = draw.normal(12, 8) * (1 + draw.uniform(8)), draw.normal(12), draw.normal(8)
    found, formula = [], []
    for pi in (0.125, 0.5, 0.9375, 1.0):  # exact in binary
        line = nn.Linear(8, 1, bias=False).double().requires_grad_(False)
        line.weight.copy_(w)
        ensemble = dropout_ensemble(nn.Sequential(Dropout(1 - pi, inverted=False), line), x)
        losses = (y - ensemble.outputs[..., 0]).square().sum(-1)  # (networks,)
        found.append(ensemble.probability @ losses)
        penalty = coefficient(pi) * (x.norm(dim=0) ** weighted * w.square()).sum()
        formula.append((y - pi**shrunk * x @ w).square().sum() + penalty)
    return close(found, formula, ulps=1000)
