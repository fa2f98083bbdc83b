"""Factor analysis: its law, what it knows of the factors, what of it data cannot tell, and its fit."""

import itertools

import numpy
import torch
from scipy import special, stats
from torch import nn

from lemmata.generative.autoencoders.factor_analysis import FactorAnalysis
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA
from lemmata.judge import all_of, always, at_least, at_most, claim, close, law_is, lie, mean_is

ALPHA = 1e-9  # of a claim
SAMPLE = "samples that take an instant tell no more"


def with_parameters(mean, loadings, noise, model: type[FactorAnalysis] | type[ProbabilisticPCA] = FactorAnalysis):
    """The model with these parameters; the noise as variances."""
    made = model(*loadings.shape, dtype=torch.float64)
    with torch.no_grad():
        for parameter, value in zip(made.parameters(), (mean, loadings, noise.log()), strict=True):
            parameter.copy_(value)
    return made


def drawn_model(draw, n, m, model=FactorAnalysis, scale=1.0):
    """A model whose noise differs from feature to feature, in units as large as `scale`."""
    noise, loadings = draw.uniform(n, low=0.5, high=2.0), draw.uniform(n, m, low=-1.5, high=1.5)
    return with_parameters(scale * draw.normal(n), scale * loadings, scale**2 * noise, model)


class NoiseOfTheFactor(FactorAnalysis):
    """Noise of the right variances, but the same draw as the first factor's."""

    def sample(self, n, *, generator=None):
        factors = torch.randn(n, self.factors, generator=generator, dtype=torch.float64)
        return (self.mean + factors @ self.loadings.mT + self.noise.sqrt() * factors[:, :1]).detach()


@claim("fa.model")
@lie("factors of variance 2", factor_variance=2.0, regime=SAMPLE, loose=SAMPLE)
@lie("the variances of the noise are squared", power=2.0, regime=SAMPLE, loose=SAMPLE)
@lie("the noise may depend on the factors", model=NoiseOfTheFactor)
def factors_and_independent_noise(draw, factor_variance=1.0, power=1.0, model=FactorAnalysis):
    """The law of samples along two directions, one of which sees no factor, and a density as an average over z."""
    loadings = torch.cat([torch.zeros(1, 2).double(), 2 * torch.linalg.qr(draw.normal(4, 2)).Q])
    noise = torch.tensor([0.02, 0.3, 0.3, 0.3, 0.3]).double()
    made = with_parameters(draw.normal(5), loadings, noise, model)
    alone, inside = torch.eye(5).double()[0], loadings[:, 0] / 2
    evidence = []
    for direction in (alone, inside):
        shadow = direction @ loadings
        variance = factor_variance * shadow @ shadow + direction.square() @ noise**power

        def cdf(values, variance=variance):
            return special.ndtr(values / variance.sqrt())

        def sample(count, direction=direction):
            return (made.sample(count, generator=draw.generator) - made.mean.detach()) @ direction

        evidence.append(law_is(sample, cdf, effect=0.015, alpha=ALPHA / 3))
    x = made.mean.detach() + loadings @ draw.unit(2)

    def density_given(z):
        away = x - made.mean.detach() - z @ loadings.mT
        spread = noise**power
        return torch.exp(-(away.square() / spread + (2 * torch.pi * spread).log()).sum(1) / 2)

    density = made.log_prob(x).exp().detach()

    def factors(count):
        return factor_variance**0.5 * draw.normal(count, 2)

    average = mean_is(density_given, factors, density, effect=0.1 * float(density), alpha=ALPHA / 3)
    same = with_parameters(draw.normal(5), loadings, noise[:1], ProbabilisticPCA)
    isotropic = close(same.covariance - loadings @ loadings.mT, noise[0] * torch.eye(5).double(), ulps=1000)
    return all_of(*evidence, average, isotropic)


def outer(loadings):
    return loadings @ loadings.mT


def inner_where_it_fits(loadings):
    square = loadings.shape[0] == loadings.shape[1]
    return loadings.mT @ loadings if square else outer(loadings)


