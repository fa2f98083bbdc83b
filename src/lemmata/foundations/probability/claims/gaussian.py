"""Gaussians: density, likelihood, conditioning, sums, linear images and entropy, whatever form the covariance has."""

import math

import numpy
import torch
from scipy import stats

from lemmata.foundations.probability.claims.quadrature import Density
from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian, LowRankGaussian
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, law_is, lie, mean_is


def structured(draw, d, batch=()):
    """A full, a diagonal and a low-rank Gaussian with random parameters."""
    mean = draw.normal(*batch, d)
    root = draw.normal(*batch, d, d) / 2
    full = Gaussian(mean, root @ root.mT + torch.eye(d, dtype=torch.float64) / 2)
    variance = draw.uniform(*batch, d, low=0.5, high=2.0)
    return full, DiagonalGaussian(mean, variance), LowRankGaussian(mean, draw.normal(*batch, d, 2) / 2, variance)


def elsewhere(law):
    """The distributions of a batch, one by one, in another library."""
    means = law.mean.expand(*law.batch_shape, -1).reshape(-1, law.dimension)
    covariances = law.covariance.expand(*law.batch_shape, -1, -1).reshape(-1, law.dimension, law.dimension)
    return [stats.multivariate_normal(*pair) for pair in zip(means.numpy(), covariances.numpy(), strict=True)]


def log_densities(law, x):
    """The log-densities of the other library at points (n, ..., features)."""
    columns = x.reshape(len(x), -1, law.dimension).movedim(1, 0).numpy()
    values = [numpy.atleast_1d(one.logpdf(at)) for one, at in zip(elsewhere(law), columns, strict=True)]
    return torch.tensor(numpy.stack(values, 1)).reshape(x.shape[:-1])


def plane(points, size):
    """The trapezoidal rule on a square, which for a bell that vanishes at the edge is exact to the last digits."""
    axis = torch.linspace(-size, size, points, dtype=torch.float64)
    return torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2


def thin_bell(draw):
    """Deviations from a thousandth to a hundred along random axes, with a density of its own on each of these."""
    axes, spread = draw.orthogonal(3), torch.tensor([1e-3, 1.0, 1e2], dtype=torch.float64)
    along = draw.normal(20, 3)
    thin = Gaussian(torch.zeros(3, dtype=torch.float64), (axes * spread**2) @ axes.mT)
    one_by_one = -(along.square() + math.log(2 * math.pi)).sum(-1) / 2 - spread.log().sum()
    return close(thin.log_density((spread * along) @ axes.mT), one_by_one, condition=1e10)


@claim("gaussian.density")
@lie("the normaliser is not under the root", root=1.0)
@lie("the half in the exponent is missing", half=1.0)
@lie("the determinant stands in the numerator", sign=-1.0)
@lie("a negative definite matrix is a covariance as well", raises=ValueError, definite=-1.0)
def the_density_integrates_to_one(draw, root=0.5, half=0.5, sign=1.0, definite=1.0):
    """The integral of the density and of x times it over the plane, the other library's density, and a thin bell."""
    grid, cell = plane(161, 30.0)  # ten deviations and more to every side
    formulas, shipped, means = [], [], []
    families = structured(draw, 2)
    for law in families:
        constant = root * (2 * math.log(2 * math.pi) + sign * law.logdet)
        formulas.append(torch.exp(-constant - half * law.mahalanobis(grid)))
        shipped.append(law.density(grid))
        means.append((shipped[-1][:, None] * grid).sum(0) * cell)
    parts = []
    for d, batch in ((1, ()), (3, ()), (5, (4,)), (4, (2, 3))):
        x = draw.normal(7, *batch, d)
        parts += [close(law.log_density(x), log_densities(law, x), ulps=1024) for law in structured(draw, d, batch)]
    isotropic = Gaussian(torch.zeros(2, dtype=torch.float64), definite * torch.eye(2, dtype=torch.float64))
    return all_of(
        close(torch.stack(formulas).sum(1) * cell, torch.ones(3, dtype=torch.float64), within=1e-9),
        close(torch.stack(shipped), torch.stack(formulas), within=1e-12),
        close(torch.stack(means), torch.stack([law.mean for law in families]), within=1e-9),
        close(isotropic.density(torch.zeros(2).double()), 1 / (2 * math.pi)),
        thin_bell(draw),
        *parts,
    )


