"""Calculus of one and several variables: elementary derivatives, series, bounds, Hessians, the score."""

import functools
import math

import sympy
import torch

from lemmata.foundations.activations.claims.activations import grid
from lemmata.foundations.analysis.elementary_bounds import log1p_bounds, power_bound
from lemmata.foundations.analysis.elementary_derivatives import (
    abs_subdifferential,
    integrate_by_parts,
    quotient_derivative,
)
from lemmata.foundations.analysis.geometric_series import geometric_remainder, geometric_sum
from lemmata.foundations.analysis.maximisers import argmax_set
from lemmata.foundations.analysis.score_function import density_gradient, expectation_gradient, score_of
from lemmata.foundations.matrix_calculus.jacobians import differenced_jacobian, gradient_of, hessian_of
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of
from lemmata.judge import (
    all_of,
    always,
    at_least,
    at_most,
    claim,
    close,
    exactly,
    lie,
    symbolic,
)

ABSOLUTE = derivative_of("|x|")


@claim("calculus.abs_derivative")
@lie("the derivative is x/|x|^2", exponent=2.0)
@lie("at 0 slopes up to 1.1 touch from below", steepest=1.1)
def the_absolute_value_has_its_sign_as_slope(draw, exponent=1.0, steepest=1.0):
    """Away from 0 against differences, the sign being x/|x|; at 0 all lines that stay below, attained by the ends."""
    x = torch.cat([grid(-3, -0.001, 40), grid(0.001, 3, 40)])
    slopes = torch.stack([ABSOLUTE.at(point) for point in x])
    differences = torch.stack([differenced_jacobian(ABSOLUTE.function, point, step=1e-4) for point in x])
    y = grid(-2, 2, 41)
    # Lines through 0 below |y|: the steepest touch it everywhere on one side.
    lines = grid(-steepest, steepest, 9)[:, None] * y
    return all_of(
        close(slopes, x / x.abs() ** exponent),
        close(slopes, differences, within=1e-9),  # |x| is linear on either side: rounding 1e-16 over the step 1e-4
        at_least(y.abs().expand(9, 41), lines, attained=True),
        exactly(torch.cat(abs_subdifferential(torch.zeros(1).double())), torch.tensor([-steepest, steepest]).double()),
    )


@claim("calculus.trig_derivatives")
@lie("the derivative of the cosine is the sine", sign=1)
@lie("the derivative of the sine is the sine", slope=torch.sin)
def sine_and_cosine_differentiate_into_one_another(draw, sign=-1, slope=torch.cos):
    """Both rows of the table on a grid, against the formulas and against differences."""
    sine, cosine = derivative_of("sin(x)"), derivative_of("cos(x)")
    x = grid(-7, 7, 57)
    slopes = [torch.stack([row.at(point) for point in x]) for row in (sine, cosine)]
    differences = [[differenced_jacobian(row.function, point, step=1e-5) for point in x] for row in (sine, cosine)]
    return all_of(
        close(slopes[0], slope(x), scale=1.0),
        close(slopes[1], sign * torch.sin(x), scale=1.0),
        # Off by the step squared over 6, and by rounding over the step.
        close(torch.stack(slopes), torch.stack([torch.stack(row) for row in differences]), within=1e-10),
    )


@claim("calculus.quotient_rule")
@lie("the terms of the numerator change places", sign=-1)
@lie("the denominator is not squared", exponent=1)
def a_quotient_differentiates_by_the_rule(draw, sign=1, exponent=2):
    """Symbolically for two pairs of functions; and the row of the table against autograd."""
    t = sympy.Symbol("t", positive=True)
    pairs = [(t**3, t + 1), (sympy.exp(t), t)]
    parts = []
    for f, g in pairs:
        rule = quotient_derivative(f, sympy.diff(f, t), g, sympy.diff(g, t))
        parts.append(symbolic(sign * rule * g ** (2 - exponent), sympy.diff(f / g, t)))
    row = derivative_of("f(x) / g(x)")
    for _ in range(5):
        x, f, g = row.example(generator=draw.generator).values()
        expected = gradient_of(lambda x, f=f, g=g: f(x) / g(x), x)
        parts.append(close(row.at(x, f=f, g=g), expected, scale=1 + expected.abs()))
    return all_of(*parts)


