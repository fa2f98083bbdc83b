"""The evidence, its lower bound, and gradients of Gaussian expectations: by enumeration and quadrature, unsampled."""

import functools
import math

import numpy
import torch
from torch import distributions, nn
from torch.func import hessian, jvp, vmap

from lemmata.feedforward.mlp import MLP
from lemmata.foundations.information.discrete import kl_divergence
from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl
from lemmata.generative.autoencoders.decoders import GaussianOutput
from lemmata.generative.autoencoders.elbo import (
    ELBO,
    discrete_elbo,
    linear_gaussian_elbo,
    linear_gaussian_gap,
    reparameterize,
    standard_normal_kl,
)
from lemmata.generative.autoencoders.linear_vae import LinearVAE
from lemmata.generative.autoencoders.vae import VAE
from lemmata.judge import all_of, at_least, at_most, claim, close, law_is, lie, mean_is

# --- Instances ---


@functools.cache
def gauss_hermite(dimensions, points=24):
    """Nodes (n, dimensions) and weights (n,) that integrate polynomials under the standard normal exactly."""
    node, weight = (torch.from_numpy(each) for each in numpy.polynomial.hermite_e.hermegauss(points))
    weight = weight / weight.sum()
    return torch.cartesian_prod(*[node] * dimensions).reshape(-1, dimensions), functools.reduce(
        torch.kron, [weight] * dimensions
    )


def finite_model(draw, trials=1000, states=8):
    """Log-likelihoods, priors, distributions q of which some know one state alone, and exact posteriors."""
    log_likelihood, prior = 3 * draw.normal(trials, states), (2 * draw.normal(trials, states)).softmax(-1)
    q = (draw.uniform(trials, 1, high=4.0) * draw.normal(trials, states)).softmax(-1)
    q[:50] = torch.eye(states).double()[draw.integers(0, states, 50)]
    evidence = (prior * log_likelihood.exp()).sum(-1)
    return log_likelihood, prior, q, prior * log_likelihood.exp() / evidence[:, None], evidence.log()


def linear_model(draw, features=4, latents=3, examples=40):
    """A linear decoder, examples, Gaussians q, and by conditioning of the joint law posterior and evidence."""
    weight, bias, variance = draw.normal(features, latents), draw.normal(features), 0.3
    x = draw.normal(examples, features)
    q = draw.normal(examples, latents), torch.stack([0.5 * draw.covariance(latents) for _ in x])
    top = torch.cat([torch.eye(latents).double(), weight.T], 1)
    cross = torch.cat([weight, weight @ weight.T + variance * torch.eye(features).double()], 1)
    joint = Gaussian(torch.cat([0 * bias[:latents], bias]), torch.cat([top, cross]))
    seen = range(latents, latents + features)
    return (weight, bias, variance), x, q, joint.condition(seen, x), joint.marginal(seen).log_density(x)


def spread_of(posterior, like):
    """One triangular factor for each example."""
    return posterior.cholesky.expand(*like.shape, like.shape[-1])


# --- The evidence ---


def by_prior(prior, evidence):
    return prior


def by_evidence(prior, evidence):
    return evidence.expand_as(prior)


def decoder_of(draw, latents, features):
    """A decoder with a hidden layer of tanh units, in float64, whose weights are large enough to bend."""
    made = MLP(latents, features, widths=(6,), activation="tanh").double()
    with torch.no_grad():
        for values in made.parameters():
            values.copy_(1.2 * draw.normal(*values.shape))
    return made


class WideEncoder(nn.Module):
    """The same broad q for every example, so that importance weights are bounded."""

    def forward(self, x):
        return torch.tensor([[0.0, 0.3]]).to(x).expand(x.shape[0], 2)


def integral(vae, x, weighed, evidence, spread, reach=9.0, points=181):
    """By the trapezoid rule, over codes in a square: (examples,)."""
    line = torch.linspace(-reach, reach, points, dtype=torch.float64)
    z = torch.cartesian_prod(*[line] * vae.latents).reshape(-1, vae.latents)
    prior = distributions.Normal(z.new_zeros(()), z.new_tensor(spread).sqrt()).log_prob(z).sum(-1).exp()
    prior = prior[:, None].expand(-1, len(x))  # (codes, examples)
    likely = vae.log_likelihood(x, z[:, None].expand(-1, len(x), -1)).exp()  # (codes, examples)
    return (weighed(prior, evidence) * likely).sum(0) * float(line[1] - line[0]) ** vae.latents


