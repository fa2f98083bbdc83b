"""Smoothness and approximation: Lipschitz constants, curvature, descent lemma, condition numbers, Taylor's formula."""

import math

import torch

from lemmata.foundations.activations import activation
from lemmata.foundations.analysis.claims.convexity import logistic, sines, spectrum
from lemmata.foundations.analysis.conditioning import condition_number, function_condition
from lemmata.foundations.analysis.convexity import tangent_gap
from lemmata.foundations.analysis.curvature import curvature_between, quadratic_bound_gap, smoothness
from lemmata.foundations.analysis.function_values import batch_gradients, batch_hessians, batch_jacobians, batch_values
from lemmata.foundations.analysis.lipschitz_bounds import difference_quotient, lipschitz
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.foundations.analysis.taylor import nth_derivative, second_order_model, taylor_polynomial, taylor_remainder
from lemmata.judge import Figure, Line, all_of, at_least, at_most, claim, close, lie, slope_is


@claim("smooth.lipschitz")
@lie("the sigmoid is 1/5-Lipschitz", sigmoid=0.2)
@lie("1 is the smallest constant of the softmax", softmax=1.0)
@lie("x² has one constant for all intervals", growth=0.0)
def a_lipschitz_map_never_stretches_by_more_than_its_constant(draw, sigmoid=0.25, softmax=0.5, growth=1.0):
    """Quotients over far and close pairs, and where they are largest; Jacobians of the softmax; x² on intervals."""
    # Far apart and ever closer, near 0 and far out, and beside 0, where some have a kink.
    x, step = draw.uniform(2000, 1, low=-60.0, high=60.0), 10.0 ** -draw.uniform(2000, 1, high=9.0)
    x[:500], x[500:700] = x[:500] / 10, -step[500:700] / 2
    y = torch.cat([draw.uniform(200, 1, low=-60.0, high=60.0), x[200:] + step[200:]])
    rounding = 1e-14 / (x - y).abs()[:, 0] * (x.abs() + 1)[:, 0]  # of two values, over the distance of the points
    functions = [activation("relu"), torch.abs, activation("tanh"), activation("sigmoid")]
    constants = [1.0, 1.0, 1.0, sigmoid]
    quotients = torch.stack([difference_quotient(f, x, y) - rounding for f in functions])
    found = [lipschitz(f, (-6.0, 6.0), points=256).value for f in functions]
    logits = torch.cat([3 * draw.normal(500, 4), torch.tensor([[0.0, 0.0, -60.0, -60.0]], dtype=torch.float64)])
    norms = torch.linalg.matrix_norm(batch_jacobians(lambda t: torch.softmax(t, 0), logits), 2)
    radii = [1.0, 10.0, 100.0]
    squared = [lipschitz(lambda t: t**2, (-r, r), points=64).value for r in radii]
    return all_of(
        at_most(quotients, torch.tensor(constants)[:, None]),
        close(found, constants, within=1e-3),
        at_most(norms, softmax, attained=True),
        close(squared, [2 * r**growth for r in radii], within=[1e-3 * r for r in radii]),
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


@claim("smooth.descent_lemma")
@lie("the parabola L/4 |x - y|² suffices", half=0.25)
@lie(
    "the Hessian at the first point gives equality",
    printed="003/1",
    regime="the point in between mostly lies near a third of the way",
    loose="a longer stretch holds it too",
    reach=0.0,
)
def a_parabola_of_curvature_l_touches_from_above(draw, half=0.5, reach=1.0):
    """Random pairs for six smooth functions, one with a bound proved by intervals; the Hessian in between."""
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
            (lambda t: torch.logsumexp(t, 0), (x, y), 0.5),
            (sines, (torch.cat([x, lowest + 0.1]), torch.cat([y, lowest])), 1.0),
            (fit, tuple(draw.uniform(2, 500, 1, low=-0.5, high=0.5)), smoothness(fit, (-0.5, 0.5), points=64).value),
            # The one-sided bound suffices: -x⁴ curves by at most 0, though no constant bounds it from below.
            (lambda t: -(t**4).sum(), (x, y), 0.0),
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
        kappa, function = number(matrix), function_condition(QuadraticFunction((matrix + matrix.T) / 2))
        # The worst case: b along the steepest direction, its error along the flattest.
        b, change = (torch.cat([draw.normal(100, 4), worst[None]]) for worst in (q[:, -1], q[:, 0]))
        x, grown = torch.linalg.solve(matrix, b.T).T, torch.linalg.solve(matrix, change.T).T
        grown = grown.norm(dim=1) / x.norm(dim=1)
        exact = {"ulps": 1024, "condition": spread}  # of the least eigenvalue next to the largest
        narrow = QuadraticFunction(torch.diag(torch.tensor([1.0, spread], dtype=torch.float64)))
        path = steepest_path(narrow, torch.tensor([spread, 1.0], dtype=torch.float64), 2)
        turned = -(kappa - one) / (kappa + one)
        parts += [
            close([kappa, function.value], [spread, spread], **exact),
            at_most(grown, factor * kappa * change.norm(dim=1) / b.norm(dim=1), attained=True, ulps=1024 * spread),
            close(path[1:, 1], torch.stack([turned, turned**2]), scale=1.0, **exact),
        ]
    tall = draw.normal(6, 3)
    squares = torch.linalg.eigvalsh(tall.T @ tall)  # of the singular values
    return all_of(*parts, close(number(tall), (squares[-1] / squares[0]).sqrt(), ulps=1e4))


def with_the_power_inside(f, at, x, degree):
    """The power (x - t)^n gone into the argument of the derivative: an integral of f^(n+1)(x - t)/n!."""
    t = at + (x - at) * torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)
    values = nth_derivative(f, x - t, degree + 1) / math.factorial(degree)
    return torch.trapezoid(values, t)[None]