@functools.cache
def integrals():
    """Ten pairs with the integral of u dv found directly, and both pieces of it by parts."""
    t = sympy.Symbol("t", real=True)
    exp, sin, cos, log = sympy.exp, sympy.sin, sympy.cos, sympy.log
    pairs = [
        (t, exp(t), 0, 1),
        (t**2, exp(t), -1, 1),
        (t**3, exp(-t), 0, 2),
        (t, sin(t), 0, 1),
        (t**2, cos(t), 0, 2),
        (t, cos(2 * t), -1, 2),
        (log(t), t, 1, 3),
        (log(t), t**3, 1, 2),
        (t**2, t**3, 0, 2),
        (exp(t), exp(2 * t), 0, 1),
    ]
    found = []
    for u, v, low, high in pairs:
        direct = sympy.integrate(sympy.expand(u * sympy.diff(v, t)), (t, low, high))
        found.append((direct, integrate_by_parts(u, v, t, low, high)))
    return found


@claim("calculus.integration_by_parts")
@lie("the remaining integral is added", sign=1)
@lie("the boundary term is left out", boundary=0)
def an_integral_moves_to_the_other_factor(draw, sign=-1, boundary=1):
    """Polynomials times exponentials, sines and logarithms: the direct integral against the boundary and the rest."""
    return all_of(*(symbolic(direct, boundary * piece.boundary + sign * piece.rest) for direct, piece in integrals()))


@claim("calculus.geometric_series")
@lie("the sum is a/(1+r)", sign=1.0)
@lie("the sum holds up to r = 1", raises=ValueError, largest=1.0)
@lie("the finite sum has one term more", extra=1)
def a_geometric_series_sums_to_first_over_one_minus_ratio(draw, sign=-1.0, largest=0.95, extra=0):
    """Partial sums added up term by term, with the exact remainder; finite sums at r = 1, next to it and beyond."""
    nearly = 1 - 2.0**-20
    ratio, first = torch.cat([grid(-0.95, largest, 37), torch.tensor([-nearly, nearly]).double()]), draw.normal(39)
    total = geometric_sum(first, ratio)
    parts = [close(total, first / (1 + sign * ratio), scale=total.abs())]
    for terms in (0, 1, 2, 7, 40):
        added = sum((first * ratio**k for k in range(terms + extra)), torch.zeros(39).double())
        scale = first.abs() / (1 - ratio.abs())
        parts += [
            close(added + geometric_remainder(first, ratio, terms), total, scale=scale),
            close(geometric_sum(first, ratio, terms), added, scale=scale),
        ]
    wide = torch.tensor([-3.0, -1.0, 1 - 1e-12, 1.0, 1 + 1e-9, 1.2, 1.5, 2.0], dtype=torch.float64)
    added = torch.stack([2.5 * wide**k for k in range(6)]).sum(0)
    return all_of(*parts, close(geometric_sum(2.5, wide, terms=6), added, scale=added.abs()))


