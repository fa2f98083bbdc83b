"""Laws with a density: expectations, the distribution function, scaling, sums; against closed forms and samples."""

import itertools
import math

import numpy
import torch
from scipy import stats

from lemmata.foundations.densities import Density, scaled_density, sum_density
from lemmata.foundations.finite_laws import FiniteLaw, convolve_masses
from lemmata.foundations.integration import absolute_integral
from lemmata.judge import Figure, Line, all_of, always, claim, close, exactly, lie, probability_is

# Quadrature on panels reaches the last few digits; the expectations compared are of the order of 1.
ACCURACY = 1e-10


def normal(mean=0.0, deviation=1.0):
    """The normal density."""
    scale = deviation * math.sqrt(2 * math.pi)
    return Density(lambda t: torch.exp(-(((t - mean) / deviation) ** 2) / 2) / scale, centre=mean)


def exponential(rate=1.0):
    """The law of a waiting time."""
    return Density(lambda t: rate * torch.exp(-rate * t), low=0.0)


def gamma(shape, scale=1.0):
    """The gamma density."""
    log_constant = math.lgamma(shape) + shape * math.log(scale)
    return Density(lambda t: torch.exp((shape - 1) * t.log() - t / scale - log_constant), low=0.0)


def student(freedom):
    """Student's law, whose tails are powers."""
    constant = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    return Density(lambda t: constant * (1 + t * t / freedom) ** (-(freedom + 1) / 2))


def pareto(power):
    """A power from 1 on."""
    return Density(lambda t: power * t ** (-power - 1), low=1.0)


@claim("probability.expectation")
@lie("the density counts twice, E[X] = ∫ f(t)² t dt", power=2.0)
@lie("the Cauchy law has the mean 0", raises=ValueError, freedom=1.0)
@lie("the atoms of a discrete law count equally", weighted=False)
def the_mean_is_the_integral_of_t_times_the_density(draw, power=1.0, freedom=1.5, weighted=True):
    """Integrals over exponential, gamma, normal, Pareto and Student laws against closed forms; finite sums by hand."""
    rate, shape, scale, mean = draw.uniform(4, low=0.5, high=3.0).tolist()
    cases = [
        (exponential(rate), 1 / rate),
        (gamma(shape, scale), shape * scale),
        (gamma(0.3), 0.3),
        (normal(mean, scale), mean),
        (pareto(1.5), 3.0),
        (student(freedom), 0.0),
    ]
    found = [law.expectation(lambda t, law=law: t * law(t) ** (power - 1)) for law, _ in cases]
    masses = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    finite = FiniteLaw(torch.tensor([[1.0], [2.0], [8.0]], dtype=torch.float64), masses if weighted else None)
    # E max(X - a, 0) of the exponential law has a kink at a, which is where the panels are told to meet.
    call = absolute_integral(lambda t: (t - 1).clamp(min=0) * torch.exp(-t), 0.0, centre=1.0)
    return all_of(
        close(torch.stack(found), torch.tensor([value for _, value in cases], dtype=torch.float64), within=ACCURACY),
        close(torch.stack([law.mean for law, _ in cases]), torch.stack(found), within=ACCURACY),
        close(gamma(shape, scale).variance, shape * scale**2, within=ACCURACY),
        close(scaled_density(gamma(shape), -1.0).mean, -shape, within=ACCURACY),
        close(call, math.exp(-1), within=ACCURACY),
        close(absolute_integral(lambda t: t**-0.5, 0, 1), 2.0, within=ACCURACY),
        close(absolute_integral(lambda t: torch.exp(-t.abs())), 2.0, within=ACCURACY),
        # Singular at 1, where floating point ends: nodes so near that they round to it are left out.
        close(absolute_integral(lambda t: 1 / (t * (1 - t)).sqrt(), 0, 1), math.pi, within=1e-7),
        close(absolute_integral(lambda t: (t - 1).abs() ** -0.5, 0, 2, centre=1), 4.0, within=2e-7),
        always([infinite_within()], detail="what is infinite inside the interval is refused"),
        exactly(finite.mean, torch.tensor([3.0], dtype=torch.float64)),
    )


def infinite_within():
    """Whether a function that is infinite on half of the interval has no integral."""
    try:
        absolute_integral(lambda t: torch.where(t > 0.5, torch.inf, 1.0), 0, 1)
    except ValueError:
        return True
    return False


@claim("probability.cdf_derivative")
@lie("the survival function has the derivative f", sign=-1.0)
@lie("f is the derivative at its jumps as well", regime="inside f is continuous", loose="as above", jump=1.0)
@lie("the derivative is the density at half the point", stretch=0.5)
def the_distribution_function_grows_at_the_rate_of_the_density(draw, sign=1.0, jump=0.5, stretch=1.0):
    """Distribution functions by integration against another library's, and their slopes against the density."""
    t = draw.uniform(4, low=0.2, high=3.0)
    cases = [
        (normal(1.0, 0.7), stats.norm(1.0, 0.7)),
        (gamma(2.5, 0.8), stats.gamma(2.5, scale=0.8)),
        (Density(lambda t: 12 * t.square() * (3.5 - t) / 3.5**4, 0.0, 3.5), stats.beta(3, 2, scale=3.5)),
    ]
    parts = []
    for law, other in cases:
        at = t.clone().requires_grad_()
        cdf = law.cdf(at)
        (slope,) = torch.autograd.grad(cdf.sum(), at)
        below = torch.tensor(other.cdf(t.numpy()))
        parts += [
            close(slope, sign * law(stretch * t), within=ACCURACY),
            close(cdf, below, within=ACCURACY),
            close(law(t), torch.tensor(other.pdf(t.numpy())), within=ACCURACY),  # type: ignore[attr-defined]
            exactly(law.cdf(torch.tensor([-1e3, 1e3])).round(decimals=9), torch.tensor([0.0, 1.0]).double()),
        ]
    # A density that jumps: its distribution function is continuous, with different slopes on the two sides.
    uniform = Density(torch.ones_like, 0.0, 1.0)
    step = 1e-3
    sides = torch.stack([uniform.cdf(jump + step) - uniform.cdf(jump), uniform.cdf(jump) - uniform.cdf(jump - step)])
    outside = torch.tensor([-0.1, 0.0, 1.0, 1.1])
    return all_of(
        *parts,
        close(sides / step, uniform(torch.tensor([jump, jump])), within=1e-9),
        exactly(uniform(outside), torch.tensor([0.0, 1.0, 1.0, 0.0])),
    )


