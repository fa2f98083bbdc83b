"""Calculus of one and several variables: elementary derivatives, series, bounds, Hessians, the score."""

import functools
import math
from fractions import Fraction

import numpy
import sympy
import torch
from torch.autograd.functional import hessian, jacobian
from torch.distributions import Bernoulli, Categorical, Normal

from lemmata.foundations.matrix_calculus.claims.derivatives import central_differences
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie, symbolic


def grid(low, high, count):
    return torch.linspace(low, high, count, dtype=torch.float64)


def slope_of(function, x):
    """Autograd's derivative of a function of one number, at every entry of x."""
    return jacobian(lambda x: function(x).sum(), x)


@claim("calculus.abs_derivative")
@lie("the derivative is x/|x|^2", exponent=2.0)
@lie("at 0 slopes up to 1.1 touch from below", steepest=1.1)
def the_absolute_value_has_its_sign_as_slope(draw, exponent=1.0, steepest=1.0):
    """Away from 0 against differences; at 0 all lines that stay below |y|, of which the steepest touch it."""
    sizes = torch.cat([grid(0.001, 3, 40), torch.tensor([1e-150, 1e150], dtype=torch.float64)])
    x = torch.cat([-sizes, sizes])
    step = x.abs() / 2  # |x| is linear on either side of 0: differences that stay there are slopes
    differences = ((x + step).abs() - (x - step).abs()) / (2 * step)
    y = grid(-2, 2, 40)  # without 0, where every line touches
    lines = grid(-steepest, steepest, 9)[:, None] * y
    return all_of(
        close(x / x.abs() ** exponent, differences),
        at_least(y.abs().expand(9, 40), lines, attained=True),
    )


@claim("calculus.trig_derivatives")
@lie("the derivative of the cosine is the sine", sign=1)
@lie("the derivative of the sine is the sine", slope=torch.sin)
def sine_and_cosine_differentiate_into_one_another(draw, sign=-1, slope=torch.cos):
    """Against central differences on a grid."""
    x, step = grid(-7, 7, 57), 1e-5

    def differences(f):
        return (f(x + step) - f(x - step)) / (2 * step)

    # Off by the step squared over 6, 2e-11, and by rounding of x and of the values over the step, some 1e-10.
    return all_of(
        close(slope(x), differences(torch.sin), within=1e-9),
        close(sign * torch.sin(x), differences(torch.cos), within=1e-9),
    )


@claim("calculus.quotient_rule")
@lie("the terms of the numerator change places", sign=-1)
@lie("the denominator is not squared", exponent=1)
def a_quotient_differentiates_by_the_rule(draw, sign=1, exponent=2):
    """In symbols for two pairs of functions, and on a grid against autograd for three, one with a negative divisor."""

    def rule(f, df, g, dg):
        return sign * (df * g - f * dg) / g**exponent

    t, x = sympy.Symbol("t", positive=True), grid(-3, 3, 61)
    written = [(t**3, t + 1), (sympy.exp(t), t)]
    run = [(torch.sin, torch.exp), (lambda x: x**3, lambda x: 1 + x**2), (torch.exp, lambda x: x - 4)]
    return all_of(
        *(symbolic(rule(f, sympy.diff(f, t), g, sympy.diff(g, t)), sympy.diff(f / g, t)) for f, g in written),
        *(
            close(rule(f(x), slope_of(f, x), g(x), slope_of(g, x)), slope_of(lambda x, f=f, g=g: f(x) / g(x), x))
            for f, g in run
        ),
    )


@functools.cache
def integrals():
    """Ten pairs: the integral of u dv found directly, the boundary term, and the integral of v du."""
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
        boundary = (u * v).subs(t, high) - (u * v).subs(t, low)
        found.append((direct, boundary, sympy.integrate(v * sympy.diff(u, t), (t, low, high))))
    return found


@claim("calculus.integration_by_parts")
@lie("the remaining integral is added", sign=1)
@lie("the boundary term is left out", boundary=0)
def an_integral_moves_to_the_other_factor(draw, sign=-1, boundary=1):
    """Polynomials times exponentials, sines and logarithms: the direct integral against the boundary and the rest."""
    return all_of(*(symbolic(direct, boundary * ends + sign * rest) for direct, ends, rest in integrals()))


