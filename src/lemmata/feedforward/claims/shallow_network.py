"""Sigmoid networks with one hidden layer: what they fit, the class they are, and that tanh gives the same class."""

import functools
import math
import operator

import torch

from lemmata.feedforward.claims.drawn_weights import filled
from lemmata.feedforward.shallow_network import ShallowNetwork
from lemmata.figure import Figure, Line
from lemmata.judge import all_of, always, claim, close, exactly, lie, reaches


def sigmoid_units(units):
    return ShallowNetwork(1, units, dtype=torch.float64)


def one_period(points):
    x = torch.linspace(0, 1, points, dtype=torch.float64)[:, None]
    return x, torch.sin(2 * math.pi * x[:, 0])


def learn_one_period(network, generator, steps):
    x, y = one_period(64)
    optimizer = torch.optim.LBFGS(network.parameters(), max_iter=steps, history_size=20, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (network(x) - y).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)


@claim("sigmoid.mlp")
@lie("one unit comes as near", units=1, regime="a handful of units suffices", loose="more units come as near")
@lie("m(n + 1) parameters", more=1)
def sigmoid_units_learn_a_period_of_the_sine(draw, units=32, more=2, network=ShallowNetwork):
    """The formula point by point; parameters; and a sine learnt from 64 points of [0, 1], compared on a fine grid."""
    found, formula, counts, sizes = [], [], [], [(1, 1), (3, 2), (2, 5)]
    for n, m in sizes:
        model, x = filled(draw, network(n, m)), draw.normal(20, n)
        v, weight, bias = model.outer, model.hidden.weight, model.hidden.bias
        found.append(model(x))
        formula.append(torch.stack([(v / (1 + torch.exp(-(weight @ point + bias)))).sum() for point in x]))
        counts.append(sum(values.numel() for values in model.parameters()))
    fitted = draw.trained(sigmoid_units, learn_one_period, units=units, steps=300)
    x, y = one_period(2001)
    with torch.no_grad():
        curve = fitted(x)
    figure = Figure(f"{units} sigmoid units", "x", "g(x)", [Line(x[:, 0], y, "sine"), Line(x[:, 0], curve, "network")])
    return all_of(
        reaches((curve - y).abs().max(), 0.05, at_most=True, detail="largest error").showing(figure),
        close(found, formula, ulps=256, scale=10.0),
        exactly(counts, [m * (n + more) for n, m in sizes]),
    )


def _is_monotone(values):
    return bool((values.diff() >= 0).all() or (values.diff() <= 0).all())


@claim("sigmoid.function_class")
@lie("functions of m units are closed under addition", widths=max)
@lie("a further unit changes the function", further=1.0)
def sums_of_networks_are_networks(draw, widths=operator.add, further=0.0, network=ShallowNetwork):
    """Sums against both networks, networks against their single units, and a sum that one unit cannot be."""
    found, formula, counts, predicted = [], [], [], []
    for n, m, other in [(1, 1, 1), (2, 3, 1), (3, 4, 7)]:
        x, first, second = draw.normal(30, n), filled(draw, network(n, m)), filled(draw, network(n, other))
        both, wider = first + second, first.widened(1)
        wider.requires_grad_(False).outer[-1] = further
        units = [filled(draw, network(n, 1)) for _ in range(m)]
        found += [both(x), wider(x), functools.reduce(operator.add, units)(x)]
        formula += [first(x) + second(x), first(x), sum(unit(x) for unit in units)]
        counts.append(both.width)
        predicted.append(widths(m, other))
    # One sigmoid unit of one input rises or falls all the way; a bump does neither, so that it takes two.
    line = torch.linspace(-9, 9, 181, dtype=torch.float64)[:, None]
    single = [_is_monotone(filled(draw, network(1, 1))(line)) for _ in range(50)]
    rise, fall = filled(draw, network(1, 1)), filled(draw, network(1, 1))
    for unit, outer, bias in ((rise, 1.0, 2.0), (fall, -1.0, -2.0)):
        unit.hidden.weight.fill_(1.0), unit.hidden.bias.fill_(bias), unit.outer.fill_(outer)
    needed = 1 if _is_monotone((rise + fall)(line)) else 2
    return all_of(
        close(found, formula, ulps=512, scale=10.0),
        exactly(counts, predicted),
        always(single),
        exactly(needed, widths(1, 1)),
    )


@claim("sigmoid.tanh_equivalence")
@lie("tanh(z) = 2σ(z) - 1", inner=1.0)
@lie("tanh(z) = σ(2z) - 1", outer=1.0)
@lie("without the constant", shift=0.0)
@lie("a network of the same width", units=0)
def sigmoid_and_tanh_networks_are_each_other(draw, inner=2.0, outer=2.0, shift=1.0, units=1, network=ShallowNetwork):
    """Networks of tanh units by the formula in sigmoids, and both conversions, on a thousand inputs."""
    found, formula, counts, predicted = [], [], [], []
    for n, m in [(1, 1), (2, 3), (5, 20)]:
        x, tanh, sigmoid = draw.normal(1000, n), filled(draw, network(n, m, "tanh")), filled(draw, network(n, m))
        z = x @ tanh.hidden.weight.T + tanh.hidden.bias
        found += [tanh(x), tanh.converted("sigmoid")(x), sigmoid.converted("tanh")(x)]
        formula += [(outer * torch.sigmoid(inner * z) - shift) @ tanh.outer, tanh(x), sigmoid(x)]
        counts += [tanh.converted("sigmoid").width, sigmoid.converted("tanh").width]
        predicted += [m + units] * 2
    return all_of(close(found, formula, ulps=1024, scale=40.0), exactly(counts, predicted))
