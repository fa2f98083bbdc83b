"""Initial weights: their laws and variances, and what they leave of signals, of gradients, of norms."""

import math

import torch
from scipy import stats
from torch import nn

from lemmata.judge import ALPHA, all_of, at_least, at_most, claim, close, law_is, lie, mean_is, probability_is
from lemmata.tricks.initialization import initialize

# Among 200,000 uniform draws the largest is nearer to the end of the interval than this, but for one case in 10^11.
NEAR_THE_END = 1 - 1.3e-4


def _initialized_layer(draw, layer, scheme, distribution="normal", **more):
    initialize(layer, scheme, distribution=distribution, generator=draw.generator, **more)
    return layer.requires_grad_(False)


def _drawn_layer(draw, inputs, outputs, scheme, distribution="normal", **more):
    layer = nn.Linear(inputs, outputs, bias=False, dtype=torch.float64)
    return _initialized_layer(draw, layer, scheme, distribution, **more)


def _weight_sampler(draw, inputs, outputs, scheme, distribution, **more):
    """A sampler of single weights of such layers."""

    def sample(count):
        layers = range(-(-count // (inputs * outputs)))
        drawn = [_drawn_layer(draw, inputs, outputs, scheme, distribution, **more).weight.flatten() for _ in layers]
        return torch.cat(drawn)[:count]

    return sample


def _normal_law(sample, deviation, alpha=ALPHA / 10):
    """The weights are normal: a uniform law with their variance is 0.057 away from that."""
    return law_is(sample, lambda w: torch.special.ndtr(w / deviation), effect=0.04, alpha=alpha)


@claim("init.fixed_variance")
@lie("the interval ends at the deviation", three=1.0)
@lie("the variance is the deviation", square=1.0)
@lie("uniform weights of that variance are normal too", bell="uniform")
def both_laws_have_the_variance_that_is_asked_for(draw, square=2.0, three=3.0, bell="normal"):
    """Means, mean squares and distribution of weights of either law; the uniform one ends where it should."""
    sigma = float(draw.choice([0.02, 0.1, 5.0]))
    parts = []
    for law in (bell, "uniform"):
        sample = _weight_sampler(draw, 100, 100, "fixed", law, variance=sigma**2)
        predicted = sigma**square / sigma**2
        parts.append(mean_is(lambda w: (w / sigma).square(), sample, predicted, effect=0.03, alpha=2e-10))
        parts.append(mean_is(lambda w: w / sigma, sample, 0.0, effect=0.03, alpha=2e-10))
    flat = law_is(sample, lambda w: (w / sigma / math.sqrt(12) + 0.5).clamp(0, 1), effect=0.04, alpha=ALPHA / 10)
    largest = sample(200_000).abs().max() / sigma
    ends = at_most(largest, math.sqrt(three)), at_least(largest, NEAR_THE_END * math.sqrt(three))
    normal = _normal_law(_weight_sampler(draw, 100, 100, "fixed", bell, variance=sigma**2), sigma)
    return all_of(*parts, *ends, normal, flat)


@claim("init.lecun")
@lie("the interval ends at the deviation", printed="001/1", three=1.0)
@lie("the variance of an input counts by its root", square=1.0)
@lie("twice that variance preserves it too", numerator=2.0)
@lie("a convolution has as many inputs as channels", window=1)
@lie("uniform weights of that variance are normal too", bell="uniform")
def weights_of_variance_one_over_n_preserve_the_variance(
    draw, numerator=1.0, square=2.0, three=3.0, window=9, bell="normal"
):
    """Uncorrelated inputs that are not Gaussian, one direction at a time; outputs of fresh weights by either law."""
    parts, gamma = [], 5.0
    for n, law in ((3, "normal"), (256, "normal"), (16, "uniform"), (2 * 9, "normal")):
        # Plus or minus so much on one of n axes: mean zero, variance gamma^2, uncorrelated.
        x = gamma * math.sqrt(n) * torch.eye(n, dtype=torch.float64)
        windowed = n == 2 * 9  # two channels under a window of nine
        terms = 2 * window if windowed else n  # in the sum of an output

        def outputs(count, n=n, law=law, x=x, windowed=windowed):
            if windowed:  # as many outputs as asked for
                layer = nn.Conv2d(2, count, 3, bias=False, dtype=torch.float64)
                return _initialized_layer(draw, layer, "lecun")(x.view(-1, 2, 3, 3)).square().mean((0, 2, 3))
            return _drawn_layer(draw, n, count, "lecun", law)(x).square().mean(0)  # (count,), each over all inputs

        predicted = n * (numerator / terms) * gamma**square
        parts.append(mean_is(lambda v: v / gamma**2, outputs, predicted / gamma**2, effect=0.018, alpha=2e-10))
    largest = _weight_sampler(draw, 16, 1000, "lecun", "uniform")(200_000).abs().max() * math.sqrt(16)
    normal = _normal_law(_weight_sampler(draw, 16, 1000, "lecun", bell), 1 / 4)
    ends = at_most(largest, math.sqrt(three)), at_least(largest, NEAR_THE_END * math.sqrt(three))
    return all_of(*parts, *ends, normal)


@claim("init.glorot")
@lie("the variance in place of the deviation", printed="001/1", root=float)
@lie("half of the variance", numerator=1.0)
@lie("the gains add up to one", total=1.0, regime="the sum of two squares spreads", loose="as there")
@lie("uniform weights of that variance are normal too", bell="uniform")
def weights_between_both_demands(draw, numerator=2.0, root=math.sqrt, total=2.0, bell="normal"):
    """Weights, signals through fresh layers and gradients back, wide and narrow; ends of the uniform law."""
    parts = []
    for (n, m), law in (((400, 100), "normal"), ((100, 400), "uniform")):

        def gains(count, n=n, m=m, law=law):
            """Squares of outputs and of gradients, for signals and gradients of variance one: (count, 2)."""
            found = []
            for _ in range(-(-count // min(n, m))):
                x, layer = draw.signs(n).requires_grad_(), _drawn_layer(draw, n, m, "glorot", law)
                y = layer(x)
                (back,) = torch.autograd.grad(y, x, draw.signs(m))
                found.append(torch.stack([y.detach()[: min(n, m)], back[: min(n, m)]], 1).square())
            return torch.cat(found)[:count]

        sample, variance = _weight_sampler(draw, n, m, "glorot", law), numerator / (n + m)
        parts.append(mean_is(torch.square, sample, variance, effect=0.015 * variance, alpha=ALPHA / 10))
        for side, terms in ((0, n), (1, m)):
            gain = terms * variance
            parts.append(mean_is(lambda v, side=side: v[:, side], gains, gain, effect=0.3 * gain, alpha=ALPHA / 10))
        parts.append(mean_is(lambda v: v.sum(1), gains, total, effect=0.3 * total, alpha=ALPHA / 10))
    largest = _weight_sampler(draw, 400, 100, "glorot", "uniform")(200_000).abs().max()
    end = math.sqrt(3) * root(2 / 500)
    normal = _normal_law(_weight_sampler(draw, 400, 100, "glorot", bell), root(2 / 500))
    return all_of(*parts, normal, at_most(largest, end), at_least(largest, NEAR_THE_END * end))


@claim("init.he")
@lie("one over n, as without the rectifier", numerator=1.0)
@lie("all units are active", half=1.0)
@lie("the variance in place of the deviation", printed="001/1", root=float)
@lie("uniform weights of that variance are normal too", bell="uniform")
def rectified_layers_keep_the_mean_square(draw, numerator=2.0, half=0.5, root=math.sqrt, bell="normal"):
    """Symmetric inputs give the half exactly; from positive ones fresh rows of weights keep the mean square."""
    n = 8
    inputs = draw.normal(500, n)
    z = _drawn_layer(draw, n, 40, "he")(torch.cat([inputs, -inputs]))  # symmetric about zero
    x = draw.uniform(n)  # as behind a rectifier

    def rows(count):
        return _drawn_layer(draw, n, count, "he")(x)  # (count,), each output of a fresh row

    def gains(z):
        return z.relu().square() / x.square().mean()

    largest = _weight_sampler(draw, n, 1000, "he", "uniform")(200_000).abs().max()
    end = math.sqrt(3) * root(2 / n)
    return all_of(
        close(z.relu().square().mean(0), half * z.var(0, correction=0), ulps=256),
        mean_is(gains, rows, half * numerator, effect=0.019, alpha=4e-10),
        probability_is(lambda count: rows(count) > 0, half, effect=0.019, alpha=4e-10),
        at_most(largest, end),
        at_least(largest, NEAR_THE_END * end),
        _normal_law(_weight_sampler(draw, n, 1000, "he", bell), math.sqrt(2 / n)),
    )


def _same_modulus(eigenvalues):
    return eigenvalues.abs()


def _real_eigenvalues(eigenvalues):
    """What plus or minus one would leave as it is."""
    return eigenvalues.real.abs()


def _haar_matrix(draw, m):
    return _drawn_layer(draw, m, m, "orthogonal")


def _signed_permutation(draw, m):
    layer = _haar_matrix(draw, m)
    layer.weight.copy_(draw.signs(m, 1) * torch.eye(m)[draw.permutation(m)])
    return layer


def _rotated_haar(draw, m):
    """One of Haar's matrices whose first row is turned around where it reflects: uniform on the rotations."""
    layer = _haar_matrix(draw, m)
    layer.weight[0] *= torch.linalg.det(layer.weight).sign()
    return layer


@claim("init.orthogonal")
@lie("the eigenvalues are ±1", printed="000/1", eigenvalues=_real_eigenvalues)
@lie("backwards it is good that the eigenvalues are ±1", printed="003/2", of_transposed=_real_eigenvalues)
@lie("the transpose times the matrix is m times the identity", square=6.0)
@lie("a layer gains a hundredth", gain=1.01)
@lie("permutations with random signs are Haar's law too", law=_signed_permutation)
@lie("only rotations are drawn", law=_rotated_haar)
def orthogonal_layers_preserve_every_norm(
    draw, square=1.0, gain=1.0, eigenvalues=_same_modulus, of_transposed=_same_modulus, law=_haar_matrix
):
    """Products with the transpose, eigenvalues, 100 layers forwards and back; trace, entries and sign of Haar's law."""
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

    def entry(w):  # of a uniform unit vector: 1 - w^2 is to the power (m - 3)/2 in its density
        return torch.as_tensor(stats.beta.cdf((w + 1) / 2, (m - 1) / 2, (m - 1) / 2))

    def fourth(w):
        return m * (m + 2) * w.pow(4).mean((1, 2))

    after, before = (torch.cat(pair).norm(dim=1) for pair in ((y, back), (x, upstream)))
    told = all_of(
        close(torch.stack([weights.mT @ weights, weights @ weights.mT]), torch.stack([identity] * 2), ulps=64),
        close(eigenvalues(torch.linalg.eigvals(weights)), 1.0, ulps=256),
        close(of_transposed(torch.linalg.eigvals(weights.mT)), 1.0, ulps=256),
        close(after, gain**depth * before, ulps=64 * depth),
    )
    if not told.holds:
        return told  # decided without more layers
    return all_of(
        told,
        # Haar's law has E tr W = 0; the factors Q of QR without the signs of R have -1.27.
        mean_is(lambda w: w.diagonal(dim1=1, dim2=2).sum(1), fresh, 0.0, effect=0.3, pilot=150, alpha=ALPHA / 4),
        # Rows are uniform on the sphere, where m(m + 2) E w^4 = 3; a row with a single entry has m + 2.
        mean_is(fourth, fresh, 3.0, effect=0.3, pilot=200, alpha=ALPHA / 4),
        law_is(lambda n: fresh(n)[:, 0, 0], entry, effect=0.15, alpha=ALPHA / 4),
        probability_is(lambda n: torch.linalg.det(fresh(n)) > 0, 0.5, effect=0.2, alpha=ALPHA / 4),
    )
