"""Distributions with a density: expectations, distribution functions, scaling and sums, against closed forms."""

import itertools
import math

import numpy
import torch
from scipy import stats

from lemmata.foundations.probability.claims.finite_laws import FiniteDistribution
from lemmata.foundations.probability.claims.quadrature import Density, absolute_integral
from lemmata.judge import all_of, claim, close, exactly, lie, probability_is

# Quadrature on panels reaches the last few digits; the expectations compared are of the order of 1.
ACCURACY = 1e-10


def normal(mean=0.0, deviation=1.0):
    """The normal density."""
    scale = deviation * math.sqrt(2 * math.pi)
    return Density(lambda t: torch.exp(-(((t - mean) / deviation) ** 2) / 2) / scale, centre=mean)


def exponential(rate=1.0):
    """The distribution of a waiting time."""
    return Density(lambda t: rate * torch.exp(-rate * t), low=0.0)


def gamma(shape, scale=1.0):
    """The gamma density."""
    log_constant = math.lgamma(shape) + shape * math.log(scale)
    return Density(lambda t: torch.exp((shape - 1) * t.log() - t / scale - log_constant), low=0.0)


def student(freedom):
    """Student's distribution, whose tails are powers."""
    constant = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    return Density(lambda t: constant * (1 + t * t / freedom) ** (-(freedom + 1) / 2))


def pareto(power):
    """A power from 1 on."""
    return Density(lambda t: power * t ** (-power - 1), low=1.0)


@claim("probability.expectation")
@lie("the density counts twice, E[X] = ∫ f(t)² t dt", power=2.0)
@lie("the Cauchy distribution has the mean 0", raises=ValueError, freedom=1.0)
@lie("the atoms of a discrete distribution count equally", weights=None)
def the_mean_is_the_integral_of_t_times_the_density(draw, power=1.0, freedom=1.5, weights=(0.5, 0.25, 0.25)):
    """Integrals over exponential, gamma, normal, Pareto and Student densities against closed forms; a finite sum."""
    rate, shape, scale, mean = draw.uniform(4, low=0.5, high=3.0).tolist()
    cases = [
        (exponential(rate), 1 / rate),
        (gamma(shape, scale), shape * scale),
        (gamma(0.3), 0.3),
        (normal(mean, scale), mean),
        (pareto(1.5), 3.0),
        (student(freedom), 0.0),
    ]
    means = doubles(*(value for _, value in cases))
    found = [density.expectation(lambda t, f=density: t * f(t) ** (power - 1)) for density, _ in cases]
    atoms = doubles(1.0, 2.0, 8.0)[:, None]
    finite = FiniteDistribution(atoms, None if weights is None else doubles(*weights))
    return all_of(
        close(torch.stack(found), means, within=ACCURACY),
        close(torch.stack([density.mean for density, _ in cases]), means, within=ACCURACY),
        exactly(finite.mean, doubles(3.0)),
    )


@claim("probability.cdf_derivative")
@lie("the survival function has the derivative f", sign=-1.0)
@lie("f is the derivative at its jumps as well", regime="inside f is continuous", loose="as above", jump=1.0)
def the_distribution_function_grows_at_the_rate_of_the_density(draw, sign=1.0, jump=0.5):
    """Distribution functions by integration against another library's, and their slopes against the density."""
    t = draw.uniform(4, low=0.2, high=3.0)
    parts = []
    for density, other in (
        (normal(1.0, 0.7), stats.norm(1.0, 0.7)),
        (gamma(2.5, 0.8), stats.gamma(2.5, scale=0.8)),
        (Density(lambda t: 12 * t.square() * (3.5 - t) / 3.5**4, 0.0, 3.5), stats.beta(3, 2, scale=3.5)),
    ):
        at = t.clone().requires_grad_()
        cdf = density.cdf(at)
        (slope,) = torch.autograd.grad(cdf.sum(), at)
        parts.append(close(slope, sign * density(t), within=ACCURACY))
        parts.append(close(cdf, torch.tensor(other.cdf(t.numpy())), within=ACCURACY))
    # A density that jumps: its distribution function is continuous, with different slopes on the two sides.
    uniform = Density(torch.ones_like, 0.0, 1.0)
    step = 1e-3
    sides = torch.stack([uniform.cdf(jump + step) - uniform.cdf(jump), uniform.cdf(jump) - uniform.cdf(jump - step)])
    return all_of(*parts, close(sides / step, uniform(torch.tensor([jump, jump], dtype=torch.float64)), within=1e-9))


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64)


def signed(scale):
    """The factor with its sign."""
    return scale