@claim("fa.marginal")
@lie("the factors in the order of the transpose", product=inner_where_it_fits)
@lie("the covariance without the noise", noise=0.0)
@lie("the noise counted twice", noise=2.0)
def one_gaussian(draw, product=outer, noise=1.0, model=FactorAnalysis):
    """The density given the factors, summed over a fine grid of them, and SciPy's density of the marginal."""
    line = torch.linspace(-9, 9, 181, dtype=torch.float64)  # finer than what the noise blurs
    evidence = []
    for (n, m), scale in itertools.product(((3, 1), (4, 2), (2, 2)), (1.0, 1e-4, 1e4)):
        made = drawn_model(draw, n, m, model, scale)
        mean, loadings, spread = (each.detach() for each in (made.mean, made.loadings, made.noise))
        x = mean + scale * draw.normal(5, n)
        grid = torch.cartesian_prod(*[line] * m).reshape(-1, m)
        prior = (0.1**m * (2 * torch.pi) ** (-m / 2) * torch.exp(-grid.square().sum(1) / 2)).log()
        away = x[:, None] - mean - grid @ loadings.mT  # (points, grid, features)
        given = -(away.square() / spread + (2 * torch.pi * spread).log()).sum(-1) / 2
        integral = (given + prior).logsumexp(1)
        covariance = (product(loadings) + noise * spread.diag()).numpy()
        marginal = stats.multivariate_normal(mean.numpy(), covariance, allow_singular=True).logpdf(x.numpy())
        found = made.log_prob(x)
        evidence += [close(found, integral, within=1e-7), close(found, torch.from_numpy(marginal), ulps=1e5)]
    return all_of(*evidence)


def mean_of(x):
    return x.mean(0)


def median_of(x):
    return x.median(0).values


@claim("fa.mean_mle")
@lie("the median of each feature", centre=median_of)
@lie("shrunk by a tenth", part=0.9)
@lie("the sum over one point less", less=1)
def the_sample_mean(draw, centre=mean_of, part=1.0, less=0, model=FactorAnalysis):
    """Skewed points, and models from tiny to large and nearly singular: Newton's step, other means, and both fits."""
    evidence = []
    for scale, least in ((1.0, 1.0), (1e-3, 1.0), (1e3, 1.0), (1.0, 1e-5)):
        x = scale * (1 + draw.uniform(60, 4).log().neg())  # exponential: median and mean differ
        likeliest = part * centre(x) * 60 / (60 - less)
        made = drawn_model(draw, 4, 2, model, scale)
        made = with_parameters(x[0], made.loadings.detach(), least * made.noise.detach())

        def loss_at(mean, made=made, x=x):
            made.mean.data.copy_(mean)
            return made.loss(x)

        def slope(mean, made=made, loss_at=loss_at):
            return torch.autograd.grad(loss_at(mean), made.mean)[0]

        steps = scale * torch.eye(4).double()
        curvature = torch.stack([slope(x[0] + step) - slope(x[0]) for step in steps], 1) / scale
        reached = x[0] - torch.linalg.solve(curvature, slope(x[0]))
        others = [loss_at(likeliest + 0.3 * scale * draw.normal(4)).detach() for _ in range(30)]
        evidence += [
            close(reached, likeliest, within=1e-9 * scale / least),
            at_least(torch.stack(others), loss_at(likeliest).detach()),
        ]
    fits: list[torch.Tensor] = [kind(4, 2, dtype=torch.float64).fit(x).mean for kind in (model, ProbabilisticPCA)]
    return all_of(*evidence, close(torch.stack(fits), likeliest.expand(2, 4)))


@claim("fa.posterior")
@lie("the mean of the data is not taken off", offset=0.0)
@lie("what x tells is added to the prior's covariance", sign=1.0)
@lie("the noise in place of its inverse", power=1.0)
def factors_given_an_example(draw, offset=1.0, sign=-1.0, power=-1.0, model=FactorAnalysis):
    """Both printed forms, and the blocks of the inverse of the covariance of factors and features together."""
    evidence = []
    for (n, m), scale, least in (((8, 4), 1.0, 1.0), ((1, 1), 1e3, 1.0), ((6, 2), 1e-3, 1.0), ((5, 5), 1.0, 1e-4)):
        drawn = drawn_model(draw, n, m, model, scale)
        mean, loadings, noise = (each.detach() for each in (drawn.mean, drawn.loadings, least * drawn.noise))
        made, x = with_parameters(mean, loadings, noise, model), mean + scale * draw.normal(5, n)
        whole = loadings @ loadings.mT + noise.diag()
        gain = torch.linalg.solve(whole, loadings).mT  # (factors, features)
        identity = torch.eye(m).double()
        printed = identity + sign * gain @ loadings
        other = torch.linalg.inv(identity + (loadings.mT * noise**power) @ loadings)
        joint = torch.cat([torch.cat([identity, loadings.mT], 1), torch.cat([loadings, whole], 1)])
        precision = torch.linalg.inv(joint)
        covariance = torch.linalg.inv(precision[:m, :m])
        centred = x - mean
        found = made.posterior(x)
        room = 1e-10 / least
        evidence += [
            close(found.mean, (x - offset * mean) @ gain.mT, within=room),
            close(found.mean, -(centred @ precision[m:, :m]) @ covariance, within=room),
            close(made.encode(x), found.mean.detach()),
            close(found.covariance, printed, within=room),
            close(found.covariance, other, within=room),
            close(found.covariance, covariance, within=room),
        ]
    return all_of(*evidence)


def as_rotated(factors, mixing):
    return factors @ mixing


def as_they_were(factors, mixing):
    return factors


