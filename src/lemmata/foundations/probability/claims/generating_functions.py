"""Moment generating functions: the table of the usual distributions, what derivatives at 0 give, and sums."""

import math

import torch
from scipy import stats

from lemmata.foundations.probability.claims.densities import gamma, normal
from lemmata.foundations.probability.claims.finite_laws import FiniteDistribution
from lemmata.foundations.probability.claims.quadrature import absolute_integral
from lemmata.judge import all_of, claim, close, exactly, lie


def bernoulli_mgf(t, p):
    return p * t.exp() + 1 - p


def binomial_mgf(t, n, p):
    return bernoulli_mgf(t, p) ** n


def poisson_mgf(t, rate):
    return torch.exp(rate * (t.exp() - 1))


def normal_mgf(t, mean, variance):
    return torch.exp(mean * t + variance * t * t / 2)


def gamma_mgf(t, shape, scale):
    return (1 - scale * t) ** -shape


def on_numbers(values, weights):
    """The distribution of a number."""
    return FiniteDistribution(torch.as_tensor(values, dtype=torch.float64)[:, None], torch.as_tensor(weights))


def derivatives_at_zero(mgf, order):
    """The value at 0 and so many derivatives, by autograd."""
    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    found = [mgf(t)]
    for _ in range(order):
        found += torch.autograd.grad(found[-1], t, create_graph=True)
    return torch.stack(found).detach()


def law_with_moments(moments):
    """The distribution on half as many atoms with these moments: the atoms are eigenvalues, the weights follow."""
    count = len(moments) // 2
    hankel = moments[: 2 * count].unfold(0, count, 1)  # entry (i, j) is moment i + j
    root = torch.linalg.cholesky(hankel[:count])
    shifted = torch.linalg.solve_triangular(root, hankel[1 : count + 1], upper=False)
    shifted = torch.linalg.solve_triangular(root, shifted.mT, upper=False)
    atoms, vectors = torch.linalg.eigh((shifted + shifted.mT) / 2)
    return FiniteDistribution(atoms[:, None], vectors[0].square() / vectors[0].square().sum())


def whole_number_masses(mgf, count):
    """The probabilities of 0, 1, ... from the values on the imaginary axis, to which a function near 0 continues."""
    turns = 2j * math.pi * torch.arange(count, dtype=torch.float64) / count
    return torch.fft.fft(mgf(turns)).real / count


def density_of(mgf, x):
    """The density from the same values, by a trapezoidal sum, exact to rounding where they fade as a bell."""
    t = torch.linspace(-25, 25, 201, dtype=torch.float64)
    return (mgf(1j * t) * torch.exp(-1j * t * x[:, None])).sum(-1).real * 0.25 / (2 * math.pi)


@claim("mgf.definition")
@lie("the function is 0 at 0", start=0.0)
@lie("the derivatives are powers of the mean", spread=0.0)
@lie("three moments determine the distribution", loose="more derivatives tell no more", known=4)
def derivatives_at_zero_are_the_moments(draw, start=1.0, spread=1.0, known=8):
    """The table's derivatives against known moments; distributions found again from derivatives, and from values."""
    p, mu, deviation, shape, scale = draw.uniform(5, low=0.4, high=0.8).tolist()
    table = [
        (lambda t: bernoulli_mgf(t, p), stats.bernoulli(p)),
        (lambda t: binomial_mgf(t, 7, p), stats.binom(7, p)),
        (lambda t: poisson_mgf(t, shape), stats.poisson(shape)),
        (lambda t: gamma_mgf(t, shape, scale), stats.gamma(shape, scale=scale)),
        (lambda t: normal_mgf(t, mu, deviation**2), stats.norm(mu, deviation)),
    ]
    first = torch.stack([derivatives_at_zero(mgf, 2) for mgf, _ in table])
    moments = [(start, law.mean(), law.mean() ** 2 + spread * law.var()) for _, law in table]
    # On four atoms anywhere on the line, found again from what the function is next to 0.
    places, masses = (0.5 + draw.uniform(10, 4)).cumsum(1) - 3, draw.uniform(10, 4).softmax(-1)
    hidden = [FiniteDistribution(x[:, None], w) for x, w in zip(places, masses, strict=True)]
    higher = torch.stack([derivatives_at_zero(lambda t, law=law: law.mgf(t[None]), 7) for law in hidden])
    powers = torch.einsum("la,lak->lk", masses, places[..., None] ** torch.arange(8))
    t, x = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None], draw.normal(20)
    again = torch.stack([law_with_moments(row[:known]).mgf(t) for row in higher])
    found = [whole_number_masses(mgf, 64) for mgf, _ in table[:3]]
    plane = FiniteDistribution(draw.normal(6, 2), draw.normal(6).softmax(-1))
    origin = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    return all_of(
        close(first, torch.tensor(moments, dtype=torch.float64)),
        close(higher, powers, scale=powers.abs().amax(-1, keepdim=True)),
        # The equations that give back four atoms have a condition of some 1e5.
        close(again, torch.stack([law.mgf(t) for law in hidden]), within=1e-9),
        close(torch.stack(found), torch.stack([torch.tensor(law.pmf(range(64))) for _, law in table[:3]]), scale=1.0),
        close(density_of(table[4][0], x), table[4][1].pdf(x), scale=1.0, ulps=256),
        close(torch.autograd.grad(plane.mgf(origin), origin)[0], plane.mean, scale=1.0, detail="of two variables"),
    )


def success(p):
    return p


def failure(p):
    return 1 - p