@claim("gaussian.mle")
@lie("n - 1 is the divisor that maximises the likelihood", more=-1)
@lie("the estimate of the covariance is unbiased", bias=1.0)
@lie("a mean that is off by a tenth is likelier", shift=0.1)
@lie("one x, without an index, stands in every term", raises=ValueError, terms=1)
def mean_and_mean_square_maximise_the_likelihood(draw, more=0, bias=4 / 5, shift=0.0, terms=50):
    """The gradient of the likelihood at the fit and its values around it; the mean estimate from samples of five."""
    # Deviations from a half to 2 along random axes: slopes by the covariance are rounded at the size of its inverse.
    x = draw.normal(50, 3) @ (draw.orthogonal(3) * draw.uniform(3, low=0.5, high=2.0)) + draw.normal(3)
    fitted = Gaussian.fit(x)
    mean = (fitted.mean + shift).requires_grad_()
    away = x[:terms] - fitted.mean  # one term alone gives a matrix of rank one, and no density
    covariance = (away.mT @ away / (terms + more)).requires_grad_()
    best = Gaussian(mean, covariance).log_density(x).mean()
    slopes = torch.autograd.grad(best, (mean, covariance))
    steps = 0.05 * draw.normal(200, 3, 3)
    factors = torch.tensor([0.9, 0.99, 1.01, 1.1], dtype=torch.float64)[:, None, None]
    nearby = Gaussian(mean + steps[:, 0], covariance + steps @ steps.mT), Gaussian(mean, factors * covariance)
    around = torch.cat([law.log_density(x[:, None]).mean(0) for law in nearby])
    # Gauss's and Hermite's three nodes integrate the estimate, which is quadratic in every sample, exactly.
    nodes, weights = (torch.tensor(part) for part in numpy.polynomial.hermite_e.hermegauss(3))
    samples = torch.cartesian_prod(*[math.sqrt(2) * nodes] * 5)[..., None]  # of a normal variable of variance 2
    chances = torch.cartesian_prod(*[weights / weights.sum()] * 5).prod(-1)
    estimate = (chances * Gaussian.fit(samples).covariance[:, 0, 0]).sum()
    return all_of(
        *(close(slope, torch.zeros_like(slope), within=1e-10) for slope in slopes),
        close(fitted.covariance, covariance * (terms + more) / terms),
        at_most(around, best),
        close(estimate, bias * 2.0),
    )


@claim("gaussian.conditional")
@lie("the explained covariance is added", sign=1.0)
@lie("the rectangular block Σ₁₂ is p.s.d. as well", printed="002/1", raises=ValueError, blocks=("11", "12", "22"))
@lie("the mean moves the other way", slope=-1.0)
def the_conditional_density_is_joint_over_marginal(draw, sign=-1.0, blocks=("11", "22"), slope=1.0):
    """Conditional densities at random points as the ratio of joint and marginal, and block by block."""
    seen, rest = [3, 0], [1, 2, 4]
    joint = structured(draw, 5)[0]
    z, others = draw.normal(50, 2), draw.normal(50, 3)
    found = joint.condition(seen, z)
    point = torch.empty(50, 5, dtype=torch.float64)
    point[:, seen], point[:, rest] = z, others
    groups = {"1": seen, "2": rest}
    s = {i + j: joint.covariance[groups[i]][:, groups[j]] for i in groups for j in groups}
    gain = s["21"] @ torch.linalg.inv(s["11"])
    laws = [Gaussian(torch.zeros(len(s[block]), dtype=torch.float64), s[block]) for block in blocks]
    ratio = joint.log_density(point) - joint.marginal(seen).log_density(z)
    return all_of(
        close(found.log_density(others), ratio, ulps=4096),
        close(found.covariance, s["22"] + sign * gain @ s["12"], ulps=1024),
        close(found.mean, joint.mean[rest] + slope * (z - joint.mean[seen]) @ gain.mT, ulps=1024),
        always([not law.degenerate for law in laws]),
    )


def variances_add(x, y):
    return x + y


def deviations_add(x, y):
    return (x.sqrt() + y.sqrt()).square()


@claim("gaussian.sum")
@lie("the covariances add without independence", cross=0.0)
@lie("the deviations add", add=deviations_add)
def covariances_of_independent_gaussians_add(draw, cross=1.0, add=variances_add):
    """Characteristic functions multiply; a correlated pair as the image of its joint one; y = -x; and samples."""
    x, *rest = structured(draw, 3)
    others = [*rest, structured(draw, 3)[0]]
    t = draw.normal(50, 3) / 2
    sums = [x.plus(y) for y in others]
    products = [x.characteristic(t) * Gaussian(y.mean, y.covariance).characteristic(t) for y in others]
    variances = [add(x.covariance.diagonal(), y.covariance.diagonal()) for y in others]
    joint = structured(draw, 6)[0]
    one, two = joint.marginal([0, 1, 2]), joint.marginal([3, 4, 5])
    correlated = one.plus(two, cross=cross * joint.covariance[:3, 3:])
    total = joint.affine(torch.eye(3, dtype=torch.float64).repeat(1, 2))
    opposite = x.affine(-torch.eye(3, dtype=torch.float64))
    nothing = x.plus(opposite, cross=-cross * x.covariance)
    direction = draw.unit(3)
    return all_of(
        close(correlated.covariance, total.covariance),
        close(torch.stack([each.covariance.diagonal() for each in sums]), torch.stack(variances)),
        close(torch.stack([each.characteristic(t) for each in sums]), torch.stack(products)),
        close(nothing.covariance, torch.zeros(3, 3, dtype=torch.float64), scale=x.covariance.abs().max()),
        law_is(
            lambda n: (one.sample(n, draw.generator) + two.sample(n, draw.generator)) @ direction,
            bell_along(direction, one.plus(two)),
            effect=0.02,
        ),
    )


