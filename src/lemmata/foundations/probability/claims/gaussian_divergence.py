"""The divergence between Gaussians: against integrals, samples and dense formulas."""

import torch
from torch import distributions

from lemmata.foundations.probability.claims.gaussian import structured
from lemmata.foundations.probability.claims.quadrature import Density
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian
from lemmata.judge import all_of, always, claim, close, lie, mean_is


def by_blocks(p, q, ratio=1.0, inverse="second", dimension=1.0):
    """The formula with dense inverses."""
    inner = torch.linalg.inv((q if inverse == "second" else p).covariance)
    away = (q.mean - p.mean)[..., None]
    trace = (torch.linalg.inv(q.covariance) @ p.covariance).diagonal(dim1=-2, dim2=-1).sum(-1)
    logs = torch.logdet(q.covariance) - torch.logdet(p.covariance)
    return (ratio * logs - dimension * p.dimension + trace + (away.mT @ inner @ away)[..., 0, 0]) / 2


@claim("gaussian.kl")
@lie("the ratio of the determinants is inverted", ratio=-1.0)
@lie("the first covariance is inverted in the quadratic form", inverse="first")
@lie("the dimension is not subtracted", dimension=0.0)
def the_divergence_of_gaussians_has_a_closed_form(draw, ratio=1.0, inverse="second", dimension=1.0):
    """All pairs of covariance forms, batched, against dense inverses; an integral; the mean log-ratio of samples."""
    parts = []
    for d in (1, 4):
        families = (*structured(draw, d, (4,)), *structured(draw, d))
        pairs = [(one, other) for one in families for other in families]
        found = torch.stack([gaussian_kl(one, other).expand(4) for one, other in pairs])
        dense = [by_blocks(one, other, ratio, inverse, dimension).expand(4) for one, other in pairs]
        same = torch.tensor([one is other for one, other in pairs])[:, None]
        parts += [
            close(found, torch.stack(dense), scale=100.0),
            # Zero iff equal: each is at distance 0 from itself, up to rounding, and from no other.
            always((found > 1e-12) != same),
        ]
    p, q = (structured(draw, 3)[0] for _ in range(2))
    one, other = p.marginal([0]), q.marginal([0])
    return all_of(
        *parts,
        close(on_a_line(one, other), by_blocks(one, other, ratio, inverse, dimension), within=1e-9),
        mean_is(
            lambda x: p.log_density(x) - q.log_density(x),
            lambda n: p.sample(n, draw.generator),
            by_blocks(p, q, ratio, inverse, dimension),
            effect=0.25 * float(gaussian_kl(p, q)),
        ),
    )


def unit(d):
    """The standard normal distribution."""
    return DiagonalGaussian(torch.zeros(d).double(), torch.ones(d).double())


def kl_to_isotropic(theta, sigma, prior, half=0.5, ratio=1.0):
    """The logarithm of the ratio alone."""
    return (ratio * (prior / sigma).log() + (sigma**2 + theta**2) / (2 * prior**2) - half).sum(-1)


def log_of_all(theta, sigma, prior, half=0.5, ratio=1.0):
    """The logarithm applied to the whole bracket."""
    return (ratio * prior / sigma + (sigma**2 + theta**2) / (2 * prior**2) - half).log().sum(-1)


@claim("gaussian.kl_diagonal")
@lie("the logarithm takes the whole bracket", divergence=log_of_all)
@lie("the half is not subtracted", half=0.0)
@lie("prior and posterior deviation change places in the logarithm", ratio=-1.0)
def the_divergence_to_an_isotropic_prior_is_a_sum(draw, divergence=kl_to_isotropic, half=0.5, ratio=1.0):
    """The sum over coordinates against the general divergence, torch's, an integral, and samples' mean log-ratio."""
    theta, sigma = draw.normal(100, 6), draw.uniform(100, 6, low=0.2, high=0.7)
    prior = draw.uniform(100, 1, low=0.8, high=2.0)
    found = divergence(theta, sigma, prior, half, ratio)
    posterior = DiagonalGaussian(theta, sigma.square())
    isotropic = DiagonalGaussian(torch.zeros(100, 6).double(), prior.square().expand(100, 6))
    peers = distributions.Normal(theta, sigma), distributions.Normal(torch.zeros_like(theta), prior.expand(100, 6))
    one = DiagonalGaussian(theta[0], sigma[0].square())
    sampled = mean_is(
        lambda x: one.log_density(x) - unit(6).log_density(x),
        lambda n: one.sample(n, draw.generator),
        divergence(theta[0], sigma[0], torch.ones(1).double(), half, ratio),
        effect=0.5,
    )
    on_one = divergence(theta[0, :1], sigma[0, :1], torch.ones(1).double(), half, ratio)
    return all_of(
        close(found, gaussian_kl(posterior, isotropic), scale=100.0),
        close(found, distributions.kl_divergence(*peers).sum(-1), scale=100.0),
        close(on_one, on_a_line(one.marginal([0]), unit(1)), within=1e-9),
        sampled,
    )


def on_a_line(p, q):
    """The divergence of two distributions of one number, as an integral."""
    law = Density(lambda t: p.density(t[..., None]), centre=float(p.mean))
    return law.expectation(lambda t: p.log_density(t[..., None]) - q.log_density(t[..., None]))
