"""Normalisation over batches and over features: what comes out, what it depends on, and what passes back."""

import torch
from torch import nn

from lemmata.judge import all_of, at_least, claim, close, lie, slope_is
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.layer_norm import LayerNorm
from lemmata.tricks.normalization import standardize, standardize_gradient

TINY = 1e-30  # torch's kernel asks for some epsilon; beside these variances it is nothing


@claim("norm.unit")
@lie("divided by the variance", power=1.0)
@lie("the mean is not subtracted", centre=0.0)
@lie("the variance becomes the scale", square=1.0)
def a_normalised_unit_has_two_freedoms_less(draw, power=0.5, centre=1.0, square=2.0):
    """Units from tiny to huge, far from zero: moments before and after the affine map, which can undo it all."""
    f = 10.0 ** draw.uniform(9, 1, low=-6, high=6) * (draw.uniform(9, 1, low=-3, high=3) + draw.normal(9, 200))
    values, mean, deviation = standardize(f, dim=1)
    mu, gamma = draw.normal(9, 1), draw.uniform(9, 1, low=0.5, high=2.0)
    affine = mu + gamma * values
    variance = f.var(1, correction=0, keepdim=True)
    return all_of(
        close(values, (f - centre * f.mean(1, keepdim=True)) / variance**power, ulps=256, scale=10.0),
        close(torch.stack([values.mean(1), values.var(1, correction=0) - 1]), 0.0, ulps=64, scale=1.0),
        close(affine.mean(1), mu[:, 0], ulps=64, scale=3.0),
        close(affine.var(1, correction=0), gamma[:, 0] ** square, ulps=64),
        close((mean + deviation * values) / deviation, f / deviation, ulps=64),
    )


def _batch_norm(draw, features=5, **more):
    layer = BatchNorm(features, eps=TINY, dtype=torch.float64, **more)
    with torch.no_grad():
        for values in layer.parameters():
            values.copy_(draw.normal(features))
    return layer.requires_grad_(False)


@claim("norm.batch")
@lie("statistics over the features", axis=1)
@lie("the variance is divided by one less", more=-1)
@lie("at inference the batch decides too", mode=nn.Module.train)
@lie("the average so far counts what the newest batch should", newest=0.7)
@lie("the running average is that of the variance that trains", less=0)
def batches_standardise_every_feature(draw, axis=0, more=0, mode=nn.Module.eval, newest=0.3, less=1):
    """One batch against the sums written out; then many, whose averages stay at inference, whoever else is there."""
    layer, x = _batch_norm(draw), 3 + 2 * draw.normal(40, 5)
    mean = x.mean(axis, keepdim=True)
    variance = (x - mean).square().sum(axis, keepdim=True) / (x.shape[axis] + more)
    trained = layer(x)
    found = layer.bias + layer.weight * (x - mean) / variance.sqrt()
    average, fading = (_batch_norm(draw, momentum=share, affine=False) for share in (None, 0.3))
    batches = 3 + 2 * draw.normal(8, 40, 5)
    for batch in batches:
        average(batch)
        fading(batch)
    mode(average)
    means, variances, start = batches.mean(1), batches.var(1, correction=less), (1 - newest) ** 8
    counts = newest * (1 - newest) ** torch.arange(7, -1, -1, dtype=torch.float64)  # the last of eight counts most
    kept = (x - means.mean(0)) / variances.mean(0).sqrt()
    faded = (x - counts @ means) / (start + counts @ variances).sqrt()  # from mean zero and variance one
    return all_of(
        close(trained, found, ulps=64, scale=10.0),
        close(torch.stack([average(x), mode(fading)(x)]), torch.stack([kept, faded]), ulps=64, scale=10.0),
        close(average(torch.cat([x[:3], 7 * x[3:]]))[:3], average(x)[:3], ulps=4, scale=10.0),
        at_least((layer(torch.cat([x[:3], 7 * x[3:]]))[:3] - trained[:3]).abs().max(), 0.1),
    )


@claim("norm.batch.gradient")
@lie("the mean is held constant", mean=0.0)
@lie("the deviation is held constant", along=0.0)
@lie("divided by the variance", power=2.0)
def what_passes_back_neither_shifts_nor_scales(draw, mean=1.0, along=1.0, power=1.0, gradient=standardize_gradient):
    """Automatic differentiation of the layer against the formula, for batches from two examples on."""
    found, formula, own, rests = [], [], [], []
    for n in (2, 3, 32, 1000):
        f = (10.0 ** draw.uniform(6, low=-3, high=3) * draw.normal(n, 6)).requires_grad_()
        g, before = draw.normal(n, 6), standardize(f.detach(), dim=0)
        bar, s = before.values, before.deviation
        bars = _batch_norm(draw, 6, affine=False)(f)
        (derivative,) = torch.autograd.grad(bars, f, g)
        # In units of 1/s, so that all scales count alike.
        found.append((s * derivative).flatten())
        inner = g - mean * g.mean(0) - along * bar * (g * bar).mean(0)
        formula.append((s * inner / s**power).flatten())
        own.append((s * gradient(g, before, dim=0)).flatten())
        rests.append(torch.cat([(s * derivative).mean(0), (s * derivative * bar).mean(0)]))
    return all_of(
        close(torch.cat(found), torch.cat(formula), ulps=1024, scale=4.0),
        close(torch.cat(own), torch.cat(found), ulps=1024, scale=4.0),
        close(torch.stack(rests), 0.0, ulps=1024, scale=4.0),
    )