@claim("fa.rotation")
@lie("any invertible matrix does", stretch=2.0)
@lie("the factors that an example is given stay what they were", turned=as_they_were)
def rotated_factors(draw, stretch=1.0, turned=as_rotated, model=FactorAnalysis):
    """Rotations, a reflection and a permutation at three scales, and the rotation between two roots of one matrix."""
    evidence, scales = [], torch.tensor([1.0, 1.0, stretch]).double()
    reflection, permutation = torch.diag(torch.tensor([-1.0, 1.0, 1.0])).double(), torch.eye(3).double()[[1, 2, 0]]
    for rotation, scale in ((draw.orthogonal(3), 1.0), (reflection, 1e-3), (permutation, 1e3)):
        made, mixing = drawn_model(draw, 6, 3, model, scale), rotation * scales
        mean, loadings, noise = (each.detach() for each in (made.mean, made.loadings, made.noise))
        other, x = with_parameters(mean, loadings @ mixing, noise, model), mean + 2 * scale * draw.normal(100, 6)
        values, vectors = torch.linalg.eigh(loadings @ loadings.mT)
        root = vectors[:, 3:] * values[3:].sqrt()
        between = torch.linalg.pinv(loadings) @ root
        evidence += [
            close(other.log_prob(x), made.log_prob(x), ulps=1e4),
            close(other.encode(x), turned(made.encode(x), mixing), ulps=1e5),
            close(between @ between.mT, torch.eye(3).double(), ulps=1e6),
        ]
    return all_of(*evidence)


class FirstNoise(FactorAnalysis):
    """The likeliest loadings for the noise that a fit begins with."""

    def fit(self, x, **settings):
        super().fit(x, tolerance=1e9)
        self.history_ = 2 * self.history_
        return self


class Isotropic(ProbabilisticPCA):
    """One noise for all features, under the same interface."""

    def fit(self, x, **settings):
        super().fit(x)
        self.history_ = 2 * [self.log_prob(x).mean().item()]
        return self


def likeliest_by_gradient(draw, x, m):
    """The largest mean log-likelihood that L-BFGS finds for a dense covariance of this form, by its own formula."""
    n, covariance = x.shape[1], torch.cov(x.T, correction=0)
    loadings, log_noise = nn.Parameter(draw.normal(n, m)), nn.Parameter(torch.zeros(n).double())
    optimizer = torch.optim.LBFGS([loadings, log_noise], max_iter=300, history_size=30, tolerance_change=0,
                                  line_search_fn="strong_wolfe")  # fmt: skip

    def closure():
        optimizer.zero_grad()
        whole = loadings @ loadings.mT + log_noise.exp().diag()
        distance = torch.linalg.solve(whole, covariance).diagonal().sum()
        loss = (n * numpy.log(2 * numpy.pi) + torch.logdet(whole) + distance) / 2
        loss.backward()
        return loss

    optimizer.step(closure)
    return -closure().detach()


@claim("fa.system")
@lie("one noise for all features is as likely", model=Isotropic)
@lie("the loadings for noise as large as the data are the likeliest", model=FirstNoise)
@lie("WW' is known to a hundredth", near=0.01, regime="the error of this sample is a few hundredths", loose="a bound")
def the_largest_likelihood(draw, near=0.15, model=FactorAnalysis):
    """Noise that differs from feature to feature: L-BFGS on a dense covariance, held-out points, what was drawn."""
    loadings, spread = 2 * draw.normal(10, 3), torch.linspace(-1, 1, 10).double().exp()[draw.permutation(10)]
    x, new = (draw.normal(2000, 3) @ loadings.mT + spread * draw.normal(2000, 10) for _ in range(2))
    by_em = model(10, 3, dtype=torch.float64).fit(x, method="em", steps=5000)
    fitted = model(10, 3, dtype=torch.float64).fit(x)
    rival = ProbabilisticPCA(10, 3, dtype=torch.float64).fit(x)
    histories = [torch.tensor(each.history_, dtype=torch.float64) for each in (fitted, by_em)]
    away = fitted.loadings @ fitted.loadings.mT - loadings @ loadings.mT
    entropy = (10 * numpy.log(2 * numpy.pi * numpy.e) + torch.logdet(fitted.covariance.detach())) / 2

    def density(count):
        return fitted.sample_and_log_prob(count, generator=draw.generator)[1].detach()

    return all_of(
        close(torch.stack([each[-1] for each in histories]), likeliest_by_gradient(draw, x, 3), within=1e-4),
        close(fitted.log_prob(x).mean(), histories[0][-1], ulps=1e5),
        always(torch.cat([each.diff() for each in histories]) > -1e-12),
        at_most(away.norm() / (loadings @ loadings.mT).norm(), near),
        at_least((fitted.log_prob(new) - rival.log_prob(new)).mean(), 0.1),
        mean_is(torch.neg, density, entropy, effect=0.1),
    )
