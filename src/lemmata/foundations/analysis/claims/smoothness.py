"""Smoothness and approximation: Lipschitz constants, curvature, descent lemma, condition numbers, Taylor's formula."""

import math
from functools import partial

import numpy as np
import torch

from lemmata.foundations.activations import activation
from lemmata.foundations.analysis.claims.functions import (
    curvature_between,
    log_sum_exp,
    logistic,
    quadratic_bound_gap,
    sines,
    spectrum,
    tangent_gap,
)
from lemmata.foundations.analysis.curvature import smoothness, strong_convexity
from lemmata.foundations.analysis.function_values import batch_gradients, batch_hessians, batch_jacobians, batch_values
from lemmata.foundations.analysis.lipschitz_bounds import lipschitz
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import Figure, Line, all_of, at_least, at_most, claim, close, lie, slope_is


def stretching(f, x, y):
    """How much farther apart a map of numbers puts two of them, less what the rounding of two values may add to it."""
    distance = (x - y).abs()
    return ((f(x) - f(y)).abs() - 1e-14 * (x.abs() + 1)) / distance


@claim("smooth.lipschitz")
@lie("the sigmoid is 1/5-Lipschitz", sigmoid=0.2)
@lie("1 is the smallest constant of the softmax", softmax=1.0)
@lie("x² has one constant for all intervals", growth=0.0)
def a_lipschitz_map_never_stretches_by_more_than_its_constant(draw, sigmoid=0.25, softmax=0.5, growth=1.0):
    """Quotients over far and close pairs, and where they are largest; Jacobians of the softmax; x² on intervals."""
    # Far apart and ever closer, near 0 and far out; beside 0 and 20, where some have a kink or change their formula.
    x, step = draw.uniform(2000, low=-60.0, high=60.0), 10.0 ** -draw.uniform(2000, high=12.0)
    x[:500], x[500:800] = x[:500] / 10, torch.tensor([0.0, 20.0, -20.0]).double().repeat(100) - step[500:800] / 2
    y = torch.cat([draw.uniform(200, low=-60.0, high=60.0), x[200:] + step[200:]])
    functions = [activation("relu"), torch.abs, activation("tanh"), activation("sigmoid")]
    constants = [1.0, 1.0, 1.0, sigmoid]
    quotients = torch.stack([stretching(f, x, y) for f in functions])
    found = [lipschitz(f, (-6.0, 6.0), points=256).value for f in functions]
    logits = torch.cat([3 * draw.normal(500, 4), torch.tensor([[0.0, 0.0, -60.0, -60.0]], dtype=torch.float64)])
    norms = torch.linalg.matrix_norm(batch_jacobians(lambda t: torch.softmax(t, 0), logits), 2)
    radii = [1.0, 10.0, 100.0]
    squared = [lipschitz(lambda t: t**2, (-r, r), points=64).value for r in radii]
    return all_of(
        at_most(quotients, torch.tensor(constants, dtype=torch.float64)[:, None]),
        close(found, constants, within=1e-3),
        at_most(norms, softmax, attained=True),
        close(squared, [2 * r**growth for r in radii], within=[1e-3 * r for r in radii]),
        # torch's softplus becomes a straight line above 20, by a jump of 2e-9 that no constant survives.
        at_least(stretching(torch.nn.functional.softplus, x, y).max(), 100.0),
    )


def largest_size(eigenvalues):
    return eigenvalues.abs().max()


