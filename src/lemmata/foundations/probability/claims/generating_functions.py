"""Moment generating functions: the table of the usual distributions, what derivatives at 0 give, and sums."""

import math

import torch
from scipy import stats

from lemmata.foundations.probability.claims.densities import gamma, normal
from lemmata.foundations.probability.claims.finite_laws import FiniteDistribution
from lemmata.foundations.probability.generating_functions import (
    bernoulli_mgf,
    binomial_mgf,
    gamma_mgf,
    mgf_of_sum,
    moments_from_mgf,
    normal_mgf,
    poisson_mgf,
)
from lemmata.judge import all_of, claim, close, exactly, lie


def on_numbers(values, weights):
    """The distribution of a number."""
    return FiniteDistribution(torch.as_tensor(values, dtype=torch.float64)[:, None], torch.as_tensor(weights))


def law_with_moments(moments):
    """The distribution on half as many atoms with these moments: the atoms are eigenvalues, the weights follow."""
    count = len(moments) // 2
    hankel = moments[: 2 * count].unfold(0, count, 1)  # entry (i, j) is moment i + j
    root = torch.linalg.cholesky(hankel[:count])
    shifted = torch.linalg.solve_triangular(root, hankel[1 : count + 1], upper=False)
    shifted = torch.linalg.solve_triangular(root, shifted.mT, upper=False)
    atoms, vectors = torch.linalg.eigh((shifted + shifted.mT) / 2)
    return FiniteDistribution(atoms[:, None], vectors[0].square() / vectors[0].square().sum())


@claim("mgf.definition")
@lie("the function is 0 at 0", start=0.0)
@lie("the derivatives are powers of the mean", spread=0.0)
@lie("three moments determine the distribution", loose="more derivatives tell no more", known=4)
def derivatives_at_zero_are_the_moments(draw, start=1.0, spread=1.0, known=8):
    """Derivatives of the five functions of the table against known moments; distributions found again from theirs."""
    p, mu, variance, shape, scale = draw.uniform(5, low=0.2, high=0.8).tolist()
    table = {
        (lambda t: bernoulli_mgf(t, p)): (p, p * (1 - p)),
        (lambda t: normal_mgf(t, mu, variance)): (mu, variance),
        (lambda t: binomial_mgf(t, 7, p)): (7 * p, 7 * p * (1 - p)),
        (lambda t: gamma_mgf(t, shape, scale)): (shape * scale, shape * scale**2),
        (lambda t: poisson_mgf(t, shape)): (shape, shape),
    }
    found = torch.stack([moments_from_mgf(mgf, 2) for mgf in table])
    known_moments = [(start, mean, mean**2 + spread * square) for mean, square in table.values()]
    law = FiniteDistribution(draw.normal(6, 1), draw.normal(6).softmax(-1))
    higher = torch.stack([law.expectation(lambda x, k=k: x[:, 0] ** k) for k in range(6)])
    # On four atoms anywhere on the line, found again from what the function is next to 0.
    t = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]
    places, masses = (0.5 + draw.uniform(10, 4)).cumsum(1) - 3, draw.uniform(10, 4).softmax(-1)
    hidden = [FiniteDistribution(x[:, None], w) for x, w in zip(places, masses, strict=True)]
    again = [law_with_moments(moments_from_mgf(lambda t, law=law: law.mgf(t[None]), known - 1)) for law in hidden]
    plane = FiniteDistribution(draw.normal(6, 2), law.weights)
    origin = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    return all_of(
        close(found, torch.tensor(known_moments, dtype=torch.float64)),
        close(moments_from_mgf(lambda t: law.mgf(t[None]), 5), higher, scale=higher.abs().max()),
        # The equations that give back four atoms have a condition of some 1e5.
        close([law.mgf(t) for law in again], torch.stack([law.mgf(t) for law in hidden]), within=1e-9),
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
    return close(bernoulli_mgf(t, chance(p)) + one - 1, exact)


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
        found.append(normal_mgf(t, times * mu, 2 * half * sigma**power))
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
    """The formula against the integral of e^{tx} over the gamma density; from t = 1/scale on it is infinite."""
    parts = []
    for _ in range(6):
        shape, scale = draw.uniform(2, low=1.2, high=2.5).tolist()
        t = draw.uniform(3, low=-2.0, high=0.8) / scale
        # (c - βt)^-α = c^-α (1 - (β/c) t)^-α, so that another constant can be given to the shipped function.
        found = constant**-shape * gamma_mgf(t, shape, scale**exponent / constant)
        around = border / scale * torch.tensor([1 - 1e-9, 1 + 1e-9], dtype=torch.float64)
        parts += [
            close(found, gamma(shape, scale).mgf(t), ulps=4096),
            exactly(gamma_mgf(around, shape, scale).isfinite(), torch.tensor([True, False])),
        ]
    return all_of(*parts)


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


def added(mgfs, coefficients):
    """The sum of the functions."""
    return lambda t: sum(mgf(a * t) for mgf, a in zip(mgfs, coefficients, strict=True))


@claim("mgf.linear_combination")
@lie("the functions are added", combine=added)
@lie("the variables need not be independent: X₁ = X₂", independent=False)
@lie("the coefficients are left out", power=0.0)
def the_function_of_an_independent_sum_is_a_product(draw, combine=mgf_of_sum, independent=True, power=1.0):
    """Three random distributions: that of their weighted sum, atom by atom, against the product of functions."""
    first, second, third = (FiniteDistribution(draw.normal(4, 1), draw.normal(4).softmax(-1)) for _ in range(3))
    a = draw.uniform(3, low=0.4, high=0.9)
    second = second if independent else first
    scaled = [law.affine(c[None, None]) for law, c in zip((first, second, third), a, strict=True)]
    pair = scaled[0].plus(scaled[1]) if independent else first.affine((a[0] + a[1])[None, None])
    functions = [lambda t, law=law: law.mgf(t[:, None]) for law in (first, second, third)]
    t = draw.uniform(20, low=-1.0, high=1.0)
    return close(combine(functions, a**power)(t), pair.plus(scaled[2]).mgf(t[:, None]))
