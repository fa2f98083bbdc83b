"""Networks with random weights: nearly normal, normal at infinite width, and which covariance they have."""

import math

import numpy
import torch

from lemmata.feedforward.deep_linear import DeepLinear
from lemmata.judge import all_of, claim, close, law_is, lie, mean_is
from lemmata.judge.evidence import ALPHA
from lemmata.judge.rates import slope_is
from lemmata.kernel.infinite_width import nngp


def products_of_nodes(weights, count=4):
    """All values of so many normal weights in the rule of Gauss and Hermite, exact up to the fourth moment."""
    nodes, masses = (torch.from_numpy(part) for part in numpy.polynomial.hermite_e.hermegauss(count))
    masses = masses / masses.sum()
    places = torch.cartesian_prod(*[torch.arange(count)] * weights)
    return nodes[places], masses[places].prod(1)  # (values, weights), (values,)


def excess_kurtosis(values, masses):
    second, fourth = ((masses * values**k).sum() for k in (2, 4))
    return fourth / second**2 - 3


@claim("gp.deep_linear_near_normal")
@lie("exactly normal at every width", factor=0.0)
@lie("the product of two normals alone", factor=3.0)
@lie("it falls with the root of the width", power=-0.5)
def products_are_nearly_normal(draw, factor=6.0, power=-1.0, network=DeepLinear):
    """Every moment of the network's output by a rule that is exact for it, at widths 1 to 4: no sampling."""
    x, kurtoses = draw.uniform(1, low=1.0, high=2.0), []
    widths = torch.arange(1, 5).double()
    for width in range(1, 5):
        values, masses = products_of_nodes(2 * width)
        deep = network(1, 1, (width,), bias=False, dtype=torch.float64)
        drawn = {"layers.0.weight": values[:, :width, None], "layers.1.weight": values[:, None, width:] / width**0.5}
        outputs = torch.vmap(lambda one, deep=deep: torch.func.functional_call(deep, one, (x,)))(drawn)
        kurtoses.append(excess_kurtosis(outputs[:, 0], masses))
    return close(torch.stack(kurtoses), factor * widths**power, within=1e-10)


def random_signs(shape, generator):
    return 2.0 * torch.randint(2, shape, generator=generator).double() - 1


def cauchy(shape, generator):
    return torch.tan(math.pi * (torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5))


@claim("gp.neal")
@lie("output weights without a variance", readout=cauchy)
@lie("one unit is enough", width=1)
@lie("divided by the width instead of its root", power=-1.0)
@lie("the variance of the output weights is left out", factor=1.0)
def many_units_add_up_to_a_process(draw, readout=random_signs, width=128, power=-0.5, factor=2.0, kernel=nngp):
    """Combinations of a drawn network's outputs at three points, and the exact kurtosis of a ReLU network: 15/m."""
    x, along = draw.normal(3, 4), draw.uniform(3, low=0.5, high=1.5)

    def outputs(count):
        weight = torch.randn(count, max(width, 1), 4, generator=draw.generator, dtype=torch.float64) * (2.0 / 4) ** 0.5
        hidden = (weight @ x.mT).relu()  # (count, width, points)
        last = readout((count, hidden.shape[1], 1), draw.generator) * 2.0**0.5
        return (last * hidden).sum(1) * hidden.shape[1] ** power @ along

    covariance = kernel(x, depth=2, activation="relu", weight_variance=2.0) * factor / 2
    spread = (along @ covariance @ along).sqrt()
    excess = []
    for m in (1, 2, 3):
        values, masses = products_of_nodes(2 * m)
        excess.append(excess_kurtosis((values[:, :m].relu() * values[:, m:]).sum(1), masses))
    return all_of(
        law_is(outputs, lambda f: torch.special.ndtr(f / spread), effect=0.04, chunk=2048),
        close(torch.stack(excess), 15.0 / torch.tensor([1.0, 2.0, 3.0]).double(), ulps=4096),
    )


