"""Data whose diffusion is known in closed form: normal ones, and mixtures of two normal laws on the line."""

import math

import torch

from lemmata.generative.diffusion.noise_schedule import DiffusionSteps


def random_steps(draw, count, least=1e-3, most=0.5):
    """Steps with rates between the two, of all orders of magnitude alike, and the rates themselves."""
    rates = torch.exp(draw.uniform(count, low=math.log(least), high=math.log(most)))
    return DiffusionSteps.from_rates(rates), rates


def signal_of(rates):
    """What is left of the data after each of 0, 1, ..., T steps: a running product of our own."""
    left = [torch.ones((), dtype=torch.float64)]
    for rate in rates:
        left.append(left[-1] * (1 - rate))
    return torch.stack(left)


def best_noise(rates, mean, variance):
    """The noise that is expected in a state, where the data are normal: what a perfect network would answer."""
    signal = signal_of(rates)

    def model(x, t):
        kept = signal[t[0]]
        return (1 - kept).sqrt() * (x - kept.sqrt() * mean) / (kept * variance + 1 - kept)

    return model


class TwoBumps:
    """The law of N(-1, spread^2) and N(1, spread^2) in equal parts, after each number of steps."""

    def __init__(self, rates, spread=0.3):
        self.signal, self.spread = signal_of(rates), spread

    def _moment_parts(self, x, t):
        kept = self.signal[t]
        variance, centre = kept * self.spread**2 + 1 - kept, kept.sqrt()
        logs = torch.stack([-((x - sign * centre) ** 2) / (2 * variance) for sign in (-1, 1)])
        return logs - math.log(2) - torch.log(2 * math.pi * variance) / 2, variance, centre

    def density(self, x, t):
        return self._moment_parts(x, t)[0].exp().sum(0)

    def noise(self, x, t):
        """The noise that is expected in a state: minus the score, times its standard deviation."""
        t = int(t[0])
        logs, variance, centre = self._moment_parts(x, t)
        weights = logs.softmax(0)
        score = (weights[1] - weights[0]) * centre / variance - x / variance
        return -(1 - self.signal[t]).sqrt() * score


def grid(points, reach=4.0):
    """Equally spaced points on the line, and the distance between two of them."""
    x = torch.linspace(-reach, reach, points, dtype=torch.float64)
    return x, float(x[1] - x[0])


def normal_density(x, mean, variance):
    return torch.exp(-((x - mean) ** 2) / (2 * variance)) / (2 * math.pi * variance) ** 0.5