@claim("smooth.definition")
@lie("the largest eigenvalue alone decides", constant=torch.max)
@lie("the constant is half of the largest curvature", factor=0.5)
def a_smooth_function_has_a_lipschitz_gradient(draw, constant=largest_size, factor=1.0):
    """Quotients of gradients over pairs and along the top eigenvector, against the spectrum; the logistic loss."""
    x, y = draw.normal(1000, 4), draw.normal(1000, 4)
    parts = []
    small, large = (-1e-9, 0.0, 0.0, 1e-10), (1e9, -4e9, 1.0, 0.0)
    for values in ((-5.0, -1.0, 0.0, 1.0), (0.1, 0.5, 1.0, 3.0), (-100.0,) * 4, small, large):
        matrix = spectrum(draw, *values)
        f = QuadraticFunction(matrix, matrix @ draw.normal(4))
        predicted = factor * float(constant(torch.tensor(values, dtype=torch.float64)))
        along = f.eigenvectors[:, f.eigenvalues.abs().argmax()]
        quotients = torch.cat([curvature_between(f, x, y)[0], curvature_between(f, x[:1] + along, x[:1])[0]])
        parts += [
            at_most(quotients, predicted, attained=True, ulps=1024),
            close(smoothness(f).value, predicted, ulps=1024),
        ]
    # The loss of logistic regression bends most at 0, where the sigmoid is steepest.
    loss = logistic(draw, 0.0, features=4)
    sharpest = torch.linalg.eigh(batch_hessians(loss, torch.zeros(4, dtype=torch.float64)))
    bound = factor * sharpest.eigenvalues[-1]
    step = 1e-3 * sharpest.eigenvectors[:, -1]
    return all_of(
        *parts,
        at_most(curvature_between(loss, x, y)[0], bound),
        close(curvature_between(loss, step, -step)[0], bound, within=1e-5),
    )


def touching_from_above(half, reach):
    """The sine, the parabola that touches from above, and the one whose Hessian is taken on the way to each point."""
    line = torch.linspace(-3.0, 3.0, 61, dtype=torch.float64)
    at = torch.tensor(-0.8, dtype=torch.float64)
    tangent, squares = at.sin() + at.cos() * (line - at), (line - at) ** 2
    between = -torch.sin(at + reach / 3 * (line - at))
    lines = [
        Line(line, line.sin(), "sin"),
        Line(line, tangent + half * squares, f"tangent + {half:.3g} L(x - y)²"),
        Line(line, tangent + between * squares / 2, f"with the Hessian {reach / 3:.2g} of the way"),
    ]
    return Figure("The parabola of curvature L touches from above", "x", "f(x)", lines)


def falling_fourth_powers(x):
    return -(x**4).sum()


@claim("smooth.descent_lemma")
@lie("the parabola L/4 |x - y|² suffices", half=0.25)
@lie(
    "the Hessian at the first point gives equality",
    printed="003/1",
    regime="the point in between mostly lies near a third of the way",
    loose="a longer stretch holds it too",
    reach=0.0,
)
@lie("the parabola bounds the gradient's change without convexity, too", bent=falling_fourth_powers)
def a_parabola_of_curvature_l_touches_from_above(draw, half=0.5, reach=1.0, bent=log_sum_exp):
    """Random pairs of six functions, one with a bound proved by intervals; the converse; the Hessian in between."""
    x, y = draw.normal(2000, 3), draw.normal(2000, 3)
    data, labels = draw.normal(15, 3), draw.signs(15)
    lowest = torch.full((1, 3), -math.pi / 2, dtype=torch.float64)  # where the sine bends upwards most
    quadratic = QuadraticFunction(spectrum(draw, -4.0, 1.0, 2.0), draw.normal(3))

    def loss(w):
        return torch.nn.functional.softplus(-labels * (data @ w)).sum()

    def fit(w):  # a least-squares fit of one tanh unit: not convex
        return (torch.tanh(data[:4, 0] * w) - labels[:4]).square().sum() / 2

    largest = float(torch.linalg.eigvalsh(data.T @ data)[-1]) / 4
    gaps = [
        quadratic_bound_gap(f, pair[0], pair[1], 2 * half * bound)
        for f, pair, bound in (
            (quadratic, (x, y), 2.0),
            (loss, (x, y), largest),
            (log_sum_exp, (x, y), 0.5),
            (sines, (torch.cat([x, lowest + 0.1]), torch.cat([y, lowest])), 1.0),
            (fit, tuple(draw.uniform(2, 500, 1, low=-0.5, high=0.5)), smoothness(fit, (-0.5, 0.5), points=64).value),
            # The one-sided bound suffices: -x⁴ curves by at most 0, though no constant bounds it from below.
            (falling_fourth_powers, (x, y), 0.0),
        )
    ]
    top = quadratic.eigenvectors[:, -1]
    # Taylor and Lagrange: the curvature that would give equality is one that occurs between the points.
    first, second = draw.uniform(2, 200, 1, low=-2.0, high=2.0)
    needed = 2 * tangent_gap(sines, first, second) / (second - first)[:, 0].square()
    occurring = -torch.sin(first + reach * (second - first) * torch.linspace(0.0, 1.0, 201, dtype=torch.float64))
    return all_of(
        at_least(torch.cat(gaps), -1e-11).showing(touching_from_above(half, reach)),
        close(quadratic_bound_gap(quadratic, y + top, y, 2 * half * 2.0), torch.zeros_like(x[:, 0]), within=1e-11),
        # Both functions lie below their parabolas of curvature 1/2; the gradient of the convex one changes no faster.
        at_least(quadratic_bound_gap(bent, x, y, half), -1e-11),
        at_most(curvature_between(bent, x, y)[0], 0.5),
        at_least(needed, occurring.amin(1) - 1e-4),
        at_most(needed, occurring.amax(1) + 1e-4),
    )


