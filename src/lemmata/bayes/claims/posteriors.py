"""Posteriors: Bayes's rule by counting worlds, the Gaussian prior, the energy and its minimum, what is predicted."""

import math
from fractions import Fraction
from itertools import product

import torch
from torch import nn
from torch.distributions import MultivariateNormal, Normal

from lemmata.bayes.energy import posterior_energy
from lemmata.bayes.ensemble import Ensemble, posterior_weights
from lemmata.bayes.predictive import RegressionPredictive
from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.feedforward.mlp import MLP
from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.judge import all_of, claim, close, exactly, lie, mean_is
from lemmata.tricks.weight_decay import l2_penalty


def counted(copies, throws, faces=6):
    """Of all worlds, equally likely, those that show what was seen, for each die with so many red faces.

    There are `copies[red]` dice with `red` red faces; one of the dice is thrown for each entry of `throws`, red or not.
    """
    found = {}
    for red, number in copies.items():
        worlds = product(range(faces), repeat=len(throws))
        seen = sum(all((face < red) == throw for face, throw in zip(world, throws, strict=True)) for world in worlds)
        found[red] = number * seen
    return found


@claim("bayes.posterior")
@lie("the likelihood over the evidence, without the prior", printed="000/1", power=0)
@lie("the prior counts twice", power=2)
@lie("the evidence is the sum of the likelihoods", weighted=0)
def the_posterior_is_the_fraction_of_worlds(draw, power=1, weighted=1, weights=posterior_weights):
    """The rule in fractions for each of the eight outcomes of three throws of an unknown die, against the fraction of
    worlds that show them; and weights by energies, with and without the evidence."""
    copies = dict(zip([1, 2, 3, 5], (draw.permutation(9)[:4] + 1).tolist(), strict=True))  # no two are alike
    by_rule, by_counting, by_energy = [], [], []
    prior = {red: Fraction(number, sum(copies.values())) for red, number in copies.items()}
    for throws in product([True, False], repeat=3):
        likelihood = {red: math.prod(Fraction(red if t else 6 - red, 6) for t in throws) for red in copies}
        evidence = sum(prior[red] ** weighted * likelihood[red] for red in copies)
        by_rule += [prior[red] ** power * likelihood[red] / evidence for red in copies]
        worlds = counted(copies, throws)
        by_counting += [Fraction(worlds[red], sum(worlds.values())) for red in copies]
        energy = torch.tensor([-math.log(prior[red] * likelihood[red]) for red in copies], dtype=torch.float64)
        by_energy += [weights(energy), weights(energy + math.log(evidence))]
    floats = torch.tensor([float(fraction) for fraction in by_counting], dtype=torch.float64).reshape(8, 1, 4)
    return all_of(
        exactly(by_rule, by_counting),
        exactly([sum(by_rule[first : first + 4]) for first in range(0, 32, 4)], [Fraction(1)] * 8),
        close(torch.stack(by_energy).reshape(8, 2, 4), floats.expand(8, 2, 4)),
    )


def no_data(outputs, y):
    """A likelihood of 1, which leaves the prior alone."""
    return torch.zeros(len(y), dtype=torch.float64)


def minimiser(energy):
    """Of a quadratic: one step of Newton's method from 0."""
    zero = torch.zeros(energy.dimension, dtype=torch.float64)
    gradient = torch.autograd.functional.jacobian(energy, zero)
    return -torch.linalg.solve(torch.autograd.functional.hessian(energy, zero), gradient)


def linear(draw, features):
    """A linear function, and data with a noise and a prior that are not alike."""
    model = nn.Linear(features, 1, bias=False, dtype=torch.float64)
    noise, spread = float(draw.uniform(1, low=0.3, high=0.6)), float(draw.uniform(1, low=1.5, high=2.5))
    x = draw.normal(9, features)
    return model, x, x @ draw.normal(features) + noise * draw.normal(9), noise, spread


@claim("bayes.gaussian_prior")
@lie("the squared length over the variance, without one half", half=1.0)
@lie("divided by twice the standard deviation", power=1.0)
@lie("the ridge is prior over noise variance", inverse=-1.0)
def a_gaussian_prior_is_weight_decay(draw, half=0.5, power=2.0, inverse=1.0, energy=posterior_energy):
    """Differences of the prior's energy of a network with one variance and with one for each layer, against torch's
    normal distribution; its gradient against the penalty's; and the minimum of a linear model against ridge."""
    model, x, y, noise, spread = linear(draw, 4)
    network = MLP(4, 1, widths=(5,), dtype=torch.float64)
    named = {name: float(draw.uniform(1, low=1.5, high=2.5)) for name, _ in network.named_parameters()}
    measured, densities, formulas = [], [], []
    for sigma in (dict.fromkeys(named, spread), named):
        prior = energy(network, (x, y), {name: value**2 for name, value in sigma.items()}, loss=no_data)
        theta = draw.normal(50, prior.dimension)
        sizes = torch.cat(
            [torch.full((p.numel(),), sigma[n], dtype=torch.float64) for n, p in network.named_parameters()]
        )
        each = [prior(theta), -Normal(0.0, sizes).log_prob(theta).sum(1), half * (theta**2 / sizes**power).sum(1)]
        for found, values in zip((measured, densities, formulas), each, strict=True):
            found.append(values - values[0])
    energy(network, (x, y), spread**2, loss=no_data)().backward()
    weights = [p.detach().requires_grad_() for p in network.parameters()]
    pulls = torch.autograd.grad(l2_penalty(weights, 2 * half / spread**power), weights)
    ridge = noise ** (2 * inverse) / spread ** (2 * inverse)
    fitted = LinearRegression(ridge / len(x), bias=False).fit(x, y)
    return all_of(
        close(torch.cat(formulas), torch.cat(densities), ulps=512),
        close(torch.cat(measured), torch.cat(densities), ulps=512),
        close(
            torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None]),
            torch.cat([g.flatten() for g in pulls]),
        ),
        close(minimiser(energy(model, (x, y), spread**2, noise)), fitted.weight_, ulps=1e4),
    )


