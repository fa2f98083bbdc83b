"""Initial weights: their laws and variances, and what they leave of signals, of gradients, of norms."""

import math

import torch
from torch import nn

from lemmata.judge import ALPHA, all_of, at_least, at_most, claim, close, lie, mean_is, probability_is
from lemmata.tricks.initialization import initialize

# Among 200,000 uniform draws the largest is nearer to the end of the interval than this, but for one case in 10^11.
NEAR_THE_END = 1 - 1.3e-4


def _layer(draw, inputs, outputs, scheme, distribution="normal", **more):
    layer = nn.Linear(inputs, outputs, bias=False, dtype=torch.float64)
    initialize(layer, scheme, distribution=distribution, generator=draw.generator, **more)
    return layer.requires_grad_(False)


def _weights(draw, inputs, outputs, scheme, distribution, **more):
    """A sampler of single weights of such layers."""

    def sample(count):
        layers = range(-(-count // (inputs * outputs)))
        drawn = [_layer(draw, inputs, outputs, scheme, distribution, **more).weight.flatten() for _ in layers]
        return torch.cat(drawn)[:count]

    return sample


@claim("init.fixed_variance")
@lie("the interval ends at the deviation", three=1.0)
@lie("the variance is the deviation", square=1.0)
def both_laws_have_the_variance_that_is_asked_for(draw, square=2.0, three=3.0):
    """Means and mean squares of weights drawn by either law; the ends of the uniform one are met and not passed."""
    sigma = float(draw.choice([0.02, 0.1, 5.0]))
    parts = []
    for law in ("normal", "uniform"):
        sample = _weights(draw, 100, 100, "fixed", law, variance=sigma**2)
        predicted = sigma**square / sigma**2
        parts.append(mean_is(lambda w: (w / sigma).square(), sample, predicted, effect=0.03, alpha=2e-10))
        parts.append(mean_is(lambda w: w / sigma, sample, 0.0, effect=0.03, alpha=2e-10))
    largest = sample(200_000).abs().max() / sigma
    ends = at_most(largest, math.sqrt(three)), at_least(largest, NEAR_THE_END * math.sqrt(three))
    return all_of(*parts, *ends)


@claim("init.lecun")
@lie("the interval ends at the deviation", printed="001/1", three=1.0)
@lie("the variance of an input counts by its root", square=1.0)
@lie("twice that variance preserves it too", numerator=2.0)
def weights_of_variance_one_over_n_preserve_the_variance(draw, numerator=1.0, square=2.0, three=3.0):
    """Uncorrelated inputs that are not Gaussian, one direction at a time; outputs of fresh weights by either law."""
    parts, gamma = [], 5.0
    for n, law in ((3, "normal"), (256, "normal"), (16, "uniform")):
        # Plus or minus so much on one of n axes: mean zero, variance gamma^2, uncorrelated.
        x = gamma * math.sqrt(n) * torch.eye(n, dtype=torch.float64)

        def outputs(count, n=n, law=law, x=x):
            return _layer(draw, n, count, "lecun", law)(x).square().mean(0)  # (count,), each over all inputs

        predicted = n * (numerator / n) * gamma**square
        parts.append(mean_is(lambda v: v / gamma**2, outputs, predicted / gamma**2, effect=0.018, alpha=3e-10))
    largest = _weights(draw, 16, 1000, "lecun", "uniform")(200_000).abs().max() * math.sqrt(16)
    return all_of(*parts, at_most(largest, math.sqrt(three)), at_least(largest, NEAR_THE_END * math.sqrt(three)))


@claim("init.glorot")
@lie("the variance in place of the deviation", printed="001/1", root=float)
@lie("half of the variance", numerator=1.0)
@lie("the gains add up to one", total=1.0)
def weights_between_both_demands(draw, numerator=2.0, root=math.sqrt, total=2.0):
    """Jacobians of fresh layers, wide and narrow: gains forwards and back; ends of the uniform law."""
    parts = []
    for (n, m), law in (((400, 100), "normal"), ((100, 400), "uniform")):

        def sample(count, n=n, m=m, law=law):
            layers = [_layer(draw, n, m, "glorot", law) for _ in range(-(-count // (n * m)))]
            jacobians = [torch.func.jacrev(layer)(draw.normal(n)) for layer in layers]  # (m, n) each
            return torch.cat([jacobian.flatten() for jacobian in jacobians])[:count]

        # A signal of variance one on all inputs has n terms in an output; a gradient on all outputs m in an input.
        forward, backward = n * numerator / (n + m), m * numerator / (n + m)
        parts.append(mean_is(lambda j, n=n: n * j.square(), sample, forward, effect=0.015 * forward, alpha=2.5e-10))
        parts.append(mean_is(lambda j, m=m: m * j.square(), sample, backward, effect=0.015 * backward, alpha=2.5e-10))
        parts.append(close(forward + backward, total))
    largest = _weights(draw, 400, 100, "glorot", "uniform")(200_000).abs().max()
    end = math.sqrt(3) * root(2 / 500)
    return all_of(*parts, at_most(largest, end), at_least(largest, NEAR_THE_END * end))


@claim("init.he")
@lie("one over n, as without the rectifier", numerator=1.0)
@lie("all units are active", half=1.0)
@lie("the variance in place of the deviation", printed="001/1", root=float)
def rectified_layers_keep_the_mean_square(draw, numerator=2.0, half=0.5, root=math.sqrt):
    """Symmetric inputs give the half exactly; from positive ones fresh rows of weights keep the mean square."""
    n = 8
    inputs = draw.normal(500, n)
    z = _layer(draw, n, 40, "he")(torch.cat([inputs, -inputs]))  # symmetric about zero
    x = draw.uniform(n)  # as behind a rectifier

    def rows(count):
        return _layer(draw, n, count, "he")(x)  # (count,), each output of a fresh row

    def gains(z):
        return z.relu().square() / x.square().mean()

    largest = _weights(draw, n, 1000, "he", "uniform")(200_000).abs().max()
    end = math.sqrt(3) * root(2 / n)
    return all_of(
        close(z.relu().square().mean(0), half * z.var(0, correction=0), ulps=256),
        mean_is(gains, rows, half * numerator, effect=0.019, alpha=5e-10),
        probability_is(lambda count: rows(count) > 0, half, effect=0.019, alpha=5e-10),
        at_most(largest, end),
        at_least(largest, NEAR_THE_END * end),
    )


def _same_modulus(eigenvalues):
    return eigenvalues.abs()


def _real(eigenvalues):
    """What plus or minus one would leave as it is."""
    return eigenvalues.real.abs()


def _haar(draw, m):
    return _layer(draw, m, m, "orthogonal")


def _signed_permutation(draw, m):
    layer = _haar(draw, m)
    layer.weight.copy_(draw.signs(m, 1) * torch.eye(m)[draw.permutation(m)])
    return layer


@claim("init.orthogonal")
@lie("the eigenvalues are ±1", printed="000/1", eigenvalues=_real)
@lie("backwards it is good that the eigenvalues are ±1", printed="003/2", of_transposed=_real)
@lie("the transpose times the matrix is m times the identity", square=6.0)
@lie("a layer gains a hundredth", gain=1.01)
@lie("permutations with random signs are Haar's law too", law=_signed_permutation)
def orthogonal_layers_preserve_every_norm(
    draw, square=1.0, gain=1.0, eigenvalues=_same_modulus, of_transposed=_same_modulus, law=_haar
):
    """Products with the transpose, eigenvalues, 100 layers forwards and back, and two moments of Haar's law."""
    m, depth = 6, 100
    layers = [law(draw, m) for _ in range(depth)]
    weights = torch.stack([layer.weight for layer in layers])  # (depth, m, m)
    network, x = nn.Sequential(*layers), draw.normal(20, m)
    upstream, given = draw.normal(20, m), x.clone().requires_grad_()
    y = network(given)
    (back,) = torch.autograd.grad(y, given, upstream)
    identity = square * torch.eye(m, dtype=torch.float64).expand_as(weights)

    def fresh(count):
        return torch.stack([law(draw, m).weight for _ in range(count)])  # (count, m, m)

    def fourth(w):
        return m * (m + 2) * w.pow(4).mean((1, 2))

    told = all_of(
        close(torch.stack([weights.mT @ weights, weights @ weights.mT]), torch.stack([identity] * 2), ulps=64),
        close(eigenvalues(torch.linalg.eigvals(weights)), 1.0, ulps=256),
        close(of_transposed(torch.linalg.eigvals(weights.mT)), 1.0, ulps=256),
        close(y.norm(dim=1), gain**depth * x.norm(dim=1), ulps=64 * depth),
        close(back.norm(dim=1), gain**depth * upstream.norm(dim=1), ulps=64 * depth),
    )
    if not told.holds:
        return told  # decided without more layers
    return all_of(
        told,
        # Haar's law has E tr W = 0; the factors Q of QR without the signs of R have -1.27.
        mean_is(lambda w: w.diagonal(dim1=1, dim2=2).sum(1), fresh, 0.0, effect=1.0, pilot=150, alpha=ALPHA / 2),
        # Rows are uniform on the sphere, where m(m + 2) E w^4 = 3; a row with a single entry has m + 2.
        mean_is(fourth, fresh, 3.0, effect=1.0, pilot=200, alpha=ALPHA / 2),
    )