@claim("vae.marginal")
@lie("weighted by the density of x", printed="004/1", weighed=by_evidence)
@lie("codes of another variance", spread=1.5)
@torch.no_grad()
def the_evidence_is_an_integral_over_codes(draw, weighed=by_prior, spread=1.0):
    """A linear decoder against its Gaussian density; one of tanh units against weighted draws of a broad q."""
    linear = LinearVAE(3, 2, variance=0.5).double()
    for values in linear.decoder.parameters():
        values.copy_(draw.normal(*values.shape))
    x = draw.normal(4, 3)
    covariance = linear.weight @ linear.weight.T + 0.5 * torch.eye(3).double()
    known = distributions.MultivariateNormal(linear.bias, covariance).log_prob(x).exp()
    bent = VAE(WideEncoder(), decoder_of(draw, 1, 3), 1, GaussianOutput(0.5))
    one = bent.sample(1, generator=draw.generator)
    sampled = mean_is(
        lambda rows: bent.log_prob(rows, samples=1, generator=draw.generator).exp(),
        lambda n: one.expand(n, -1),
        integral(bent, one, weighed, known[:1], spread, points=1601),
        effect=0.05 * float(integral(bent, one, by_prior, known[:1], 1.0, points=1601)),
    )
    return all_of(close(integral(linear, x, weighed, known, spread), known, ulps=1e5), sampled)


# --- The bound and its gap ---


def of_the_prior_from_q(log_likelihood, prior, q):
    return ELBO((q * log_likelihood).sum(-1), kl_divergence(prior, q))


def averaged_over_latents(x, mean, scale, *model):
    """What a loss has whose pixels are summed and whose divergence is averaged."""
    terms = linear_gaussian_elbo(x, mean, scale, *model)
    return terms._replace(kl=terms.kl / mean.shape[-1])


@claim("vae.elbo")
@lie("the divergence does not count", kl_weight=0.0)
@lie("the divergence of the prior from q", discrete=of_the_prior_from_q)
@lie("the divergence is averaged over the latents", gaussian=averaged_over_latents)
def never_above_the_evidence(draw, kl_weight=1.0, discrete=discrete_elbo, gaussian=linear_gaussian_elbo):
    """Latents of eight states, and Gaussian ones; random q, q of one state, and the posterior, which attains it."""
    log_likelihood, prior, q, posterior, known = finite_model(draw)
    model, x, (mean, covariance), exact, evidence = linear_model(draw)
    bounds, limits = [], []
    for each in (q, posterior):
        terms = discrete(log_likelihood, prior, each)
        bounds.append(terms.reconstruction - kl_weight * terms.kl)
        limits.append(known)
    for where, scale in ((mean, torch.linalg.cholesky(covariance)), (exact.mean, spread_of(exact, exact.mean))):
        terms = gaussian(x, where, scale, *model)
        bounds.append(terms.reconstruction - kl_weight * terms.kl)
        limits.append(evidence)
    return all_of(
        at_most(torch.cat(bounds), torch.cat(limits), attained=True, ulps=1e6),
        close(bounds[1], known, scale=10 + known.abs()),
        close(bounds[3], evidence, ulps=1e4, scale=10 + evidence.abs()),
        at_least((known - bounds[0]).max(), 1.0),
    )


def from_the_prior(prior, posterior):
    return prior


def from_the_posterior(prior, posterior):
    return posterior


def of_q(q, posterior):
    return q, posterior


def of_the_posterior(q, posterior):
    return posterior, q


@claim("vae.elbo_gap")
@lie("the divergence from the posterior is dropped", gap=0.0)
@lie("both divergences are from the posterior", middle=from_the_posterior)
@lie("the divergence of the posterior from q", last=of_the_posterior)
def the_evidence_is_bound_plus_gap(draw, gap=1.0, middle=from_the_prior, last=of_q):
    """Eight states by enumeration; Gaussians by the divergence from the posterior that conditioning gives."""
    log_likelihood, prior, q, posterior, known = finite_model(draw)
    q = q[50:]  # a q of one state is infinitely far from nowhere, but everything is from it
    log_likelihood, prior, posterior, known = (each[50:] for each in (log_likelihood, prior, posterior, known))
    bound = discrete_elbo(log_likelihood, middle(prior, posterior), q).value
    missed = kl_divergence(*last(q, posterior))
    model, x, (mean, covariance), exact, evidence = linear_model(draw)
    gaussian = Gaussian(mean, covariance)
    terms = linear_gaussian_elbo(x, mean, gaussian.cholesky, *model)
    apart = gaussian_kl(*last(gaussian, exact))
    return all_of(
        close(bound + gap * missed, known, ulps=1000, scale=10 + known.abs()),
        close(terms.value + gap * apart, evidence, ulps=1e5),
        close(linear_gaussian_gap(x, mean, gaussian.cholesky, *model), gap * apart, ulps=1e5, scale=10 + apart),
        at_least(missed, 0.0),
    )