@claim("probability.scaling_density")
@lie("the factor keeps its sign", size=signed)
@lie("the argument is multiplied: z σ stands for z / σ", power=-1.0)
@lie("the density is not rescaled", height=0.0)
def the_density_of_a_multiple_is_stretched_and_lowered(draw, size=abs, power=1.0, height=1.0):
    """Masses of intervals under multiples of a gamma and a normal variable, mirrored, huge and tiny ones too."""
    shape, mean = draw.uniform(2, low=1.5, high=3.0).tolist()
    ends = 0.3 + draw.uniform(4, low=0.1, high=0.8).cumsum(0)
    masses, known = [], []
    for density, other in (gamma(shape), stats.gamma(shape)), (normal(mean, 0.5), stats.norm(mean, 0.5)):
        for scale in (2.5, -0.4, 1e6, -1e-6):
            divisor = math.copysign(abs(scale) ** power, scale)

            def image(z, density=density, scale=scale, divisor=divisor):
                return density(z / divisor) / size(scale) ** height

            for low, high in itertools.pairwise(ends.tolist()):
                masses.append(area(image, *sorted((low * scale, high * scale))))
                known.append(other.cdf(high) - other.cdf(low))
    return close(masses, known, within=ACCURACY)


def sum_density(first, second):
    """∫ f(t) g(z - t) dt: the convolution of two densities, as a function of z."""

    def density(z):
        # Only where both densities live: the kinks at the ends of their supports become ends of the integral, and
        # the panels are finest at the centres of both.
        low = (z - second.high).clamp(min=first.low)
        high = torch.maximum(low, (z - second.low).clamp(max=first.high))
        one, two = (
            torch.as_tensor(c, dtype=z.dtype).expand_as(z).clamp(low, high) for c in (first.centre, z - second.centre)
        )
        left, right = torch.minimum(one, two), torch.maximum(one, two)

        def overlap(t):
            return first(t) * second(z[..., None] - t)

        outer = absolute_integral(overlap, low, left, left) + absolute_integral(overlap, right, high, right)
        return outer + absolute_integral(overlap, left, right)

    return density


def difference(first, second):
    """∫ f(t) g(z + t) dt: the density of a difference."""
    return sum_density(first, Density(lambda t: second(-t), -second.high, -second.low, -second.centre))


def pointwise(first, second):
    """The product of the densities, normalised."""
    mass = first.expectation(second)
    return lambda z: first(z) * second(z) / mass


@claim("probability.sum_convolution")
@lie("z + t stands for z - t: the density of a difference", density=difference)
@lie("the densities are multiplied and normalised", density=pointwise)
def the_density_of_a_sum_is_the_convolution_of_the_densities(draw, density=sum_density):
    """Triangle, gamma and normal densities as sums; the area under a density against samples."""
    z = torch.cat([draw.uniform(2, low=0.1, high=2.9), torch.tensor([-0.5, 1.0]).double()])
    uniform, waiting = Density(torch.ones_like, 0.0, 1.0), exponential()
    sums = [
        (density(uniform, uniform)(z), (1 - (z - 1).abs()).clamp(min=0)),
        (density(waiting, Density(torch.ones_like, 1.0, 2.0))(z + 1), mixed(z)),
        (density(waiting, waiting)(z), torch.where(z > 0, z * torch.exp(-z), 0.0)),
        (density(normal(1.0), normal(0.5, 0.01))(z), normal(1.5, math.sqrt(1.0001))(z)),
        (density(uniform, waiting)(z), mixed(z)),
        (density(waiting, uniform)(z), mixed(z)),
    ]
    found, known = (torch.stack(side) for side in zip(*sums, strict=True))
    return all_of(
        close(found, known, within=ACCURACY),
        probability_is(lambda n: summed(draw, n) < 1.5, area(density(uniform, waiting), 0.0, 1.0, 1.5), effect=0.01),
    )


def mixed(z):
    """The density of a uniform plus an exponential variable: 1 - e^-z up to 1, then e^-z (e - 1)."""
    rising, falling = 1 - torch.exp(-z), torch.exp(-z) * (math.e - 1)
    return torch.where(z <= 0, 0.0, torch.where(z <= 1, rising, falling))


def area(density, *ends):
    """The integral of a density between its kinks, by Gauss's rule."""
    nodes, weights = (torch.tensor(part) for part in numpy.polynomial.legendre.leggauss(16))
    pieces = [(low, high - low) for low, high in itertools.pairwise(ends)]
    return sum(float((width / 2 * weights * density(low + width * (1 + nodes) / 2)).sum()) for low, width in pieces)


def summed(draw, n):
    """Samples of a uniform plus an exponential variable."""
    return draw.uniform(n) - draw.uniform(n).log()
