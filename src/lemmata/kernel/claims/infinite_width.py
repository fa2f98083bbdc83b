"""Infinite width: the limit of the kernel, its closed form for relu, the curvature that vanishes, what generalises."""

import math

import numpy
import torch
from torch import nn

from lemmata.judge import all_of, at_least, at_most, claim, close, lie, mean_is, slope_is
from lemmata.kernel.infinite_width import infinite_ntk
from lemmata.kernel.kernel_regression import KernelRegression
from lemmata.kernel.ntk_parametrisation import ntk_mlp
from lemmata.kernel.tangent_kernel import ntk
from lemmata.measure.curvature_products import HessianOperator


def drawn_network(draw, *widths, activation: type[nn.Module] = nn.ReLU, weight_variance=2.0):
    model = ntk_mlp(widths, activation, weight_variance, dtype=torch.float64)
    for p in model.parameters():
        p.data = draw.normal(*p.shape)
    return model


def kernels_and_values(draw, pair, width, count):
    """k(x, x') and f(x) of so many networks with one hidden layer of relu."""
    models = [drawn_network(draw, pair.shape[1], width, 1) for _ in range(count)]
    values = torch.stack([model(pair[:1]).squeeze() for model in models]).detach()
    return torch.stack([ntk(model, pair[:1], pair[1:]).squeeze() for model in models]), values


@claim("ntk.deterministic_limit")
@lie("the limit depends on the draw", power=0.0)
@lie("there is only one initial network", printed="003/1", function=-0.5)
@lie("the limit is that of gradients in the last layer alone", layers=1)
def the_initial_kernel_has_a_limit(draw, power=-0.5, function=0.0, layers=2, limit=infinite_ntk):
    """Spread of the kernel and of the function over the width, and the mean of the kernel, which is the limit."""
    p, q = draw.orthogonal(3)[:2]
    pair = torch.stack([p, 0.6 * p + 0.8 * q]) * 3**0.5
    widths = [32, 128, 512]
    found = [kernels_and_values(draw, pair, m, 90) for m in widths]
    spreads, values = (torch.stack([each[k].std() for each in found]) for k in range(2))
    whole = limit(pair[:1], pair[1:])
    shown = whole if layers == 2 else whole - slopes_alone(pair)
    return all_of(
        slope_is(widths, spreads, power, within=0.2),
        slope_is(widths, values, function, within=0.2),
        mean_is(
            lambda kernels: kernels,
            lambda n: kernels_and_values(draw, pair, 128, n)[0],
            shown.squeeze(),
            effect=0.3,
            pilot=90,
        ),
    )


def slopes_alone(pair):
    """What the first layer adds."""
    cosine = torch.nn.functional.cosine_similarity(pair[0], pair[1], dim=0)
    return 2 * (pair[0] @ pair[1]) / 3 * 2 * (math.pi - torch.acos(cosine)) / (2 * math.pi)


def over_angles(cosine, power):
    """The mean of 2 φ(u)φ(v) or 2 φ'(u)φ'(v) of relu over a turn: neither is zero on one arc, where both are smooth."""
    angle = math.acos(cosine)
    nodes, weights = numpy.polynomial.legendre.leggauss(30)
    length = math.pi - angle
    places = angle - math.pi / 2 + length * (nodes + 1) / 2
    inside = (numpy.cos(places) * numpy.cos(places - angle)) ** power
    return 2 * (2 if power else 1) * float(weights @ inside) * length / 2 / (2 * math.pi)  # E r² = 2