@claim("analysis.taylor")
@lie("the remainder integrates f^(n+1)(x - t)/n!", remainder=with_the_power_inside)
@lie("the polynomial has one term less", last=-1)
@lie("Lagrange's remainder is divided by n!", shift=0)
def taylors_polynomial_and_its_remainder_make_the_function(draw, remainder=taylor_remainder, last=0, shift=1):
    """Three functions up to the fifth derivative, forwards and backwards, and Lagrange's sandwich for the remainder."""
    parts = []
    for at, x in torch.tensor([[[1 / 3], [4 / 3]], [[4 / 3], [1 / 3]]], dtype=torch.float64):
        for f in (lambda t: torch.exp(2 * t), torch.sin, lambda t: 1 / (1 + t)):
            for degree in range(5):
                rest = remainder(f, at, x, degree)
                polynomial = taylor_polynomial(f, at, x, degree + last) if degree + last >= 0 else at - at
                between = nth_derivative(f, torch.linspace(1 / 3, 4 / 3, 101, dtype=torch.float64), degree + 1)
                scaled = between * (x - at) ** (degree + 1) / math.factorial(degree + shift)
                parts += [
                    close(polynomial + rest, f(x), within=1e-12),
                    at_least(rest, scaled.min() - 1e-12),
                    at_most(rest, scaled.max() + 1e-12),
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
    at, x = draw.normal(4), draw.normal(50, 4)
    step = x - at
    written = (
        batch_values(quadratic, at)
        + step @ batch_gradients(quadratic, at)
        + half * torch.einsum("bi,ij,bj->b", step, hessian(quadratic, at), step)
    )
    mixing = draw.normal(6, 4)

    def wavy(w):
        return torch.exp(torch.sin(mixing @ w)).sum()

    direction = draw.unit(4)
    lengths = torch.logspace(-4.0, -3.0, 7, dtype=torch.float64)
    moved = at + lengths[:, None] * direction
    errors = (batch_values(wavy, moved) - second_order_model(wavy, at, moved)).abs()
    small = 1e-5 * torch.eye(4, dtype=torch.float64)
    differences = (batch_gradients(wavy, at + small) - batch_gradients(wavy, at - small)) / 2e-5
    return all_of(
        close(second_order_model(quadratic, at, x), batch_values(quadratic, x), within=1e-10),
        close(written, batch_values(quadratic, x), within=1e-10),
        slope_is(lengths, errors, order, within=0.03),  # a fourth-order term of a thousandth, and rounding
        close(batch_hessians(wavy, at), differences, within=1e-5 * float(differences.abs().max())),
    )
