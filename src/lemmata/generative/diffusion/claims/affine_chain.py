"""The bound of a reverse process whose steps are affine, for one number: every expectation is that of a normal law."""

import math

import torch
from torch import Tensor

from lemmata.generative.diffusion.claims.gaussian_data import signal_of


class AffineChain:
    """A path x_0, ..., x_T given x_0 as one normal law, and the reverse steps that a network of lines makes.

    The network answers slope_t x + offset_t at time t; its step from t to t - 1 has the posterior's variance, and the
    rate's at t = 1.
    """

    def __init__(self, rates: Tensor, x0: float, slopes: Tensor, offsets: Tensor):
        self.rates, self.T, self.x0, self.slopes, self.offsets = rates, len(rates), x0, slopes, offsets
        self.signal = signal_of(rates)
        self.noise = 1 - self.signal
        self.mean = self.signal.sqrt() * x0
        times = torch.arange(self.T + 1)
        late, early = torch.maximum(times[:, None], times), torch.minimum(times[:, None], times)
        self.covariance = (self.signal[late] / self.signal[early]).sqrt() * self.noise[early]
        kept = (1 - rates).sqrt()
        pull = rates / self.noise[1:].sqrt()
        self.back_slopes, self.back_offsets = (1 - pull * slopes) / kept, -pull * offsets / kept  # of t = 1, ..., T
        smaller = self.noise[:-1] / self.noise[1:] * rates
        self.variances = torch.cat([rates[:1], smaller[1:]])

    def model(self, x, t):
        """What the network answers."""
        return self.slopes[t - 1][:, None] * x + self.offsets[t - 1][:, None]

    def row(self, **weights):
        """A combination of the states: `x3=2.0` is twice that at time 3."""
        row = torch.zeros(self.T + 1, dtype=torch.float64)
        for name, weight in weights.items():
            row[int(name[1:])] = weight
        return row

    def expected_square(self, row: Tensor, offset: Tensor | float = 0.0):
        return (row @ self.mean - offset) ** 2 + row @ self.covariance @ row

    def expected_log(self, t):
        """Of the density of the step from t to t - 1."""
        row = self.row(**{f"x{t - 1}": 1.0, f"x{t}": -self.back_slopes[t - 1]})
        square, variance = self.expected_square(row, self.back_offsets[t - 1]), self.variances[t - 1]
        return -(square / variance + torch.log(2 * math.pi * variance)) / 2

    def direct_bound(self):
        """The expected log-ratio of both path densities, which knows of no posterior."""
        start = -(self.expected_square(self.row(**{f"x{self.T}": 1.0})) + math.log(2 * math.pi)) / 2
        forward = -(1 + torch.log(2 * math.pi * self.rates)).sum() / 2
        return start + sum(self.expected_log(t) for t in range(1, self.T + 1)) - forward

    def given_the_later(self, t):
        """The posterior of the state at t - 1 given that at t and the data."""
        of_data = self.signal[t - 1].sqrt() * self.rates[t - 1] / self.noise[t]
        of_state = self.noise[t - 1] * (1 - self.rates[t - 1]).sqrt() / self.noise[t]
        return self.row(x0=of_data) + self.row(**{f"x{t}": of_state}), self.variances[t - 1]

    def given_the_earlier(self, t):
        """The forward kernel of the state at t - 1, given that at t - 2."""
        return self.row(**{f"x{t - 2}": (1 - self.rates[t - 2]).sqrt()}), self.rates[t - 2]

    def divergence(self, wanted, t):
        """Expected, of the step from t to t - 1, from the law that is wanted there."""
        row, variance = wanted(t)
        square = self.expected_square(row - self.row(**{f"x{t}": self.back_slopes[t - 1]}), self.back_offsets[t - 1])
        ratio = variance / self.variances[t - 1]
        return (square / self.variances[t - 1] + ratio - 1 - torch.log(ratio)) / 2

    def prior(self):
        """Divergence of the last state from pure noise."""
        return (self.expected_square(self.row(**{f"x{self.T}": 1.0})) - 1 - torch.log(self.noise[-1])) / 2

    def sum_of_terms(self, wanted, missing=0, weight=1.0):
        """The bound as a likelihood, a divergence of each step but so many of the last, and that of the noise."""
        middle = [self.divergence(wanted, t) for t in range(2, self.T + 1 - missing)]
        return self.expected_log(1) - weight * sum(middle) - self.prior()

    def log_likelihood(self):
        """Of the data under the reverse chain itself, whose marginals are normal."""
        mean, variance = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
        for slope, offset, added in zip(*(each.flip(0) for each in (
            self.back_slopes, self.back_offsets, self.variances)), strict=True):  # fmt: skip
            mean, variance = slope * mean + offset, slope**2 * variance + added
        return -((self.x0 - mean) ** 2 / variance + torch.log(2 * math.pi * variance)) / 2