@claim("calculus.geometric_series")
@lie("the sum is a/(1+r)", sign=1.0)
@lie(
    "the sum holds up to r = 1",
    regime="below 1 every ratio will do",
    loose="a shorter range is part of it",
    largest=1.0,
)
@lie("the finite sum has one term more", extra=1)
def a_geometric_series_sums_to_first_over_one_minus_ratio(draw, sign=-1.0, largest=0.95, extra=0):
    """A trillion terms added up by doubling, for ratios up to nearly 1; finite sums term by term in fractions."""
    nearly = torch.tensor([2.0**-20 - 1, 1 - 2.0**-20]).double()
    ratio, first = torch.cat([grid(-0.95, largest, 37), nearly]), draw.normal(39)
    total, power = first, ratio
    for _ in range(40):  # the first 2n terms are the first n, and these once more times r^n
        total, power = total + power * total, power * power
    finite = []
    for r in [Fraction(k, 7) for k in range(-21, 22)]:
        a = Fraction(int(draw.integers(1, 9, 1)), 3)
        for n in range(9):
            formula = n * a if r == 1 else a * (1 - r**n) / (1 - r)
            finite.append(sum(a * r**k for k in range(n + extra)) == formula)
    return all_of(
        # Multiplied out, for at 1 nothing can be divided. A rounding of the power doubles with every squaring until the
        # power vanishes: some 20 times at these ratios.
        close((1 + sign * ratio) * total, first, scale=first.abs(), condition=2.0**20),
        always(finite, detail="finite sums, in fractions"),
    )