def absolute(scale):
    """The size of the factor."""
    return abs(scale)


def signed(scale):
    """The factor with its sign."""
    return scale


@claim("probability.scaling_density")
@lie("the factor keeps its sign", size=signed)
@lie("the argument is multiplied: the density of Y/σ", power=-1.0)
@lie("the density is not rescaled", height=0.0)
def the_density_of_a_multiple_is_stretched_and_lowered(draw, size=absolute, power=1.0, height=1.0):
    """Multiples of a gamma and a normal variable, mirrored ones too: integrals, means, laws and parameters known."""
    shape, mean = draw.uniform(2, low=1.5, high=3.0).tolist()
    parts = []
    laws = (gamma(shape), stats.gamma(shape)), (normal(mean, 0.5), stats.norm(mean, 0.5))
    for scale in (2.5, -0.4, 1e6, -1e-6):
        for law, other in laws if abs(scale) in (2.5, 0.4) else laws[:1]:
            image = scaled_density(law, scale)
            z = scale * draw.uniform(3, low=0.3, high=3.0)
            formula = law(z / scale**power) / size(scale) ** (power * height)
            below = torch.tensor(other.cdf((z / scale).numpy()))
            parts += [
                close(image(z), formula, scale=image(z)),
                close(image.cdf(z), below if scale > 0 else 1 - below, within=ACCURACY),
                close(image.mean, scale * law.mean, within=ACCURACY * abs(scale)),
                close(absolute_integral(image, image.low, image.high), 1.0, within=ACCURACY),
            ]
    return all_of(*parts)


def difference(first, second):
    """∫ f(t) g(z + t) dt: the law of a difference."""
    mirrored = scaled_density(second, -1.0)
    return sum_density(first, mirrored)


def pointwise(first, second):
    """The product of the densities, normalised."""
    mass = first.expectation(second)
    return lambda z: first(z) * second(z) / mass


@claim("probability.sum_convolution")
@lie("z + t stands for z - t: the density of a difference", density=difference)
@lie("the densities are multiplied and normalised", density=pointwise)
@lie("the second die is loaded", loaded=1.0)
def the_density_of_a_sum_is_the_convolution_of_the_densities(draw, density=sum_density, loaded=0.0):
    """Triangle, gamma and normal laws as sums; areas under the density against samples; dice against counting."""
    z = torch.cat([draw.uniform(2, low=0.1, high=2.9), torch.tensor([-0.5, 1.0]).double()])
    uniform, waiting = Density(torch.ones_like, 0.0, 1.0), exponential()
    narrow = normal(0.5, 0.01)
    parts = [
        close(density(uniform, uniform)(z), (1 - (z - 1).abs()).clamp(min=0), within=ACCURACY),
        close(density(waiting, Density(torch.ones_like, 1.0, 2.0))(z + 1), mixed(z), within=ACCURACY),
        close(density(waiting, waiting)(z), torch.where(z > 0, z * torch.exp(-z), 0.0), within=ACCURACY),
        close(density(normal(1.0), narrow)(z), normal(1.5, math.sqrt(1.0001))(z), within=ACCURACY),
        # Of X + Y with X uniform and Y exponential: 1 - e^-z up to 1, then e^-z (e - 1); either order.
        close(density(uniform, waiting)(z), mixed(z), within=ACCURACY),
        close(density(waiting, uniform)(z), mixed(z), within=ACCURACY),
    ]
    die = torch.ones(6, dtype=torch.float64) + loaded * torch.arange(6)
    two = convolve_masses(torch.full((6,), 1 / 6, dtype=torch.float64), die / die.sum())
    counts = torch.bincount(torch.arange(1, 7)[:, None].add(torch.arange(1, 7)).flatten(), minlength=13)[2:]
    batch = draw.normal(2, 4).softmax(-1), draw.normal(2, 3).softmax(-1)
    batched = [torch.tensor(numpy.convolve(p, q)) for p, q in zip(*batch, strict=True)]
    return all_of(
        *parts,
        close(two, counts / 36),
        close(convolve_masses(*batch), torch.stack(batched)),
        probability_is(lambda n: summed(draw, n) < 1.5, area(density(uniform, waiting), 0.0, 1.0, 1.5), effect=0.01),
    ).showing(dice())


def mixed(z):
    """The density of a uniform plus an exponential variable."""
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


def dice():
    """Sums of one, two and five dice."""
    die = torch.full((6,), 1 / 6, dtype=torch.float64)
    laws = {1: die}
    for count in range(2, 6):
        laws[count] = convolve_masses(laws[count - 1], die)
    lines = [Line(torch.arange(k, 6 * k + 1), laws[k], f"{k} dice" if k > 1 else "one die") for k in (1, 2, 5)]
    return Figure("Sums of dice approach a bell", "sum", "probability", lines)