@claim("vae.kl_gaussian")
@lie("no half", half=1.0)
@lie("plus the log-determinant", logdet=1.0)
@lie("the number of latents is not subtracted", dimension=0.0)
def how_far_from_the_standard_normal(draw, half=0.5, logdet=-1.0, dimension=1.0, divergence=standard_normal_kl):
    """One latent to six, spreads from 1e-3 to 1e3, full and diagonal, against the mean of the logarithm of a ratio."""
    evidence = []
    for m in range(1, 7):
        units = 10 ** draw.uniform(m, low=-3.0, high=3.0)
        covariances = draw.covariance(m), (units[:, None] * draw.covariance(m) * units), units.square().diag()
        for k, covariance in enumerate(covariances):
            mean, factor = draw.normal(m), torch.linalg.cholesky(covariance)
            own = distributions.MultivariateNormal(mean, scale_tril=factor)
            prior = distributions.MultivariateNormal(0 * mean, torch.eye(m).double())
            node, weight = gauss_hermite(m, 3)  # exact: the logarithm of the ratio is quadratic
            z = mean + node @ factor.T
            ratio = weight @ (own.log_prob(z) - prior.log_prob(z))
            inner = mean.square().sum() + covariance.trace() + logdet * torch.logdet(covariance) - dimension * m
            given = factor.diagonal() if k == 2 else factor
            scale = 10 * m + inner.abs()
            evidence += [
                close(divergence(mean, given), half * inner, ulps=1e4, scale=scale),
                close(ratio, half * inner, ulps=1e4, scale=scale),
            ]
    return all_of(*evidence)


# --- Gradients of expectations ---


def cut_off(mean, scale, noise):
    """A draw with the right law that forgets what it was drawn from."""
    return reparameterize(mean.detach(), scale.detach(), noise) + 0 * (mean.sum() + scale.sum())


@claim("vae.reparam")
@lie("the covariance in place of its root", power=1.0)
@lie("a draw that forgets its parameters", drawn=cut_off)
def noise_is_moved_and_stretched(draw, power=0.5, drawn=reparameterize):
    """Characteristic functions and gradients by quadrature, for three square roots; the law of draws of a VAE."""
    mean, covariance, (node, weight) = draw.normal(3), draw.covariance(3), gauss_hermite(3)
    values, vectors = torch.linalg.eigh(covariance)
    symmetric = (vectors * values**power) @ vectors.T
    t, a, b = draw.normal(10, 3), 0.7 * draw.unit(3), draw.normal(3)
    evidence = []
    for root in (symmetric, torch.linalg.cholesky(symmetric @ symmetric), symmetric @ draw.orthogonal(3)):
        centre, scale = mean.clone().requires_grad_(), root.clone().requires_grad_()
        z = drawn(centre, scale, node)  # (nodes, 3)
        wave = torch.polar(torch.exp(-((t @ covariance) * t).sum(1) / 2), t @ mean)
        found = torch.einsum("n, nk -> k", weight.to(wave), torch.polar(torch.ones(len(node), 10).double(), z @ t.T))
        evidence.append(close(found, wave, within=1e-9, detail="characteristic function"))
        sampled = weight @ ((z @ a).exp() + (z @ b).square())
        own = scale @ scale.T
        exact = (centre @ a + a @ own @ a / 2).exp() + (centre @ b).square() + b @ own @ b
        for mine, known in zip(*(torch.autograd.grad(each, (centre, scale)) for each in (sampled, exact)), strict=True):
            evidence.append(close(mine, known, ulps=1e6, detail="gradient"))
    vae, root, direction = VAE(WideEncoder(), decoder_of(draw, 3, 2), 3), symmetric, draw.unit(3)
    normal = distributions.Normal(mean @ direction, (direction @ covariance @ direction).sqrt())
    sample = lambda n: vae.sample_latents(mean[None], root[None], n, draw.generator)[:, 0] @ direction  # noqa: E731
    return all_of(*evidence, law_is(sample, normal.cdf, effect=0.05))


def smooth_functions(draw):
    """Functions of a vector z of three, each with its expectation under N(μ, Σ)."""
    a, b = 0.8 * draw.unit(3), draw.unit(3)

    def moments(mean, covariance):
        return mean @ a, a @ covariance @ a, mean @ b, a @ covariance @ b

    def cubic(mean, covariance):
        u, uu, w, uw = moments(mean, covariance)
        return u**2 * w + uu * w + 2 * u * uw

    def quartic(mean, covariance):
        u, uu, *_ = moments(mean, covariance)
        return u**4 + 6 * u**2 * uu + 3 * uu**2

    return [
        (lambda z: (z @ a).exp(), lambda mean, covariance: (mean @ a + a @ covariance @ a / 2).exp()),
        (lambda z: (z @ a).sin(), lambda mean, covariance: (-a @ covariance @ a / 2).exp() * (mean @ a).sin()),
        (lambda z: (z @ a) ** 4, quartic),
        (lambda z: (z @ a) ** 2 * (z @ b), cubic),
    ]


