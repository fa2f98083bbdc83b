"""Ensembles of given models: how much each counts, and when they count alike."""

import torch
from torch import nn

from lemmata.bayes.energy import posterior_energy
from lemmata.bayes.ensemble import Ensemble, posterior_weights
from lemmata.bayes.predictive import RegressionPredictive
from lemmata.judge import all_of, claim, close, lie


def one(noise):
    """The temperature of the posterior."""
    return 1.0


def of_the_noise(noise):
    """The energy, which has the noise in it, divided by it once more."""
    return noise


@claim("bayes.ensembling")
@lie("members of low posterior probability count most", power=-1.0)
@lie("all given models count alike", power=0.0)
@lie("the energy is divided by the noise once more", temperature=of_the_noise)
@lie("draws from the posterior are weighted by it again", again=1.0)
def given_models_count_by_their_posterior(
    draw, power=1.0, temperature=one, again=0.0, weights=posterior_weights, ensemble=Ensemble
):
    """A dense grid of lines through the origin, weighted, and quantiles of their posterior, which count alike; against
    mean and variance of new observations in closed form. Weights sum to 1 and do not see a constant."""
    noise, x, new = 0.4, draw.normal(5), draw.uniform(7, low=1.0, high=2.0)
    y = draw.uniform(1, low=0.5, high=1.5) * x + noise * draw.normal(5)
    precision = 1 + x.square().sum() / noise**2  # of the slope, whose prior has variance 1
    mean, variance = x @ y / noise**2 / precision, 1 / precision
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    energy = posterior_energy(model, (x[:, None], y), prior_variance=1.0, noise=noise)
    grid = torch.linspace(-12, 12, 6001, dtype=torch.float64)[:, None]  # far beyond all that is probable
    counted = weights(power * energy(grid), temperature(noise))
    shifted = weights(power * energy(grid) + 1e3 * draw.uniform(1), temperature(noise))
    quantiles = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    drawn = (mean + variance.sqrt() * torch.special.ndtri(quantiles))[:, None]
    alike = weights(again * energy(drawn))
    both = [(grid, counted, 1e-9), (drawn, alike, 1e-3)]  # quantiles cut the tails off: 3e-4 of the variance
    mixtures = [
        (RegressionPredictive(ensemble.of_draws(model, draws, each)(new[:, None])[..., 0], noise**2, each), within)
        for draws, each, within in both
    ]
    return all_of(
        close(counted.sum(), 1.0),
        close(shifted, counted, ulps=1e5),
        *(close(mixture.mean, mean * new, within=within) for mixture, within in mixtures),
        *(close(mixture.variance, variance * new**2 + noise**2, within=within) for mixture, within in mixtures),
        close(ensemble.of_draws(model, grid, counted).mean(new[:, None])[:, 0], mean * new, within=1e-9),
    )