def relu_mean(first, second, covariance):
    """The mean of two rectified normals along the arc on which both are positive: no closed form."""
    nodes, masses = (torch.from_numpy(part) for part in numpy.polynomial.legendre.leggauss(20))
    angle = torch.arccos((covariance / (first * second).sqrt().clamp(min=1e-100)).clamp(-1, 1))[..., None]
    half = (math.pi - angle) / 2
    place = angle - math.pi / 2 + half * (nodes + 1)
    # The radius gives r^3 exp(-r^2 / 2), whose integral is 2.
    return (first * second).sqrt() * (half * masses * torch.cos(place) * torch.cos(place - angle)).sum(-1) / math.pi


@claim("gp.nngp_recursion")
@lie("the variance of the weights is left out", weight=1.0)
@lie("the bias is left out", bias=0.0)
@lie("activations have the covariance of the next pre-activations", printed="001/2", activations=2.0)
@lie("activations have mean zero", centre=0.0)
@lie("the finite network's bias falls with the root of its width", rate=-0.5)
def one_layer_after_another(draw, weight=2.0, bias=0.3, activations=1.0, centre=1.0, rate=-1.0, kernel=nngp):
    """The recursion by quadrature, one drawn layer without bias at any width, and how a deeper one's bias falls."""
    x = draw.normal(4, 3)
    layers = [2.0 / 3 * x @ x.mT + 0.3]
    for _ in range(3):
        own = layers[-1].diagonal()
        layers.append(weight * relu_mean(own[:, None], own, layers[-1]) + bias)
    first = layers[0][:2, :2]
    root, product = torch.linalg.cholesky(first), relu_mean(first[0, 0], first[1, 1], first[0, 1])

    def units(count, root=root):
        return torch.randn(count, 2, generator=draw.generator, dtype=torch.float64) @ root.mT

    scale = float(first[0, 0].sqrt())
    no_bias = kernel(x, depth=6, weight_variance=2.0)
    return all_of(
        *(
            close(kernel(x, depth=k, weight_variance=2.0, bias_variance=0.3), layers[k - 1], within=1e-11)
            for k in (2, 4)
        ),
        close(no_bias.diagonal(), weight**5 * 2.0**-5 * 2 / 3 * x.square().sum(1), ulps=1024),
        mean_is(lambda u: u.relu().prod(1), units, activations * product, effect=0.4 * float(product), alpha=ALPHA / 3),
        mean_is(
            lambda u: u.relu()[:, 0], units, centre * scale / (2 * math.pi) ** 0.5, effect=0.1 * scale, alpha=ALPHA / 3
        ),
        mean_is(lambda u: u[:, 0], units, 0.0, effect=0.1 * scale, alpha=ALPHA / 3),
        slope_is(WIDTHS, [bias_at(width, first, draw.generator) for width in WIDTHS], rate, within=0.2),
    )


WIDTHS = [16, 32, 64, 128]


def bias_at(width, covariance, generator, networks=20_000):
    """How far the mean product of the second layer is from that of infinite width, at this width of the first.

    Given the first layer, the second is normal with its empirical covariance G. The mean of E[relu relu] over G, less a
    linear function of G with the same mean, leaves the bias with little noise.
    """
    root = torch.linalg.cholesky(covariance)
    hidden = (torch.randn(networks, width, 2, generator=generator, dtype=torch.float64) @ root.mT).relu()
    empirical = hidden.mT @ hidden / width  # (networks, 2, 2)
    parts = empirical[:, 0, 0], empirical[:, 1, 1], empirical[:, 0, 1]
    own = covariance.diagonal() / 2
    middle = [own[0], own[1], relu_mean(covariance[0, 0], covariance[1, 1], covariance[0, 1])]
    function = torch.func.grad_and_value(relu_mean, argnums=(0, 1, 2))
    slopes, at_infinity = function(*middle)
    straight = at_infinity + sum(
        slope * (part - centre) for slope, part, centre in zip(slopes, parts, middle, strict=True)
    )
    return float((relu_mean(*parts) - straight).mean().abs())