def with_a_step(draw):
    """One of them jumps: its gradient is zero almost everywhere, its expectation is not constant."""
    a = draw.unit(3)
    cdf = distributions.Normal(0.0, 1.0).cdf
    jump = (lambda z: (z @ a > 0) + 0 * (z @ a), lambda mean, covariance: cdf(mean @ a / (a @ covariance @ a).sqrt()))
    return [*smooth_functions(draw), jump]


def with_a_kink(draw):
    """One of them is a relu: its second derivative is zero almost everywhere."""
    a = draw.unit(3)

    def expected(mean, covariance):
        s, v = mean @ a, a @ covariance @ a
        normal = distributions.Normal(0.0, 1.0)
        return s * normal.cdf(s / v.sqrt()) + (v / (2 * math.pi)).sqrt() * (-s.square() / (2 * v)).exp()

    return [*smooth_functions(draw), (lambda z: torch.relu(z @ a), expected)]


def under_normal(mean, covariance, function):
    """The expectation of a function of one vector, by quadrature at reparameterised nodes."""
    node, weight = gauss_hermite(3)
    z = reparameterize(mean, torch.linalg.cholesky(covariance), node)
    return torch.tensordot(weight, vmap(function)(z), 1)


@claim("vae.gradient_mean")
@lie("half of it", factor=0.5)
@lie("where the function jumps, too", functions=with_a_step)
def the_mean_moves_every_draw(draw, factor=1.0, functions=smooth_functions):
    """The gradient of known expectations, against the expectation of the gradient; variances from 0.01 to 1."""
    evidence = []
    for size in (0.01, 1.0):
        mean, covariance = 0.5 * draw.normal(3), size * draw.covariance(3)
        for function, expectation in functions(draw):
            left = torch.func.grad(expectation)(mean, covariance)
            right = factor * under_normal(mean, covariance, torch.func.grad(function))
            evidence.append(close(left, right, within=1e-8 * (left.norm() + 1e-3)))
    return all_of(*evidence)


@claim("vae.gradient_cov")
@lie("without the half", factor=1.0)
@lie("where the function has a kink, too", functions=with_a_kink)
def the_covariance_moves_draws_by_the_curvature(draw, factor=0.5, functions=smooth_functions):
    """Derivatives of known expectations along symmetric changes of Σ, against the mean second derivative."""
    evidence = []
    for size in (0.01, 1.0):
        mean, covariance = 0.5 * draw.normal(3), size * draw.covariance(3)
        turn = draw.normal(3, 3)
        turn = turn + turn.T
        for function, expectation in functions(draw):
            left = jvp(lambda moved, e=expectation, at=mean: e(at, moved), (covariance,), (turn,))[1]
            curvature = under_normal(mean, covariance, hessian(function))
            right = factor * (turn * curvature).sum()
            evidence.append(close(left, right, within=1e-8 * (turn.norm() * curvature.norm() + 1e-3)))
    return all_of(*evidence)


# --- The first term ---


@claim("vae.recon_mse")
@lie("the squared error is not halved", half=1.0)
@lie("without the constant", constant=0.0)
@lie("MSE plus divergence is a variance of 1", unscaled=1.0)
def a_scaled_squared_error(draw, half=0.5, constant=0.5, unscaled=0.5, output=GaussianOutput):
    """Given variances against torch's normal, and what a VAE minimises whose loss is squared error and divergence."""
    evidence = []
    for variance in (1e-6, 0.1, 1.0, 40.0):
        x, mean = draw.normal(5, 7), draw.normal(5, 7)
        nats = -output(variance).log_prob(x, mean)
        scaled = half * (x - mean).square().sum(1) / variance + constant * 7 * math.log(2 * math.pi * variance)
        expected = -distributions.Normal(mean, variance**0.5).log_prob(x).sum(1)
        evidence += [close(nats, expected, ulps=1000), close(nats, scaled, ulps=1000)]
    vae = VAE(MLP(7, 4, widths=(6,)), MLP(2, 7, widths=(6,)), 2, output(unscaled)).double()
    x = draw.normal(50, 7)
    z = vae.sample_latents(*vae.encode(x), 1, draw.generator.clone_state())[0]
    squared = (x - vae.decode(z)).square().sum(1) + standard_normal_kl(*vae.encode(x))
    loss = vae.loss(x, generator=draw.generator) - 3.5 * math.log(2 * math.pi * unscaled)
    return all_of(*evidence, close(loss, squared.mean(), ulps=1e4))