@claim("norm.batch.weight_view")
@lie("second moments in place of the covariance", centred=0.0)
@lie("the ratio has the sum of absolute values", p=1.0)
@lie("the mean of the inputs is not subtracted", shift=0.0)
def batch_norm_measures_weights_by_the_data(draw, centred=1.0, p=2.0, shift=1.0):
    """Correlated inputs, far from the origin and then centred, through a linear map and the layer."""
    x = 2 + draw.normal(300, 6) @ draw.normal(6, 6)
    w, mu = draw.normal(6, 20), x.mean(0)
    sigma = x.T @ x / len(x) - centred * torch.outer(mu, mu)
    lengths = (w * (sigma @ w)).sum(0).sqrt()  # (20,), of each weight vector in the metric of the data
    layer = _batch_norm(draw, 20, affine=False)
    rest = x - mu
    direction = w / torch.linalg.vector_norm(w, dim=0)
    ratio = torch.linalg.vector_norm(w, ord=p, dim=0) / lengths
    return all_of(
        close(layer(x @ w), (x - shift * mu) @ w / lengths, ulps=4096, scale=10.0),
        close(layer(rest @ w), rest @ direction * ratio, ulps=4096, scale=10.0),
        close((x @ w - x.mean(0) @ w).square().mean(0).sqrt(), lengths, ulps=4096),
    )


class Unnormalised(nn.Identity):
    """Hands on what it gets."""


@claim("norm.batch.scale_invariance")
@lie("the gradient grows with the weights", power=1.0)
@lie("it falls with their square", power=-2.0)
@lie("so it is without normalisation", layer=Unnormalised)
def the_length_of_normalised_weights_does_not_matter(draw, power=-1.0, layer=BatchNorm):
    """A loss of normalised linear units at weights from a thousandth to a thousand times as long."""
    x, target = draw.normal(50, 6), draw.normal(50, 4)
    normalise = layer(4, eps=TINY, affine=False, track_running_stats=False)
    w = draw.normal(4, 6)

    def loss(w):
        return (torch.tanh(normalise(x @ w.T)) * target).sum()

    here, gradient = loss(w), torch.func.grad(loss)(w)
    scales = 10.0 ** draw.uniform(30, low=-3, high=3)
    there = torch.stack([loss(c * w) for c in scales])
    gradients = torch.stack([torch.func.grad(loss)(c * w) / c**power for c in scales])
    size = gradient.abs().max()
    return all_of(
        close(there, here, ulps=4096, scale=50.0),
        close((gradient * w).sum(1) / (gradient.norm(dim=1) * w.norm(dim=1)), 0.0, ulps=4096, scale=1.0),
        close(gradients / size, (gradient / size).expand_as(gradients), ulps=65536, scale=1.0),
    )


def _feature_order(x):
    """Which of two features is the larger: (1, -1) or (-1, 1)."""
    return (x - x.flip(1)).sign()


@claim("norm.layer")
@lie("the variance is divided by d - 1", more=-1)
@lie("statistics over the batch", axis=0)
@lie("the sphere has the radius d", root=1.0)
@lie(
    "a negative factor changes nothing either",
    factor=-0.5,
    regime="no positive factor does",
    loose="larger factors change nothing either",
)
@lie("two features are wide enough", narrow=torch.clone)
def examples_lie_on_a_sphere_whatever_their_batch(
    draw, more=0, axis=1, root=0.5, factor=0.5, narrow=_feature_order, layer=LayerNorm
):
    """Widths from two on: against the sums written out, on the sphere and the hyperplane, alone and in a batch."""
    found, written, radii, sums, alone = [], [], [], [], []
    for d in (2, 4, 64):
        norm, x = layer(d, eps=0.0, affine=False), 3 + 10.0 ** draw.uniform(20, 1, low=-3, high=3) * draw.normal(20, d)
        y, mean = norm(x), x.mean(axis, keepdim=True)
        variance = (x - mean).square().sum(axis, keepdim=True) / (x.shape[axis] + more)
        # The mean of x is three times the shift, and up to 3,000 times the deviation: so is its rounding.
        found.append(y.flatten())
        written.append(((x - mean) / variance.sqrt()).flatten())
        radii.append(y.norm(dim=1) / d**root)
        sums.append(y.sum(1) / d)
        moved = norm(factor * x + 2)
        if d == 2:
            pairs = y, narrow(x)
        alone.append(torch.cat([norm(x[:1])[0] - y[0], (moved - y).flatten()]))
    return all_of(
        close(torch.cat(found), torch.cat(written), ulps=2**16, scale=10.0),
        close(torch.cat(radii), 1.0, ulps=2**16),
        close(torch.cat(sums), 0.0, ulps=2**16, scale=1.0),
        close(torch.cat(alone), 0.0, ulps=2**16, scale=10.0),
        close(*pairs, ulps=2**16),
    )


@claim("norm.layer.vs_batch")
@lie("the batch does not matter", power=0.0, regime="random noise over four octaves", loose="as there")
@lie("its noise falls like one over its size", power=-1.0, regime="random noise over four octaves", loose="as there")
@lie("layer normalisation has that noise too", without=BatchNorm)
def the_noise_of_a_batch_falls_with_its_root(draw, power=-0.5, without=LayerNorm):
    """One example, the same in 2,000 features, among random others: each feature is another batch."""
    sizes, features = [64, 128, 256, 512, 1024], 2000
    others = draw.normal(max(sizes) - 1, features)
    example = torch.full((1, features), 1.0, dtype=torch.float64)
    batches = [torch.cat([example, others[: size - 1]]) for size in sizes]
    noise = [_batch_norm(draw, features, affine=False)(batch)[0].std() for batch in batches]
    layer, fixed = without(16, affine=False, dtype=torch.float64), draw.normal(1, 16)
    results = torch.stack([layer(torch.cat([fixed, rest[:, :16]]))[0] for rest in batches])
    return all_of(
        slope_is(sizes, noise, power, within=0.045),  # five times its deviation
        close(results, results[:1].expand_as(results), ulps=4),
    )