@claim("mgf.bernoulli")
@lie("success and failure change places", chance=failure)
@lie("the one is lost, pe^t - p", one=0.0)
def the_bernoulli_function_is_a_sum_over_two_outcomes(draw, chance=success, one=1.0):
    """The formula against the expectation over the two outcomes, for many t and p."""
    p, t = draw.uniform(50), draw.uniform(50, low=-3.0, high=3.0)
    outcomes = torch.tensor([0.0, 1.0]).double()[:, None].expand(50, 2, 1)
    exact = FiniteDistribution(outcomes, torch.stack([1 - p, p], -1)).mgf(t[:, None])
    return close(chance(p) * t.exp() + one - chance(p), exact)


@claim("mgf.normal")
@lie("the deviation σ stands for the variance", power=1.0)
@lie("the half is dropped", half=1.0)
@lie("the mean is counted twice", times=2.0)
def the_normal_function_is_exponential_in_a_quadratic(draw, power=2.0, half=0.5, times=1.0):
    """The formula against the integral of e^{tx} over the normal density, for random means and deviations."""
    found, exact = [], []
    for _ in range(6):
        mu, sigma = draw.uniform(2, low=0.4, high=0.8).tolist()
        t = draw.uniform(3, low=-2.0, high=2.0)
        found.append(torch.exp(times * mu * t + half * sigma**power * t**2))
        exact.append(normal(mu, sigma).mgf(t))
    return close(torch.stack(found), torch.stack(exact))


def added_over_trials(t, n, p):
    """The Bernoulli functions of the trials added up."""
    return n * bernoulli_mgf(t, p)


@claim("mgf.binomial")
@lie("the Bernoulli functions of the trials are added", mgf=added_over_trials)
def the_binomial_function_is_a_power(draw, mgf=binomial_mgf):
    """The formula against the finite sum over the numbers of successes, up to ten trials."""
    found, exact = [], []
    for n in range(11):
        p, t = float(draw.uniform(1, low=0.1, high=0.9)), draw.uniform(5, low=-2.0, high=2.0)
        masses = torch.tensor(stats.binom.pmf(range(n + 1), n, p))
        found.append(mgf(t, n, p))
        exact.append(on_numbers(range(n + 1), masses).mgf(t[:, None]))
    return close(torch.stack(found), torch.stack(exact), ulps=1024)  # the other library's masses, to 1e-13


@claim("mgf.gamma")
@lie("the constant is 1/2, so that the function is not 1 at 0", constant=0.5)
@lie("the second parameter is a rate", exponent=-1.0)
@lie("the function is finite up to 2/β", border=2.0)
def the_gamma_function_is_a_power_up_to_one_over_the_scale(draw, constant=1.0, exponent=1.0, border=1.0):
    """The formula against the integral of e^{tx} over the gamma density; from t = 1/scale on there is none."""
    found, exact, finite, starts = [], [], [], []
    for _ in range(6):
        shape, scale = draw.uniform(2, low=1.2, high=2.5).tolist()
        t = draw.uniform(3, low=-2.0, high=0.8) / scale
        found.append((constant - scale**exponent * t).clamp(min=0.0) ** -shape)  # infinite where there is none
        exact.append(gamma(shape, scale).mgf(t))
        starts.append(constant**-shape)
        finite.append([has_integral(shape, scale, border / scale * near) for near in (1 - 1e-6, 1.0, 1 + 1e-6)])
    return all_of(
        close(starts, 1.0, detail="at t = 0"),
        close(torch.stack(found), torch.stack(exact), ulps=4096),
        exactly(finite, [[True, False, False]] * 6),
    )


def has_integral(shape, scale, t):
    """Whether e^{tx} has an expectation; its exponent is added up first, lest the density alone vanish far out."""
    try:
        absolute_integral(lambda x: torch.exp((shape - 1) * x.log() - x / scale + t * x), 0.0)
    except ValueError:
        return False
    return True


def without_t(t, rate):
    """e^λ e^{-(1-λ)}, in which t does not occur."""
    return torch.full_like(t, math.exp(rate) * math.exp(-(1 - rate)))


@claim("mgf.poisson")
@lie("e^λ e^{-(1-λ)}, which does not depend on t", mgf=without_t)
@lie("the one in the exponent is lost", one=0.0)
def the_poisson_function_is_a_double_exponential(draw, mgf=poisson_mgf, one=1.0):
    """The formula against the sum over the first 200 numbers, whose rest is below rounding."""
    found, exact = [], []
    for _ in range(10):
        rate, t = float(draw.uniform(1, low=0.5, high=3.0)), draw.uniform(5, low=-2.0, high=1.5)
        masses = torch.tensor(stats.poisson.pmf(range(200), rate))
        found.append(mgf(t, rate) * math.exp(rate * (1 - one)))
        exact.append(on_numbers(range(200), masses).mgf(t[:, None]))
    return close(torch.stack(found), torch.stack(exact), ulps=1024)


@claim("mgf.linear_combination")
@lie("the functions are added", combine=torch.sum)
@lie("the variables need not be independent: X₁ = X₂", independent=False)
@lie("the coefficients are left out", power=0.0)
def the_function_of_an_independent_sum_is_a_product(draw, combine=torch.prod, independent=True, power=1.0):
    """Three random distributions: that of their weighted sum, atom by atom, against the product of functions."""
    first, second, third = (FiniteDistribution(draw.normal(4, 1), draw.normal(4).softmax(-1)) for _ in range(3))
    a = draw.uniform(3, low=0.4, high=0.9)
    second = second if independent else first
    scaled = [law.affine(c[None, None]) for law, c in zip((first, second, third), a, strict=True)]
    pair = scaled[0].plus(scaled[1]) if independent else first.affine((a[0] + a[1])[None, None])
    t = draw.uniform(20, 1, low=-1.0, high=1.0)
    functions = torch.stack([law.mgf(c * t) for law, c in zip((first, second, third), a**power, strict=True)])
    return close(combine(functions, 0), pair.plus(scaled[2]).mgf(t))