def bell_along(direction, law):
    """The distribution function of a Gaussian seen along one direction, of the other library."""
    seen = stats.norm(float(law.mean @ direction), float(direction @ law.covariance @ direction) ** 0.5)
    return lambda x: torch.as_tensor(seen.cdf(x.numpy()))


class TransposedImage(Gaussian):
    """The transposes on the wrong sides."""

    def affine(self, matrix, offset=0.0):
        return Gaussian(matrix @ self.mean + offset, matrix.mT @ self.covariance @ matrix)


@claim("gaussian.linear_map")
@lie("the covariance is M' Σ M", law=TransposedImage)
@lie("an image of low rank has a density", raises=ValueError, density=True)
@lie("the mean stays where it was", moved=0.0)
def the_image_of_a_gaussian_is_gaussian(draw, law=Gaussian, density=False, moved=1.0):
    """Characteristic functions of images at random points, also of low rank; images of samples, samples of images."""
    start = structured(draw, 4)[0]
    start = law(start.mean, start.covariance)
    t, offset = draw.normal(50, 4) / 2, draw.normal(4)
    parts = []
    for matrix in (draw.normal(4, 4), draw.normal(4, 2) @ draw.normal(2, 4)):
        image = start.affine(matrix, offset)
        turned = start.characteristic(t @ matrix) * torch.exp(1j * (t @ offset))
        parts.append(close(image.characteristic(t), turned, ulps=1024))
        parts.append(close(image.mean, moved * (matrix @ start.mean) + offset))
    lower = draw.normal(4, 2) @ draw.normal(2, 4)
    flat = start.affine(lower)
    if density:
        flat.density(t)
    wide = Gaussian(start.mean, start.covariance).affine(draw.normal(2, 4))
    axes = torch.linalg.svd(flat.covariance).U  # along the last two the flat distribution does not vary
    within = (flat.sample(100, draw.generator) - flat.mean) @ axes[:, 2:]
    draws = (lambda n: start.sample(n, draw.generator) @ lower.mT, lambda n: flat.sample(n, draw.generator))
    along = bell_along(axes[:, 0], flat)
    laws = [law_is(lambda n, of=of: of(n) @ axes[:, 0], along, effect=0.02, alpha=5e-10) for of in draws]
    return all_of(
        *parts,
        exactly([flat.degenerate, wide.degenerate], [True, False]),
        close(within, torch.zeros(100, 2).double(), within=1e-6),  # the root of rounding: directions without variance
        *laws,
    )


@claim("gaussian.entropy")
@lie("the factor e is dropped", base=2 * math.pi)
@lie("the logarithm of the determinant counts in full", logdet=1.0)
@lie("the entropy of a density is not negative", least=0.0)
def the_entropy_is_the_mean_negative_log_density(draw, base=2 * math.pi * math.e, logdet=0.5, least=-1.0):
    """Entropy against the mean negative log-density of samples, the integral over a line, and the other library."""
    gaussian = Gaussian(torch.zeros(5).double(), draw.covariance(5, logdet_at_least=1.0))
    predicted = 5 / 2 * math.log(base) + logdet * gaussian.logdet
    families = (*structured(draw, 4, (1,)), *structured(draw, 3, (5,)))
    others = [torch.tensor([one.entropy() for one in elsewhere(law)]) for law in families]
    variance = math.exp(-3) / (2 * math.pi)
    narrow = DiagonalGaussian(torch.zeros(1).double(), torch.tensor([variance], dtype=torch.float64))
    return all_of(
        close(gaussian.entropy(), predicted),
        mean_is(gaussian.nll, lambda n: gaussian.sample(n, draw.generator), predicted, effect=0.3),
        close(torch.cat([law.entropy() for law in families]), torch.cat(others), ulps=256),
        at_least(narrow.entropy(), least, attained=True),
        close(Density(lambda t: narrow.density(t[..., None])).entropy(), narrow.entropy(), within=1e-9),
    )
