"""The score: what it is of a Gaussian, of an energy and of a mixture, and what it does not depend on."""

import math

import torch

from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.generative.diffusion.langevin import score_of
from lemmata.judge import all_of, claim, close, lie


def as_it_is(log_density):
    return log_density


def of_the_density(log_density):
    """The density itself in the place of its logarithm."""
    return lambda x: log_density(x).exp()


def two_humps(draw):
    """The log density of a mixture of two Gaussians on the line, from its parameters."""
    weight, mean, spread = draw.uniform(1, low=0.3, high=0.7)[0], draw.normal(2), draw.uniform(2, low=0.5, high=1.5)

    def log_density(x):
        each = -0.5 * ((x - mean) / spread) ** 2 - spread.log() - 0.5 * math.log(2 * math.pi)
        return (each + torch.stack([weight, 1 - weight]).log()).logsumexp(1)

    return log_density


@claim("score.definition")
@lie("the gradient of the energy itself", sign=1.0)
@lie("the gradient of the density, not of its logarithm", of=of_the_density)
@lie("the normalising constant shifts the score", shift=1.0)
@lie("the precision of a Gaussian is its covariance", power=1.0)
def the_slope_of_the_log_density(draw, sign=-1.0, shift=0.0, power=-1.0, of=as_it_is):
    """A Gaussian, an energy with every constant, and a mixture by the two integrals that no other field satisfies."""
    covariance, mean, x = draw.covariance(4), draw.normal(4), draw.normal(30, 4)
    gaussian = score_of(of(Gaussian(mean, covariance).log_density))(x)
    values, axes = torch.linalg.eigh(covariance)
    pulled = (mean - x) @ axes * values**power @ axes.mT
    matrix, size = draw.covariance(4), draw.uniform(4, low=0.5, high=2.0)

    def energy(x):
        return 0.5 * (x @ matrix * x).sum(1) + size @ (x**4).mT

    slope = x @ matrix + 4 * size * x**3  # of the energy, by hand
    constants = torch.tensor([-300.0, -1.0, 0.0, 40.0, 300.0]).double()  # log Z; Z itself would overflow soon
    found = [score_of(of(lambda x, c=c: -energy(x) - c))(x) for c in constants]
    predicted = [sign * slope + shift * c for c in constants]
    line = torch.linspace(-25, 25, 20_001, dtype=torch.float64)[:, None]  # far beyond both humps, fine enough for 1e-12
    log_density = two_humps(draw)
    mass = log_density(line).exp() * (line[1] - line[0])
    field = score_of(of(log_density))(line)[:, 0]
    return all_of(
        close(gaussian, pulled, ulps=1e4, detail="score of a Gaussian"),
        close(found, predicted, ulps=1e4, detail="score of an energy, for five constants"),
        close((mass * field).sum(), 0.0, within=1e-9, detail="mean of the score"),
        close((mass * field * line[:, 0]).sum(), sign, within=1e-9, detail="mean of the score times x"),
    )