def jointly(x, noise, spread):
    """The normal distribution of parameters and observations together: θ, then Xθ plus noise."""
    both = torch.cat([torch.eye(x.shape[1], dtype=torch.float64), x])  # of (θ, y), each row a linear map of θ
    covariance = spread**2 * both @ both.T
    covariance.diagonal()[x.shape[1] :] += noise**2
    return Gaussian(torch.zeros(len(both), dtype=torch.float64), covariance)


@claim("bayes.map_energy")
@lie("the energy is the log posterior, with its sign", sign=1.0)
@lie("the squared errors are divided by twice the noise, not its square", power=1.0)
@lie("the weight decay of the minimum is prior over noise variance", inverse=-1.0)
def the_energy_is_minus_the_log_posterior(draw, sign=-1.0, power=2.0, inverse=1.0, energy=posterior_energy):
    """Differences of the energy at 100 pairs, against the posterior as a condition of a joint distribution, whose mean
    is the minimum and the ridge fit; the formula, also for a network; and errors with weight decay."""
    model, x, y, noise, spread = linear(draw, 3)
    posterior = jointly(x, noise, spread).condition(list(range(3, 12)), y)
    truth = MultivariateNormal(posterior.mean, posterior.covariance)
    network = MLP(3, 1, widths=(4,), activation="tanh", dtype=torch.float64)
    of_line, of_network = (energy(each, (x, y), spread**2, noise) for each in (model, network))
    theta, other = draw.normal(2, 100, 3)
    mu = (noise / spread) ** (2 * inverse)
    wide = draw.normal(20, of_network.dimension)
    answers = torch.stack([of_network.copy_to_model(each)(x)[:, 0] for each in wide]).detach()
    errors, sizes = (answers - y).square().sum(1), wide.square().sum(1)
    fitted = LinearRegression(mu / len(x), bias=False).fit(x, y).weight_
    return all_of(
        close(of_line(theta) - of_line(other), sign * (truth.log_prob(theta) - truth.log_prob(other)), ulps=1e4),
        close(minimiser(of_line), posterior.mean, ulps=1e5),
        close(of_network(wide), errors / (2 * noise**power) + sizes / (2 * spread**2), ulps=512),
        close(noise**2 * of_network(wide), errors / 2 + mu / 2 * sizes, ulps=512),
        close(fitted, posterior.mean, ulps=1e5),
    )


def mean_of_answers(ensemble, x):
    """The predictive mean: every member answers."""
    return ensemble.mean(x)


def answer_of_the_mean(ensemble, x):
    """The plug-in: one network, whose parameters are the mean of the members'."""
    one = ensemble.member(0)
    with torch.no_grad():
        for value, stacked in zip(one.parameters(), ensemble.stacked.parameters(), strict=True):
            value.copy_(stacked.mean(0))
    return one(x)


class Squared(nn.Linear):
    """A linear function, squared: the simplest that is not linear in its parameters."""

    def forward(self, x):
        return super().forward(x).square()


@claim("bayes.predictive")
@lie("the answer of the mean parameters", answer=answer_of_the_mean)
@lie("the variance is that of the noise alone", doubt=0.0)
@lie("the variance is that of the models alone", noisy=0.0)
def the_predictive_averages_over_the_posterior(
    draw, answer=mean_of_answers, doubt=1.0, noisy=1.0, predictive=RegressionPredictive, ensemble=Ensemble
):
    """Mean and variance of new observations, the density at one and the mean of a squared function, by members that
    have the posterior's mean and covariance or are drawn from it; against the condition of new on old observations."""
    model, x, y, noise, spread = linear(draw, 3)
    new = draw.normal(6, 3)
    whole = jointly(torch.cat([x, new]), noise, spread)
    both = whole.condition(list(range(3, 12)), y)  # of θ and the new observations
    theta, root = both.mean[:3], torch.linalg.cholesky(both.covariance[:3, :3])
    expected, variance = both.mean[3:], both.covariance.diagonal()[3:]
    spokes = math.sqrt(3) * torch.cat([root.T, -root.T])  # six members with exactly this mean and covariance
    members = ensemble.of_draws(model, theta + spokes)
    mixture = predictive(members(new)[..., 0], noise**2)
    squares = answer(ensemble.of_draws(Squared(3, 1, bias=False, dtype=torch.float64), theta + spokes), new)[:, 0]
    near = expected[:1] + 0.5 * variance[:1].sqrt()

    def density(drawn):
        answers = ensemble.of_draws(model, drawn)(new[:1])[:, :, 0].T  # (1, members), each a mixture of its own
        return (-predictive(answers, noise**2).nll(near.expand(len(drawn)))).exp()

    def from_posterior(n):
        return theta + draw.normal(n, 3) @ root.T

    at_near = Normal(expected[0], variance[0].sqrt()).log_prob(near[0]).exp().item()
    return all_of(
        close(answer(members, new)[:, 0], expected, ulps=1e4),
        close(doubt * mixture.model_variance + noisy * mixture.noise_variance, variance, ulps=1e4),
        close(mixture.variance, variance, ulps=1e4),
        close(squares, expected.square() + variance - noise**2, ulps=1e4),
        mean_is(density, from_posterior, at_near, effect=0.05 * at_near),
    )