def steepest_path(f, start, steps):
    """Gradient descent that goes as far as the function falls, from a start."""
    path = [start]
    for _ in range(steps):
        slope = batch_gradients(f, path[-1])
        bend = (slope @ f.matrix @ slope).clamp(min=1e-300)  # which is 0 with the slope, at the minimum
        path.append(path[-1] - (slope @ slope) / bend * slope)
    return torch.stack(path)


def condition_number(matrix):
    values = torch.linalg.svdvals(matrix)
    return values[0] / values[-1]


def least_over_largest(matrix):
    return 1 / condition_number(matrix)


@claim("analysis.condition_number")
@lie("the condition number is the least over the largest eigenvalue", number=least_over_largest)
@lie("relative errors grow by at most half of it", factor=0.5)
@lie("every step crosses the valley to the same height, whatever the condition number", one=0.0)
def the_condition_number_measures_unequal_curvatures(draw, number=condition_number, factor=1.0, one=1.0):
    """Spectra from equal to nearly singular, error amplification with its extreme case, and the zig-zag of descent."""
    parts = []
    for spread in (1.0, 1.5, 5.0, 50.0, 1e4, 1e8):
        values = spread ** (draw.uniform(4).sort().values - 1)
        values[0], values[-1] = 1 / spread, 1.0
        q = draw.orthogonal(4)
        matrix = 10.0 ** float(draw.uniform(low=-6.0, high=6.0)) * (q * values) @ q.T
        valley = QuadraticFunction((matrix + matrix.T) / 2)
        kappa, ratio = number(valley.matrix), smoothness(valley).value / strong_convexity(valley).value
        # The worst case: b along the steepest direction, its error along the flattest.
        b, change = (torch.cat([draw.normal(100, 4), worst[None]]) for worst in (q[:, -1], q[:, 0]))
        x, grown = torch.linalg.solve(matrix, b.T).T, torch.linalg.solve(matrix, change.T).T
        grown = grown.norm(dim=1) / x.norm(dim=1)
        exact = {"ulps": 1024, "condition": spread}  # of the least eigenvalue next to the largest
        # From the worst start, where the slope has equal parts along both directions; its height is that along one.
        heights = steepest_path(valley, spread * q[:, 0] + q[:, -1], 2) @ q[:, -1]
        turned = -(kappa - one) / (kappa + one)
        parts += [
            close([kappa, ratio], [spread, spread], **exact),
            at_most(grown, factor * kappa * change.norm(dim=1) / b.norm(dim=1), attained=True, ulps=1024 * spread),
            close(heights[1:], torch.stack([turned, turned**2]), scale=1.0, **exact),
        ]
    tall = draw.normal(6, 3)
    squares = torch.linalg.eigvalsh(tall.T @ tall)  # of the singular values
    return all_of(*parts, close(number(tall), (squares[-1] / squares[0]).sqrt(), ulps=1e4))


def nth_derivative(f, x, order):
    """The derivative of some order of an elementwise function, by autograd applied to itself."""
    x = x.detach().requires_grad_()
    found = f(x)
    for _ in range(order):
        (found,) = torch.autograd.grad(found.sum(), x, create_graph=True)
    return found.detach()


def taylor_remainder(f, at, x, degree):
    """The integral of f^(n+1)(t)/n! (x - t)^n, by Gauss's quadrature on either half of the way."""
    nodes, weights = (torch.as_tensor(part) for part in np.polynomial.legendre.leggauss(24))
    nodes, weights = torch.cat([nodes - 1, nodes + 1]) / 2, torch.cat([weights, weights]) / 2
    half = (x - at)[:, None] / 2
    t = at[:, None] + half * (1 + nodes)
    values = nth_derivative(f, t, degree + 1) / math.factorial(degree) * (x[:, None] - t) ** degree
    return (weights * half * values).sum(-1)