@claim("calculus.log1p")
@lie("log(1 + x) is at least x", upper=at_least)
@lie("log(1 + x) is at most 0.9 x", slope=0.9)
@lie("log(1 + x) is at least x - 0.45 x^2 for x >= 0", half=0.45, loose="a larger factor makes a lower bound lower")
@lie("the second-order term is x^2", limit=1.0)
def the_logarithm_stays_below_its_tangent(draw, upper=at_most, slope=1.0, half=0.5, limit=0.5):
    """The bounds from next to -1 up to 1e100, attained at 0; and the ratio of the gap to x^2 as x goes to 0."""
    extreme = torch.tensor([1e-12 - 1, -1e-300, 1e100], dtype=torch.float64)
    x = torch.cat([grid(-0.99, 10, 1100), grid(-0.01, 0.01, 101), extreme])
    positive, negative = x[x >= 0], x[x < 0]
    small = 10.0 ** -torch.arange(1, 7).double()
    return all_of(
        upper(torch.log1p(x), slope * x, attained=True),
        at_least(torch.log1p(positive), positive - half * positive**2, attained=True),
        at_least(torch.log1p(negative), negative / (1 + negative), attained=True),
        # The next term of the ratio is x/3; 1e-9 is rounding at 1e-6.
        close((small - torch.log1p(small)) / small**2, limit, within=small / 3 + 1e-9),
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
    """The inequality from -700 to 1e8, attained at 0; and its powers for epsilon up to 1 and n up to a million."""
    x = torch.cat([grid(-20, 20, 4001), torch.tensor([-700.0, -1e-8, 1e-8, 1e8]).double()])
    n = torch.cat([torch.arange(1, 201), torch.tensor([10**6])])[:, None]
    share = torch.cat([grid(0, 1, 101), torch.tensor([1e-6]).double()])
    reach = grid(-1, highest, 41)
    return all_of(
        at_most(1 - x, torch.exp(-rate * x), attained=True),
        at_most((1 - share) ** n, torch.exp(-steeper * n.double() * share), attained=True),
        at_most((1 - reach) ** n[:20], torch.exp(-n[:20] * reach)),
    )


def its_values(values, points):
    return values


def the_points(values, points):
    return points


def maximisers(values):
    """Every place where the largest value is taken, ties included."""
    return values == values.amax(dim=-1, keepdim=True)


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
    best = maximisers(values)
    # The floor of v/8 - 1/1000 is 0 for every value: a map that does not decrease, and makes every point a maximiser.
    floored = maximisers(torch.floor(values / 8 - 0.001))
    return all_of(
        exactly(maximisers(bent), best),
        *(exactly(maximisers(f(values)), best) for f in (torch.exp, lambda v: v**3, torch.log, torch.atan)),
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
    """Gradients and Hessians against differences of values and of gradients; Peano's mixed derivatives at 0."""

    def second_derivatives(function, x):
        return central_differences(lambda x: jacobian(function, x), x, step=1e-5)

    # Differences are off by 1e-10 times fourth derivatives of some 100, and by rounding over the step, 1e-11.
    parts = []
    for function, x in functions(draw):
        second, gradient = second_derivatives(function, x), jacobian(function, x)
        parts += [
            close(second, second.mT, within=1e-6),
            close(hessian(function, x), factor * second, within=1e-6),
            close(gradient, central_differences(function, x), within=1e-6),
        ]
    [(corner, zero)] = peano(draw)
    mixed = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return all_of(*parts, close(second_derivatives(corner, zero), mixed, within=1e-6))


def laws(draw):
    """Parameters, the probabilities or densities of some points written out, and torch's log-densities of them."""
    outcomes, classes, points = torch.tensor([0.0, 1.0]).double(), torch.arange(5), draw.normal(7)

    def bell(theta):
        mean, deviation = theta
        return torch.exp(-(((points - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))

    return [
        (draw.uniform(low=0.2, high=0.8), lambda p: torch.stack([1 - p, p]), lambda p: Bernoulli(p).log_prob(outcomes)),
        (
            draw.normal(5),
            lambda logits: logits.exp() / logits.exp().sum(),
            lambda logits: Categorical(logits=logits).log_prob(classes),
        ),
        (draw.uniform(2, low=0.5, high=1.5), bell, lambda theta: Normal(*theta).log_prob(points)),
    ]


@claim("calculus.log_trick")
@lie("the density is left out: its gradient is the score", power=0.0)
@lie(
    "the support may move with the parameter",
    moved=1.0,
)
def densities_differentiate_through_their_logarithm(draw, power=1.0, moved=0.0):
    """Three densities written out, with the scores of torch's laws; means of squares, on the line and an interval."""
    parts = []
    for theta, density, log_density in laws(draw):
        p = density(theta).reshape(-1, *[1] * theta.ndim)
        parts.append(close(p**power * jacobian(log_density, theta), jacobian(density, theta)))
    # E[x^2] = mean^2 + deviation^2. Equal steps of at most half a deviation integrate a Gaussian up to rounding.
    theta, x = draw.uniform(2, low=0.5, high=1.5), grid(-20, 20, 161)
    p, score = Normal(*theta).log_prob(x).exp(), jacobian(lambda theta: Normal(*theta).log_prob(x), theta)
    gradient = 0.25 * (x**2 * p**power) @ score
    return all_of(*parts, close(gradient, 2 * theta, ulps=1024), close(*on_an_interval(theta[0], moved, power)))


def on_an_interval(theta, moved, power):
    """The derivative of E[x²] under p(x) ~ exp(-θx) on [0, 2 + moved θ]: by the score, and by that of the integral."""
    nodes, weights = (torch.as_tensor(part) for part in numpy.polynomial.legendre.leggauss(24))

    def moment(theta, degree):
        half = (2 + moved * theta) / 2
        x = half * (1 + nodes)
        return (half * weights * x**degree * torch.exp(-theta * x)).sum()

    half = (2 + moved * theta) / 2
    x, p = half * (1 + nodes), torch.exp(-theta * half * (1 + nodes)) / moment(theta, 0)
    score = jacobian(lambda theta: -theta * x - moment(theta, 0).log(), theta)
    by_integral = jacobian(lambda theta: moment(theta, 2) / moment(theta, 0), theta)
    return (half * weights * x**2 * p**power * score).sum(), by_integral
