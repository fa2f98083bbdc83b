"""Probabilistic PCA: its likeliest loadings, and what it becomes where the noise vanishes."""

import numpy
import torch

from lemmata.data.registry import load
from lemmata.generative.autoencoders.claims.factor_analysis import with_parameters
from lemmata.generative.autoencoders.claims.linear_autoencoder import points_of
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA
from lemmata.judge import all_of, at_least, claim, close, lie, slope_is

NOISES = (1e-3, 1e-4, 1e-5, 1e-6)


def with_noise(loadings, noise, model):
    """Mean 1 everywhere, these loadings, and the variance of the noise."""
    ones = torch.ones(len(loadings), dtype=torch.float64)
    return with_parameters(ones, loadings, torch.tensor([noise], dtype=torch.float64), model)


def encoder_of(model):
    """The matrix that maps x - mu to the mean of the factors, (factors, features), from what single features give."""
    return model.encode(model.mean + torch.eye(model.features, dtype=torch.float64)).detach().mT


@claim("ppca.pinv_limit")
@lie("orthogonal columns suffice for the transpose", printed="002/1", length=2.0)
@lie("nothing remains unknown, whatever the rank", kept=0.0)
@lie("the distance falls with the square of the variance", order=2.0)
def the_regularised_inverse(draw, length=1.0, kept=1.0, order=1.0, model=ProbabilisticPCA):
    """Loadings of full rank, of a lower rank and with orthogonal columns, beside NumPy's pseudo-inverse."""
    basis, turned = torch.linalg.qr(draw.normal(6, 3)).Q, draw.orthogonal(3)
    full = basis * draw.uniform(3, low=0.8, high=1.6) @ turned
    lacking = basis * torch.tensor([1.2, 0.9, 0.0]).double() @ turned
    evidence = []
    for loadings in (full, lacking, length * basis):
        inverse = torch.from_numpy(numpy.linalg.pinv(loadings.numpy(), rcond=1e-8))
        far = [(encoder_of(with_noise(loadings, noise, model)) - inverse).abs().max() for noise in NOISES]
        last = with_noise(loadings, 1e-8, model)
        unknown = kept * (torch.eye(3).double() - inverse @ loadings)
        evidence += [
            slope_is(NOISES, torch.stack(far), order, within=0.01),
            close(encoder_of(last), inverse, within=1e-6),
            close(last.posterior(last.mean).covariance, unknown, within=1e-6),
        ]
    return all_of(*evidence, close(encoder_of(last), (length * basis).mT, within=1e-6))


def cut_at_zero(excess):
    return excess.clamp(min=0)


def without_its_sign(excess):
    return excess.abs()


def likeliest_loadings(draw, model, x):
    """The least loss of these points that L-BFGS finds by the loadings alone, from two random ones."""
    losses = []
    for _ in range(2):
        with torch.no_grad():
            model.loadings.copy_(draw.normal(*model.loadings.shape))
        optimizer = torch.optim.LBFGS([model.loadings], max_iter=100, line_search_fn="strong_wolfe")

        def closure(optimizer=optimizer):
            optimizer.zero_grad()
            loss = model.loss(x)
            loss.backward()
            return loss

        optimizer.step(closure)
        losses.append(model.loss(x).detach())
    return torch.stack(losses).min()


@claim("ppca.mle")
@lie("the noise is not taken off the eigenvalues", less=0.0)
@lie("the excess itself in place of its root", power=1.0)
@lie("eigenvalues below the noise get a loading too", cut=without_its_sign)
@lie("the variance left over is spread over all features", share=0.0)
def loadings_along_the_first_axes(draw, less=1.0, power=0.5, cut=cut_at_zero, share=1.0, model=ProbabilisticPCA):
    """Noise below, between and above the first two eigenvalues: the fit, the printed loadings, and L-BFGS."""
    variances = torch.tensor([5.0, 2.5, 1.0, 0.6, 0.3]).double() * draw.uniform(5, low=0.9, high=1.1)
    x, axes = points_of(draw, variances)
    x, evidence = x + 1, []
    for noise in (0.5, 3.5, 7.0):
        printed = axes[:2].T * cut(variances[:2] - less * noise) ** power @ draw.orthogonal(2)
        fitted, by_hand = model(5, 2, dtype=torch.float64).fit(x, noise), with_noise(printed, noise, model)
        least = likeliest_loadings(draw, with_noise(printed, noise, model), x)
        evidence += [
            close(fitted.covariance, by_hand.covariance, ulps=1e4),
            close(by_hand.loss(x), least, within=1e-7),
        ]
    free = model(5, 2, dtype=torch.float64).fit(x)
    level = variances[2:].sum() / (5 - share * 2)
    losses = [model(5, 2, dtype=torch.float64).fit(x, float(level) * times).loss(x) for times in (0.97, 1.03)]
    return all_of(
        *evidence, close(free.noise, level.expand(5), ulps=1e4), at_least(torch.stack(losses), free.loss(x).detach())
    )


@claim("ppca.pca_limit")
@lie("the loadings become eigenvectors times eigenvalues", power=1.0)
@lie("nothing is shrunk, whatever the noise", shrunk=0.0)
@lie("the difference is of the order of the standard deviation", order=0.5)
def reconstructions_of_digits(draw, power=0.5, shrunk=1.0, order=1.0, model=ProbabilisticPCA):
    """Digits: reconstructions at several levels of the noise, and loadings, beside NumPy's decomposition."""
    digits = load("digits")
    x, new = (each.x.flatten(1).double() for each in (digits.train, digits.test))
    mean = x.mean(0)
    _, lengths, axes = map(torch.from_numpy, numpy.linalg.svd((x - mean).numpy(), full_matrices=False))
    values, axes = (lengths**2 / len(x))[:5], axes[:5]
    projected = mean + (new - mean) @ axes.T @ axes
    half = float(values[-1]) / 2
    expected = mean + (new - mean) @ axes.T * (1 - shrunk * half / values) @ axes
    levels = [float(values[-1]) * each for each in (*NOISES, 1e-9)]
    fits = [model(64, 5, dtype=torch.float64).fit(x, level) for level in levels]
    far = [(fit(new) - projected).abs().max().detach() for fit in fits]
    loadings = fits[-1].loadings.detach()
    return all_of(
        slope_is(levels[:-1], torch.stack(far[:-1]), order, within=0.01),
        close(fits[-1](new), projected, within=1e-6),
        close(model(64, 5, dtype=torch.float64).fit(x, half)(new), expected, ulps=1e5),
        close(loadings, axes.T * values**power * (loadings * axes.T).sum(0).sign(), within=1e-6),
    )
