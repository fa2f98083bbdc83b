"""Piecewise linear functions: how near they come, and that one layer of ReLU units writes every one of them."""

import math

import numpy as np
import torch

from lemmata.feedforward.piecewise_linear import PiecewiseLinear
from lemmata.judge import all_of, at_most, claim, close, lie, slope_is


def _root_function(x):
    return (x - 0.3).abs().sqrt()


def _largest_error(function, network, low=0.0, high=1.0, points=40_001):
    x = torch.linspace(low, high, points, dtype=torch.float64)
    return float((function(x) - network(x)).detach().abs().max())


@claim("relu.piecewise_linear_dense")
@lie("half of the bound", factor=1 / 16)
@lie("the error is of third order", order=3.0)
def interpolants_are_within_the_modulus_and_of_second_order(draw, factor=1 / 8, order=2.0):
    """On fine grids; a parabola is exactly as far from its chords as the bound says, and the root of |x - 0.3| has the
    modulus sqrt(h)."""
    pieces = [4, 8, 16, 32, 64, 128]
    smooth = {torch.square: 2.0, torch.sin: math.sin(1), torch.exp: math.e}  # with the largest second derivative
    found = {
        f: [_largest_error(f, PiecewiseLinear.interpolate(f, 0, 1, n, torch.float64)) for n in pieces] for f in smooth
    }
    bounds = {f: [factor * (1 / n) ** order * largest for n in pieces] for f, largest in smooth.items()}
    rough = [
        _largest_error(_root_function, PiecewiseLinear.interpolate(_root_function, 0, 1, n, torch.float64))
        for n in pieces
    ]
    return all_of(
        at_most(found[torch.square], bounds[torch.square], attained=True, ulps=2**20),
        at_most(found[torch.sin] + found[torch.exp], bounds[torch.sin] + bounds[torch.exp], ulps=2**20),
        slope_is([1 / n for n in pieces], found[torch.exp], order, within=0.05),
        at_most(rough, [(1 / n) ** 0.5 for n in pieces]),
    )


def _slope_change(slopes):
    return slopes.diff()


def _next_slope(slopes):
    return slopes[1:]


@claim("relu.lebesgue_form")
@lie("without the affine part", affine=0.0)
@lie("the coefficients are the slopes themselves", coefficient=_next_slope)
@lie("also of a function that jumps by 1", jump=1.0)
def a_sum_of_relus_is_the_broken_line(draw, affine=1.0, coefficient=_slope_change, jump=0.0):
    """The sum, and a network of ReLUs alone, against straight lines from knot to knot."""
    pairs = []
    for knots in (1, 2, 5, 19):
        at = draw.uniform(knots, low=-5.0, high=5.0).sort().values
        values, (left, right) = draw.normal(knots), draw.normal(2).tolist()
        line = PiecewiseLinear(at, values, left, right)
        x = torch.linspace(-7, 7, 801, dtype=torch.float64)
        units = torch.relu(x[:, None] - at) @ coefficient(line.slopes).detach()
        total = affine * (left * x + float(values[0]) - left * float(at[0])) + units
        inner = torch.from_numpy(np.interp(x.numpy(), at.numpy(), values.numpy()))
        broken = inner + left * (x - at[0]).clamp(max=0) + right * (x - at[-1]).clamp(min=0) + jump * (x >= at[0])
        pairs += [(total, broken), (line(x).detach(), broken), (line.network()(x[:, None])[:, 0].detach(), broken)]
    sums, lines = (torch.cat(side) for side in zip(*pairs, strict=True))
    # A sum of 19 units that rise and fall again loses some digits of its largest term.
    return close(sums, lines, ulps=2**14, scale=1 + float(lines.abs().max()))


def _compact_error(network, function):
    return _largest_error(function, network)


def _distant_error(network, function):
    return _largest_error(function, network, low=-1e3, high=1e3)


def _ridge_error(draw, units):
    """The largest error of a bump in the plane, fitted by random ReLU units."""
    side = torch.linspace(-1, 1, 41, dtype=torch.float64)
    x = torch.cartesian_prod(side, side)  # (points, 2)
    direction = draw.unit(units, 2)
    features = torch.relu(x @ direction.mT - draw.uniform(units, low=-1.5, high=1.5))  # (points, units)
    features = torch.cat([features, x, torch.ones(len(x), 1, dtype=torch.float64)], dim=1)
    bump = torch.exp(-4 * x.square().sum(1))
    # Ridge regression with a tiny weight, by its normal equations: the same on every processor to many digits.
    gram = features.mT @ features + 1e-6 * torch.eye(features.shape[1], dtype=torch.float64)
    return float((features @ torch.linalg.solve(gram, features.mT @ bump) - bump).abs().max())


@claim("relu.universality")
@lie("on the whole line at once", domain=_distant_error)
@lie(
    "within the modulus at a quarter of a piece",
    reach=0.25,
    regime="a knot is never further than half of a piece",
    loose="a wider bound holds too",
)
@lie("one unit suffices in the plane", units=1, regime="some hundred suffice", loose="more units come nearer")
def one_layer_of_relus_comes_as_near_as_one_likes(draw, domain=_compact_error, reach=1.0, units=512):
    """Networks with m pieces against the modulus of continuity, and random units in the plane against a bump."""
    targets = {torch.square: lambda h: 2 * h - h * h, _root_function: lambda h: h**0.5, torch.sin: math.sin}
    pieces = [2, 8, 32, 128]
    found, bounds = [], []
    for function, modulus in targets.items():
        for m in pieces:
            network = PiecewiseLinear.interpolate(function, 0, 1, m, torch.float64).network()
            found.append(domain(lambda x, network=network: network(x[:, None])[:, 0], function))
            bounds.append(modulus(reach / m))
    few, many = (_ridge_error(draw, max(units // part, 1)) for part in (16, 1))
    return all_of(
        at_most(found, bounds),
        at_most(many, min(0.05, few / 2)),  # more units come nearer
    )