def with_the_power_inside(f, at, x, degree):
    """The power (x - t)^n gone into the argument of the derivative: an integral of f^(n+1)(x - t)/n!."""
    t = at[:, None] + (x - at)[:, None] * torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)
    return torch.trapezoid(nth_derivative(f, x[:, None] - t, degree + 1) / math.factorial(degree), t)


@claim("analysis.taylor")
@lie("the remainder integrates f^(n+1)(x - t)/n!", remainder=with_the_power_inside)
@lie("the polynomial has one term less", last=-1)
@lie("Lagrange's remainder is divided by n!", shift=0)
def taylors_polynomial_and_its_remainder_make_the_function(draw, remainder=taylor_remainder, last=0, shift=1):
    """Autograd's derivatives against the function, far and near, on both sides; one function has no derivative more."""
    at, x = torch.tensor([[0.25, 1.25, 0.25, 2.0], [1.25, 0.25, 0.251, 0.25]], dtype=torch.float64)
    between = torch.lerp(at[:, None], x[:, None], torch.linspace(0.0, 1.0, 101, dtype=torch.float64))

    def kinked(t, degree):  # its next derivative is a ramp that starts in the middle
        middle = ((at + x) / 2).reshape(-1, *[1] * (t.ndim - 1))
        return torch.relu(t - middle) ** (degree + 2)

    parts = []
    for degree in range(5):
        for f in (lambda t: torch.exp(2 * t), torch.sin, lambda t: 1 / (3 + t), partial(kinked, degree=degree)):
            rest = remainder(f, at, x, degree)
            terms = [nth_derivative(f, at, k) / math.factorial(k) * (x - at) ** k for k in range(degree + last + 1)]
            occurring = nth_derivative(f, between, degree + 1)
            scaled = occurring * (x - at)[:, None] ** (degree + 1) / math.factorial(degree + shift)
            parts += [
                close(sum(terms, rest), f(x), within=1e-12),
                at_least(rest, scaled.amin(1) - 1e-12),
                at_most(rest, scaled.amax(1) + 1e-12),
            ]
    return all_of(*parts)


def products_of_slopes(f, x):
    """First derivatives multiplied, in place of the second ones."""
    gradient = batch_gradients(f, x)
    return gradient[..., :, None] * gradient[..., None, :]


@claim("analysis.taylor_second_order")
@lie("the entries of H are products of first derivatives", hessian=products_of_slopes)
@lie("the quadratic term has no one half", half=1.0)
@lie("the error is of second order", order=2.0)
def the_second_order_model_is_exact_to_third_order(draw, hessian=batch_hessians, half=0.5, order=3.0):
    """Exact on quadratics; the error against the length of the step; the Hessian against finite differences."""
    quadratic = QuadraticFunction(draw.covariance(4), draw.normal(4), constant=2.0)
    at, x, mixing = draw.normal(4), draw.normal(50, 4), draw.normal(6, 4)

    def wavy(w):
        return torch.exp(torch.sin(mixing @ w)).sum()

    # The error along a direction is its third derivative, which vanishes along some: of many the one with the largest.
    directions = draw.unit(200, 4)
    turns = sum(batch_gradients(wavy, at + step * directions) for step in (-0.01, 0.01)) - 2 * batch_gradients(wavy, at)
    direction = directions[(turns * directions).sum(-1).abs().argmax()]

    def model(f, w):
        step = w - at
        bend = half * torch.einsum("bi,ij,bj->b", step, hessian(f, at), step)
        return batch_values(f, at) + step @ batch_gradients(f, at) + bend

    lengths = torch.logspace(-4.0, -3.0, 7, dtype=torch.float64)
    moved = at + lengths[:, None] * direction
    small = 1e-5 * torch.eye(4, dtype=torch.float64)
    differences = (batch_gradients(wavy, at + small) - batch_gradients(wavy, at - small)) / 2e-5
    return all_of(
        close(model(quadratic, x), batch_values(quadratic, x), within=1e-10),
        slope_is(lengths, (batch_values(wavy, moved) - model(wavy, moved)).abs(), order, within=0.03),
        close(hessian(wavy, at), differences, within=1e-5 * float(differences.abs().max())),
    )