@claim("calculus.log1p")
@lie("log(1 + x) is at least x", upper=at_least)
@lie("log(1 + x) is at most 0.9 x", slope=0.9)
@lie("log(1 + x) is at least x - 0.45 x^2 for x >= 0", half=0.45, loose="a larger factor makes a lower bound lower")
@lie("the second-order term is x^2", limit=1.0)
def the_logarithm_stays_below_its_tangent(draw, upper=at_most, slope=1.0, half=0.5, limit=0.5):
    """The bounds from next to -1 up to 1e100, attained at 0; and the ratio of the gap to x^2 as x goes to 0."""
    extreme = torch.tensor([1e-12 - 1, 1e100], dtype=torch.float64)
    x = torch.cat([grid(-0.99, 10, 1100), grid(-0.01, 0.01, 101), extreme])
    lower_bound, upper_bound = log1p_bounds(x)
    positive = x[x >= 0]
    small = 10.0 ** -torch.arange(1, 7).double()
    ratio = (torch.log1p(small) - small).abs() / small**2
    return all_of(
        upper(torch.log1p(x), slope * upper_bound, attained=True),
        at_least(torch.log1p(x), lower_bound),
        at_least(torch.log1p(positive), positive - half * positive**2, attained=True),
        close(lower_bound[x >= 0], positive - positive**2 / 2),
        # Below 0 the upper bound is turned round: log(1+x) = -log(1 - x/(1+x)) >= x/(1+x) = 1 - 1/(1+x).
        close(lower_bound[x < 0], 1 - 1 / (1 + x[x < 0]), scale=1 / (1 + x[x < 0])),
        close(ratio, limit, within=small / 3 + 1e-9),  # the next term of the ratio is x/3; 1e-9 is rounding at 1e-6
    )


@claim("calculus.one_minus_x_exp")
@lie(
    "the power form holds for every real epsilon",
    regime="up to 1.278 an even power of epsilon - 1 still stays below",
    loose="a shorter range is part of it",
    highest=3.0,
)
@lie("1 - x stays below exp(-1.1 x)", rate=1.1)
@lie("the power form has exp(-1.01 n epsilon)", loose="a slower fall is a larger bound", steeper=1.01)
def one_minus_x_stays_below_its_exponential(draw, highest=1.0, rate=1.0, steeper=1.0):
    """The inequality on a grid, attained at 0; and its powers for epsilon up to 1 and n up to a million."""
    x = torch.cat([grid(-20, 20, 4001), torch.tensor([-700.0, -1e-8, 1e-8, 1e8]).double()])
    n = torch.cat([torch.arange(0, 201), torch.tensor([10**6])])[:, None]
    epsilon = torch.cat([grid(0, 1, 101), torch.tensor([1e-6]).double()])
    reach = grid(-1, highest, 41)
    return all_of(
        at_most(1 - x, torch.exp(-rate * x), attained=True),
        at_most((1 - epsilon) ** n, power_bound(epsilon, n) ** steeper, attained=True),
        at_most((1 - reach) ** n[:20], torch.exp(-n[:20] * reach)),
        close(power_bound(epsilon, 3), math.e ** -(3 * epsilon)),
    )


def its_values(values, points):
    return values


def the_points(values, points):
    return points


@claim("calculus.argmax_monotone")
@lie(
    "maps that merely do not decrease keep the set of maximisers",
    regime="with any positive slope the map is strictly increasing",
    loose="a steeper map is strictly increasing too",
    slope=0.0,
)
@lie("the objective may be left out", objective=the_points)
def strictly_increasing_maps_keep_all_maximisers(draw, slope=1.0, objective=its_values):
    """Values with ties, and several strictly increasing maps; the floor keeps the maximisers and adds some."""
    values = draw.integers(1, 9, 2, 25, 100).double()  # some 12 of 100 points share the maximum
    g = objective(values, draw.normal(2, 25, 100))
    middle = 4.5
    bent = g.clamp(max=middle) + slope * (g - middle).clamp(min=0)  # above the middle it has this slope
    best = argmax_set(values)
    # The floor of v/8 - 1/1000 is 0 for every value: a map that does not decrease, and makes every point a maximiser.
    floored = argmax_set(torch.floor(values / 8 - 0.001))
    return all_of(
        exactly(argmax_set(bent), best),
        *(exactly(argmax_set(f(values)), best) for f in (torch.exp, lambda v: v**3, torch.log, torch.atan)),
        exactly(best, values == values.max(dim=-1).values[..., None]),
        always(floored[best], detail="maximisers are kept"),
        always((floored & ~best).any(dim=-1), detail="and others are added"),
    )


