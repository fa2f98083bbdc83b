"""Denoising: the posterior mean is best, a network finds it, and what it adds to its input is the score."""

import torch
from scipy import special
from torch import nn

from lemmata.data.mixtures import gaussian_mixture
from lemmata.feedforward.mlp import MLP
from lemmata.generative.autoencoders.denoising_autoencoder import DenoisingAutoencoder
from lemmata.generative.diffusion.langevin import score_of
from lemmata.judge import all_of, claim, close, lie, mean_is, reaches, slope_is


def mixture_log_density(parameters, added):
    """The log density of a mixture with parameters from the data, convolved with a Gaussian of variance `added`."""
    weights, means, covariances = (parameters[name] for name in ("weights", "means", "covariances"))
    wider = covariances + added * torch.eye(means.shape[1], dtype=means.dtype)
    parts = torch.distributions.MultivariateNormal(means, wider)
    return lambda x: (parts.log_prob(x[..., None, :]) + weights.log()).logsumexp(-1)


class PosteriorMean(nn.Module):
    """The mean of a point given its noisy copy, by an integral over all that it may have been."""

    def __init__(self, log_density, noise_level):
        super().__init__()
        self.log_density, self.noise_level = log_density, noise_level
        axis = torch.linspace(-9, 9, 91, dtype=torch.float64)  # in units of the noise
        self.offsets = torch.cartesian_prod(axis, axis)

    def forward(self, x):
        before = x[:, None] + self.noise_level * self.offsets  # (batch, offsets, 2)
        weight = (self.log_density(before) - self.offsets.square().sum(1) / 2).softmax(1)
        return (weight[..., None] * before).sum(1)


@claim("ae.dae_score")
@lie("the noise is not squared", power=1.0)
@lie("of the density without noise", added=0.0)
@lie("of a density with noise of half the deviation", added=0.25)
@lie("the limit is reached in proportion to the noise", order=1.0)
@lie("away from where the density rises", sign=-1.0)
def what_the_best_denoiser_adds(draw, power=2.0, added=1.0, order=2.0, sign=1.0, autoencoder=DenoisingAutoencoder):
    """Mixtures in the plane at three noise levels, the best denoiser by quadrature; and how fast noise is forgotten."""
    parameters = gaussian_mixture(n=1, test=1, separation=1.5, seed=draw.seed).extra
    truth = mixture_log_density(parameters, 0.0)
    x, steps, scores = parameters["means"][draw.integers(0, 3, 12)] + draw.normal(12, 2), [], []
    for level in (0.2, 0.6, 1.5):
        model = autoencoder(PosteriorMean(truth, level), level)
        wider = score_of(mixture_log_density(parameters, added * level**2))(x).detach()
        steps.append(close(model(x) - x, sign * level**power * wider, within=1e-9, detail=f"step at noise {level}"))
        scores.append(close(model.score(x), sign * wider, within=1e-8, detail=f"score at noise {level}"))
    levels = torch.tensor([0.04, 0.02, 0.01]).double()
    sharp = score_of(truth)(x).detach()
    far = [(autoencoder(PosteriorMean(truth, float(s)), float(s)).score(x) - sharp).abs().mean() for s in levels]
    return all_of(*steps, *scores, slope_is(levels, torch.stack(far), order, within=0.015))


NOISE = 0.4  # on a circle of radius 1


def on_the_circle(n, generator):
    angle = 2 * torch.pi * torch.rand(n, generator=generator)
    return torch.stack([angle.cos(), angle.sin()], 1)


def circle_posterior_mean(x, noise):
    """Of a point on the circle, of which all are as likely, given its noisy copy: towards it, and never quite there."""
    radius = x.norm(dim=1, keepdim=True)
    concentration = radius.numpy() / noise**2
    return x / radius * torch.from_numpy(special.ive(1, concentration) / special.ive(0, concentration))


def plane_network(noise):
    return DenoisingAutoencoder(MLP(2, 2, widths=(64, 64), activation="silu"), noise_level=NOISE)


def learn_circle(model, generator, noise, steps=1500):
    model.noise_level = noise
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 5e-3 * (1 - step / steps)
        optimizer.zero_grad()
        model.loss(on_the_circle(256, generator), generator=generator).backward()
        optimizer.step()


def nearest_point(x, noise):
    return x / x.norm(dim=1, keepdim=True)


@claim("ae.denoising")
@lie("the nearest point without noise is best", best=nearest_point)
@lie("trained without noise", noise=1e-6)
@lie("it moves away from the data", sign=-1.0)
@lie("a fifth of the distance is left", left=0.2)
def noise_is_undone_on_the_average(draw, noise=0.4, sign=1.0, left=0.5, best=circle_posterior_mean):
    """A circle: what is best leaves an error that its input does not foretell; and a network that learnt it."""
    model = draw.trained(plane_network, learn_circle, noise=noise).double()

    def foretold(clean):
        """The error of what is best, times a function of what it was given: without a mean, if it is best."""
        noisy = model.corrupt(clean, draw.generator)
        return ((best(noisy, noise) - clean) * noisy / noisy.norm(dim=1, keepdim=True)).sum(1)

    model.noise_level = NOISE
    clean = on_the_circle(2000, draw.generator).double()
    noisy = model.corrupt(clean, draw.generator)
    with torch.no_grad():
        found = noisy + sign * (model(noisy) - noisy)
    target = best(noisy, NOISE)
    unexplained = (found - target).square().sum() / (target - noisy).square().sum()
    away = [(points.norm(dim=1) - 1).abs().mean() for points in (found, noisy)]
    return all_of(
        mean_is(foretold, lambda n: on_the_circle(n, draw.generator).double(), 0.0, effect=0.01),
        reaches(1 - unexplained, 0.97, detail="part of the best move that the network makes"),
        reaches(away[0] / away[1], left, at_most=True, detail="part of the distance to the circle that is left"),
    )