@claim("ntk.relu_two_layer")
@lie("only the last layer is trained", first=1.0)
@lie("the network is scaled by 1/√m", scale=0.5)
def arc_cosines(draw, first=2.0, scale=1.0, limit=infinite_ntk):
    """The limit against the formula, integrals over the angle, and the mean over units; also equal and opposite."""
    d, cosines = 4, torch.tensor([-1.0, -0.999, -0.4, 0.0, 0.3, 0.9, 0.9999, 1.0]).double()
    p, q = draw.orthogonal(d)[:2]
    sides = cosines[:, None] * p + (1 - cosines**2).clamp(min=0).sqrt()[:, None] * q
    x, others = 1.7 * p[None], 0.6 * sides
    size = 1.7 * 0.6
    given = limit(x, others)[0] * d / 2  # whose first layer is scaled by √(2/d), Bietti and Mairal's by 1
    kappa = (first * cosines * (math.pi - cosines.acos()) + (1 - cosines**2).clamp(min=0).sqrt()) / math.pi
    turned = torch.tensor([c * over_angles(c, 0) + over_angles(c, 1) for c in cosines.tolist()]).double()
    one, two = x[0], others[2]

    def units(count):
        w, v = draw.normal(count, d), draw.normal(count)
        both = ((w @ one) > 0) & ((w @ two) > 0)
        return 2 * both * ((w @ one) * (w @ two) + v.square() * (one @ two))

    return all_of(
        close(given, scale * size * kappa, within=1e-7),
        close(given, size * turned, within=1e-7),
        mean_is(lambda each: each, units, scale * size * kappa[2], effect=0.05),
        close(limit(x, x)[0] * d / 2, 1.7**2 * scale * (first + 0.0), within=1e-12),
    )


def largest_curvature(model, x):
    """The spectral norm of the Hessian of f(x), by sixty steps of the power method."""
    hessian = HessianOperator(model, lambda f, _: f.sum(), (x, None))
    size = sum(p.numel() for p in model.parameters())
    vector = torch.ones(size).double() + torch.arange(size).double().cos()
    for _ in range(60):
        vector = hessian(vector / vector.norm())
    return vector.norm()


@claim("ntk.vanishing_curvature")
@lie("the ratio does not fall with the width", power=0.0)
@lie("the ratio falls like 1/m", power=-1.0)
def wide_networks_are_nearly_flat(draw, power=-0.5):
    """Curvature over the squared gradient of networks of five widths, and the gradient by itself."""
    x, widths, ratios, slopes = draw.unit(1, 3) * 3**0.5, [16, 64, 256, 1024], [], []
    for m in widths:
        models = [drawn_network(draw, 3, m, 1, activation=nn.Tanh, weight_variance=1.0) for _ in range(12)]
        steepness = torch.stack([ntk(model, x).squeeze() for model in models])
        curvatures = torch.stack([largest_curvature(model, x) for model in models])
        ratios.append((curvatures / steepness).log().mean().exp())
        slopes.append(steepness.log().mean().exp())
    return all_of(
        slope_is(widths, torch.stack(ratios), power, within=0.2),
        slope_is(widths, torch.stack(slopes), 0.0, within=0.15),
    )


def as_they_are(y, order):
    return y


def shuffled(y, order):
    return y[order]


def smooth_kernel(a, b):
    return infinite_ntk(a, b, depth=3, bias_variance=0.1)


def needles(a, b):
    """A kernel so narrow that points know nothing of each other."""
    return torch.exp(-500 * (a[:, None] - b).square().sum(-1))


@claim("ntk.generalisation_insight")
@lie("labels without any order have as small a norm", labels=shuffled)
@lie("any interpolant generalises", kernel=needles)
def the_smallest_norm_generalises(draw, labels=as_they_are, kernel=smooth_kernel):
    """Twenty data sets: the fit of true and of shuffled labels, both exact; their norms; the error on new points."""
    ratios, errors, fits = [], [], []
    for _ in range(20):
        x, direction = draw.unit(130, 3), draw.unit(3)
        y = (1.5 * x @ direction + x[:, 0] * x[:, 1]).sin()
        known = labels(y[:30], draw.permutation(30))
        true = KernelRegression(kernel).fit(x[:30], known)
        mixed = KernelRegression(kernel).fit(x[:30], y[:30][draw.permutation(30)])
        fits.append(torch.stack([true.residual_norm_, mixed.residual_norm_]))
        ratios.append((true.norm_ / mixed.norm_).square())
        errors.append((true.predict(x[30:]) - y[30:]).square().mean() / y.var())
    ratios, errors = torch.stack(ratios), torch.stack(errors)
    return all_of(
        at_most(torch.stack(fits), 1e-6),
        at_least((ratios < 0.5).double().sum(), 19.0),
        at_most(errors.median(), 0.1),
    )