def smooth(draw):
    """Functions of one and of five variables, twice continuously differentiable, with a point for each."""
    A, w = draw.normal(5, 5), draw.normal(5)
    functions = (
        lambda x: x @ A @ x,
        lambda x: (A @ x).sin().sum(),
        lambda x: torch.logsumexp(A @ x, dim=0),
        lambda x: (w @ x) ** 3 * x[0],
        lambda x: torch.exp(-(x @ x)) * (1 + w @ x),
    )
    points = [(function, draw.normal(5) / 2) for function in functions]
    return [*points, (lambda x: (3 * x).sin().sum(), draw.normal(1))]


def peano(_draw):
    """xy(x^2 - y^2)/(x^2 + y^2) at 0: twice differentiable there, and not continuously."""

    def function(x):
        return x[0] * x[1] * (x[0] ** 2 - x[1] ** 2) / (x[0] ** 2 + x[1] ** 2)

    return [(function, torch.zeros(2, dtype=torch.float64))]


@claim("calculus.gradient_hessian")
@lie("the Hessian of every twice differentiable function is symmetric", functions=peano)
@lie("the Hessian is half of the second derivatives", factor=0.5)
def the_hessian_is_the_symmetric_jacobian_of_the_gradient(draw, functions=smooth, factor=1.0):
    """Differences of gradients, column by column, are symmetric; so is the Hessian, which they give again."""
    parts = []
    for function, x in functions(draw):
        n = len(x)
        second = differenced_jacobian(lambda x, f=function: gradient_of(f, x), x, step=1e-5)
        # Differences are off by 1e-10 times fourth derivatives of some 100, and by rounding over the step, 1e-11.
        parts.append(close(second, second.mT, within=1e-6))
        if not x.any():
            continue
        hessian, gradient = hessian_of(function, x), gradient_of(function, x)
        parts += [
            exactly((tuple(gradient.shape), tuple(hessian.shape)), ((n,), (n, n))),
            close(hessian, factor * second, within=1e-6),
            close(hessian, hessian.mT, ulps=1024),
            close(gradient, differenced_jacobian(function, x), within=1e-6),
        ]
    return all_of(*parts)


def log_densities(draw):
    """log-densities at fixed points as functions of the parameters: Bernoulli, softmax, Gaussian."""
    points, outcome = draw.normal(7), torch.tensor([0.0, 1.0], dtype=torch.float64)

    def bernoulli(theta):
        return outcome * torch.log(theta) + (1 - outcome) * torch.log1p(-theta)

    def gaussian(theta):
        mean, log_deviation = theta
        return -(((points - mean) / log_deviation.exp()) ** 2) / 2 - log_deviation - math.log(2 * math.pi) / 2

    return [
        (bernoulli, draw.uniform(low=0.2, high=0.8)),
        (lambda logits: logits.log_softmax(-1), draw.normal(5)),
        (gaussian, draw.normal(2) / 2),
        (lambda logits: logits.flatten().log_softmax(-1), draw.normal(2, 3)),
    ]


@claim("calculus.log_trick")
@lie("the density is left out: its gradient is the score", power=0.0)
def densities_differentiate_through_their_logarithm(draw, power=1.0):
    """Density times score against autograd, and so the gradients of expectations."""
    parts = []
    for log_density, theta in log_densities(draw):
        expected = torch.autograd.functional.jacobian(lambda t, f=log_density: f(t).exp(), theta)
        density = log_density(theta).exp().reshape(-1, *[1] * theta.ndim)
        values = draw.normal(len(density))
        by_values = gradient_of(lambda t, f=log_density, v=values: (v * f(t).exp()).sum(), theta)
        parts += [
            close(density**power * score_of(log_density, theta), expected),
            close(density_gradient(log_density, theta), expected),
            close(expectation_gradient(values, log_density, theta), by_values, scale=1.0),
        ]
    return all_of(*parts)
