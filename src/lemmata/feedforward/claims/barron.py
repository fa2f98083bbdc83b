"""Barron's theorem: the squared error of sampled steps falls as one over the width, whatever the dimension."""

import math

import torch

from lemmata.feedforward.barron import barron_network
from lemmata.figure import Figure, Line
from lemmata.judge import all_of, at_most, claim, close, lie, slope_is


def _gaussian_network(draw, inputs, hidden):
    """Of exp(-|x|^2/2): frequencies whose direction is uniform and whose length has the density r^n exp(-r^2/2)."""
    lengths = draw.normal(hidden, inputs + 1).norm(dim=1, keepdim=True)
    constant = math.sqrt(2) * math.gamma((inputs + 1) / 2) / math.gamma(inputs / 2)
    return lengths * draw.unit(hidden, inputs), torch.zeros(hidden, dtype=torch.float64), constant


def _ball_points(draw, inputs, points=100):
    return draw.unit(points, inputs) * draw.uniform(points, 1) ** (1 / inputs)


def _squared_error(draw, inputs, hidden, x, repeats):
    """The mean squared error over the points, averaged over networks."""
    total = 0.0
    for _ in range(repeats):
        frequencies, phases, constant = _gaussian_network(draw, inputs, hidden)
        network = barron_network(frequencies, phases, constant, value=1.0, generator=draw.generator)
        error = network(x)[:, 0].detach() - torch.exp(-x.square().sum(1) / 2)
        total += float(error.square().mean()) / repeats
    return total


def _nearly_linear(draw, radius, hidden=256, repeats=200):
    """Of sin(w x) with a small w at the edge of the ball, where the bound is nearest: four times the error."""
    x, frequency = torch.full((1, 1), radius, dtype=torch.float64), 0.01 / radius
    waves = torch.full((hidden, 1), frequency, dtype=torch.float64)
    phases = torch.full((hidden,), -math.pi / 2, dtype=torch.float64)
    nets = [barron_network(waves, phases, frequency, 0.0, radius, generator=draw.generator) for _ in range(repeats)]
    errors = torch.stack([net(x)[0, 0].detach() - math.sin(frequency * radius) for net in nets])
    return hidden * float(errors.square().mean()), (radius * frequency) ** 2


@claim("approx.barron")
@lie("the squared error falls as 1/m²", rate=2.0, regime="a slope fitted to random networks", loose="the same")
@lie(
    "a quarter of the constant suffices for sampled steps",
    factor=0.5,
    regime="the bound is no nearer than a factor of four to what is sampled",
    loose="a larger constant holds too",
)
def sampled_steps_err_by_one_over_the_width(draw, rate=1.0, factor=2.0):
    """Networks drawn from the transform of a Gaussian in 1 to 10 dimensions, under two laws of the points."""
    widths = [16, 64, 256, 1024]
    found, bounds = {}, []
    for inputs in (1, 2, 5, 10):
        constant = _gaussian_network(draw, inputs, 1)[2]
        bounds += [(factor * constant) ** 2] * 2 * len(widths)
        for law, x in (("ball", _ball_points(draw, inputs)), ("sphere", draw.unit(100, inputs))):
            found[inputs, law] = [_squared_error(draw, inputs, m, x, repeats=12) for m in widths]
    scaled = [m * error for errors in found.values() for m, error in zip(widths, errors, strict=True)]
    edges = [_nearly_linear(draw, radius) for radius in (0.1, 1.0, 10.0)]
    means = [sum(errors[k] for errors in found.values()) / len(found) for k in range(len(widths))]
    lines = [Line(widths, errors, f"{n} inputs") for (n, law), errors in found.items() if law == "ball"]
    return all_of(
        at_most(scaled, bounds),
        slope_is(widths, means, -rate, within=0.1),
        at_most([error for error, _ in edges], [(factor**2) * size for _, size in edges]),
        # E[c^2 1] - f^2 = 2 - 1 in units of the bound's (r C_f)^2: the variance of one step
        close([error / size for error, size in edges], [1.0] * 3, within=0.5),
    ).showing(Figure("Squared error of sampled steps", "units", "squared error", lines, x_log=True, y_log=True))
