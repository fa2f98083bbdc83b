"""Smoothness and approximation: Lipschitz constants, curvature, descent lemma, condition numbers, Taylor's formula."""

import math

import torch
import torch._dynamo  # which the first use of torch.func would import anyway, on the clock of a claim

from lemmata.foundations.activations import ACTIVATION_TABLE, activation
from lemmata.foundations.claims.enclosures import enclosures
from lemmata.foundations.conditioning import condition_number, function_condition
from lemmata.foundations.convexity import tangent_gap
from lemmata.foundations.curvature import curvature_between, quadratic_bound_gap, smoothness
from lemmata.foundations.function_values import batch_gradients, batch_hessians, batch_jacobians, batch_values
from lemmata.foundations.lipschitz_bounds import difference_quotient, lipschitz
from lemmata.foundations.quadratic_functions import QuadraticFunction
from lemmata.foundations.taylor import nth_derivative, second_order_model, taylor_polynomial, taylor_remainder
from lemmata.judge import (
    Figure,
    Line,
    all_of,
    always,
    at_least,
    at_most,
    claim,
    close,
    exactly,
    lie,
    slope_is,
)


def spectrum(draw, *eigenvalues):
    """A symmetric matrix with these eigenvalues along random directions."""
    q = draw.orthogonal(len(eigenvalues))
    return (q * torch.tensor(eigenvalues, dtype=torch.float64)) @ q.T


def cube(n, size=1.0):
    return -size * torch.ones(n, dtype=torch.float64), size * torch.ones(n, dtype=torch.float64)


def slope_by_autograd(function, z):
    z = z.detach().requires_grad_()
    return torch.autograd.grad(function(z).sum(), z)[0]


def double_cone():
    """The graph of tanh, and the lines of slope 1 and -1 through one of its points, which it does not cross."""
    line = torch.linspace(-3.0, 3.0, 61, dtype=torch.float64)
    away = line - math.atanh(0.5)
    lines = [Line(line, line.tanh(), "tanh"), Line(line, 0.5 + away, "slope 1"), Line(line, 0.5 - away, "slope -1")]
    return Figure("The graph stays in the double cone", "x", "f(x)", lines)


@claim("smooth.lipschitz")
@lie("the sigmoid is 1/5-Lipschitz", sigmoid=0.2)
@lie("1 is the smallest constant of the softmax", softmax=1.0)
@lie("the constants of the layers of a network add up", combine=sum)
def a_lipschitz_map_never_stretches_by_more_than_its_constant(draw, sigmoid=0.25, softmax=0.5, combine=math.prod):
    """Quotients over far and close pairs, for every activation of the table; softmax, a network, and x²."""
    # Far apart and ever closer, near 0 and far out; beside 0 and 20, where some have a kink or change their formula.
    x, step = draw.uniform(2000, 1, low=-60.0, high=60.0), 10.0 ** -draw.uniform(2000, 1, high=9.0)
    x[:500], x[500:700] = x[:500] / 10, torch.tensor([0.0, 20.0]).repeat(100)[:, None] - step[500:700] / 2
    y = torch.cat([draw.uniform(200, 1, low=-60.0, high=60.0), x[200:] + step[200:]])
    rounding = 1e-14 / (x - y).abs()[:, 0] * (x.abs() + 1)[:, 0]  # of two values, over the distance of the points
    parts = []
    for name, known in ((name, activation(name)) for name in ACTIVATION_TABLE):
        constant = sigmoid if name == "sigmoid" else known.lipschitz
        quotients = difference_quotient(known, x, y)
        grid = torch.linspace(-8.0, 8.0, 1601, dtype=torch.float64)
        reached = difference_quotient(known, grid[1:, None], grid[:-1, None]).max()
        slopes = known.derivative(grid)
        parts += [
            at_most(quotients - rounding, constant),
            at_least(reached, 0.99 * constant),
            at_most(slopes.abs(), constant),
            close(known.derivative(x[:, 0]), slope_by_autograd(known, x[:, 0]), within=1e-12),
        ]
    parts.append(at_most(difference_quotient(torch.abs, x, y) - rounding, 1.0))
    logits = torch.cat([3 * draw.normal(500, 4), torch.tensor([[0.0, 0.0, -9.0, -9.0]], dtype=torch.float64)])
    norms = torch.linalg.matrix_norm(batch_jacobians(lambda t: torch.softmax(t, 0), logits), 2)
    first, last = torch.nn.Linear(3, 5).double(), torch.nn.Linear(5, 2).double()
    first.weight.data, last.weight.data = draw.normal(5, 3), draw.normal(2, 5)
    network = torch.nn.Sequential(first, torch.nn.Sigmoid(), last)
    sizes = [float(torch.linalg.matrix_norm(layer.weight.detach(), 2)) for layer in (first, last)]
    proved = lipschitz(network, cube(3), points=64)
    layers = [
        torch.nn.Identity(), torch.nn.Flatten(0), torch.nn.GELU(), torch.nn.GELU(approximate="tanh"),
        *(torch.nn.ELU(alpha) for alpha in (0.5, 1.0, 3.0)), *(torch.nn.LeakyReLU(leak) for leak in (0.2, 3.0)),
        torch.nn.ReLU(), torch.nn.Tanh(), torch.nn.SiLU(), torch.nn.Softsign(),
    ]  # fmt: skip
    wide = torch.linspace(-60.0, 60.0, 12001, dtype=torch.float64)
    slopes = torch.stack([slope_by_autograd(layer, wide).abs().max() for layer in layers])
    parts += [at_most(difference_quotient(layer, x, y) - rounding, lipschitz(layer).value) for layer in layers[2:]]
    growing = [lipschitz(lambda t: t**2, (-r, r), points=64).value / r for r in (1.0, 10.0, 100.0)]
    found = lipschitz(torch.sigmoid, (-6.0, 6.0), points=256)
    return all_of(
        *parts,
        at_most(norms, softmax).showing(double_cone()),
        at_least(norms.max(), 0.99 * softmax),
        close(proved.value, combine([*sizes, 0.25]), within=1e-4 * math.prod(sizes)),
        at_least(proved.value, proved.seen),
        at_least(proved.seen, 0.05 * proved.value),
        close(proved.seen, difference_quotient(network, *proved.witness), within=1e-9),
        always([proved.certified, not found.certified, lipschitz(network).certified]),
        close(found.value, sigmoid, within=1e-4),
        close(found.seen, difference_quotient(torch.sigmoid, *found.witness), within=1e-9),
        close([lipschitz(layer).value for layer in layers], slopes, within=3e-5),
        close(growing, [2.0, 2.0, 2.0], within=1e-3),
    )


def largest_size(eigenvalues):
    return eigenvalues.abs().max()


@claim("smooth.definition")
@lie("the largest eigenvalue alone decides", constant=torch.max)
@lie("the constant is half of the largest curvature", factor=0.5)
@lie("-x⁴ on [-r, r] has the constant 12r", power=1)
def a_smooth_function_has_a_lipschitz_gradient(draw, constant=largest_size, factor=1.0, power=2):
    """Quotients of gradients over pairs and along the top eigenvector, against the spectrum and exact enclosures."""
    x, y = draw.normal(1000, 4), draw.normal(1000, 4)
    parts = []
    small, large = (-1e-9, 0.0, 0.0, 1e-10), (1e9, -4e9, 1.0, 0.0)
    for values in ((-5.0, -1.0, 0.0, 1.0), (0.1, 0.5, 1.0, 3.0), (-100.0,) * 4, small, large):
        matrix = spectrum(draw, *values)
        f = QuadraticFunction(matrix, matrix @ draw.normal(4))
        predicted = factor * float(constant(torch.tensor(values, dtype=torch.float64)))
        top = torch.linalg.eigh(matrix)
        along = top.eigenvectors[:, top.eigenvalues.abs().argmax()]
        quotients = torch.cat([curvature_between(f, x, y)[0], curvature_between(f, x[:1] + along, x[:1])[0]])
        found = smoothness(f)
        parts += [
            close([found.value, found.seen], [predicted] * 2, ulps=1024),
            at_most(quotients, predicted, attained=True, ulps=1024),
            always([found.certified, "certified" in str(found), "largest |eigenvalue|" in found.reason]),
        ]
    data, labels = draw.normal(12, 4), draw.signs(12)

    def loss(w):
        return torch.nn.functional.softplus(-labels * (data @ w)).sum()

    bound = float(torch.linalg.eigvalsh(data.T @ data)[-1]) / 4
    sharp = torch.linalg.eigh(batch_hessians(loss, torch.zeros(4, dtype=torch.float64)))
    step = 1e-3 * sharp.eigenvectors[:, -1]
    parts += [
        at_most(curvature_between(loss, x, y)[0], bound),
        close(curvature_between(loss, step, -step)[0], bound, within=1e-5 * bound),
    ]
    for radius in (0.5, 1.0, 2.0):
        quartic = smoothness(lambda t: -(t**4).sum(), (-radius, radius), points=64)
        exact = 12 * radius**power
        parts += [at_least(quartic.value, exact), at_most(quartic.value, 1.02 * exact)]
        parts += [at_most(quartic.seen, exact), at_least(quartic.seen, 0.99 * exact), always([quartic.certified])]
    grid = torch.linspace(-0.2, 0.2, 401, dtype=torch.float64)[:, None]
    for f in (bell, fraction):
        steepest, found = float(batch_hessians(f, grid).abs().max()), smoothness(f, (-0.2, 0.2), points=32)
        parts += [always([found.certified]), at_least(found.value, steepest), at_most(found.value, 1.1 * steepest)]
    guess = smoothness(lambda t: torch.relu(t).sum() - 2 * (t**2).sum(), (-1.0, 1.0), points=64)
    plane = smoothness(lambda t: torch.relu(t).sum() - t[0] ** 4 + t[1] ** 2 / 10, cube(2), points=64)
    parts += [always([not plane.certified]), close(plane.value, 12.0, within=0.1)]
    between = curvature_between(loss, x[:1], x[:1] + along)[1]
    parts += [always([not guess.certified]), close(between, tangent_slope(loss, x[:1], along), ulps=1024)]
    return all_of(*parts, close(guess.value, 4.0, within=1e-9), *enclosures(draw))


def bell(t):
    return torch.exp(-t.square()).sum() + 0.1 * (torch.ones(1, dtype=torch.float64) - t).sum() ** 3


def fraction(t):
    return 1 / (2 + torch.cos(2 * t)).sum() - torch.sin(t).sum() * 0.5


def tangent_slope(f, x, step):
    """The change of slope along a step, from the two tangent gaps."""
    return (tangent_gap(f, x, x + step) + tangent_gap(f, x + step, x)) / step.square().sum()


def sines(x):
    return torch.sin(x).sum()


def touching_from_above(factor):
    """The sine and a parabola that touches it at 0."""
    line = torch.linspace(-3.0, 3.0, 61, dtype=torch.float64)
    lines = [Line(line, line.sin(), "sin"), Line(line, line + factor * line**2 / 2, "x + Lx²/2")]
    return Figure("The parabola of curvature L touches from above", "x", "f(x)", lines)


@claim("smooth.descent_lemma")
@lie("the parabola L/4 |x - y|² suffices", factor=0.5)
@lie(
    "the Hessian at the first point gives equality",
    printed="003/1",
    regime="the point in between mostly lies near a third of the way",
    loose="a longer stretch holds it too",
    reach=0.0,
)
@lie("the sine stays below parabolas of curvature 1/2", loose="a larger curvature is above as well", wave=0.5)
def a_parabola_of_curvature_l_touches_from_above(draw, factor=1.0, reach=1.0, wave=1.0):
    """Random pairs for five smooth functions, one with a bound proved by intervals; the Hessian in between."""
    x, y = draw.normal(2000, 3), draw.normal(2000, 3)
    data, labels = draw.normal(15, 3), draw.signs(15)
    lowest = torch.full((1, 3), -math.pi / 2, dtype=torch.float64)  # where the sine bends upwards most
    matrix = spectrum(draw, -4.0, 1.0, 2.0)
    quadratic, top = QuadraticFunction(matrix, draw.normal(3)), torch.linalg.eigh(matrix).eigenvectors[:, -1]

    def logistic(w):
        return torch.nn.functional.softplus(-labels * (data @ w)).sum()

    def fit(w):  # a least-squares fit of one tanh unit: not convex
        return (torch.tanh(data[:4, 0] * w) - labels[:4]).square().sum() / 2

    proved = smoothness(fit, (-0.5, 0.5), points=64)
    inside, other = draw.uniform(500, 1, low=-0.5, high=0.5), draw.uniform(500, 1, low=-0.5, high=0.5)
    largest = float(torch.linalg.eigvalsh(data.T @ data)[-1]) / 4
    touching = quadratic_bound_gap(quadratic, torch.cat([x, y + top]), torch.cat([y, y]), factor * 2.0)
    parts = [
        quadratic_bound_gap(logistic, x, y, factor * largest),
        quadratic_bound_gap(lambda t: torch.logsumexp(t, 0), x, y, factor * 0.5),
        quadratic_bound_gap(sines, torch.cat([x, lowest + 0.1]), torch.cat([y, lowest]), factor * wave),
        quadratic_bound_gap(fit, inside, other, factor * proved.value),
        # The one-sided bound suffices: -x⁴ curves by at most 0, though no constant bounds it from below.
        quadratic_bound_gap(lambda t: -(t**4).sum(), x, y, 0.0),
    ]
    # Taylor and Lagrange: the curvature that would give equality is one that occurs between the points.
    ends = draw.uniform(200, 2, low=-2.0, high=2.0)
    first, step = ends[:, :1], ends[:, 1:] - ends[:, :1]
    needed = 2 * tangent_gap(sines, first, first + step) / step[:, 0].square()
    occurring = -torch.sin(first + reach * step * torch.linspace(0.0, 1.0, 201, dtype=torch.float64))
    return all_of(
        *(at_least(gaps + 1e-11, torch.zeros_like(gaps)).showing(touching_from_above(factor)) for gaps in parts),
        at_least(touching + 1e-11, torch.zeros_like(touching)),
        close(quadratic_bound_gap(quadratic, y + top, y, factor * 2.0), torch.zeros_like(x[:, 0]), within=1e-11),
        at_least(needed + 1e-4, occurring.amin(1)),
        at_most(needed - 1e-4, occurring.amax(1)),
        always([proved.certified, proved.value >= proved.seen, proved.value <= 1.5 * proved.seen]),
    )


def steepest_path(f, start, steps):
    """Gradient descent that goes as far as the function falls, from a start."""
    path = [start]
    for _ in range(steps):
        slope = batch_gradients(f, path[-1])
        bend = (slope @ f.matrix @ slope).clamp(min=1e-300)  # which is 0 with the slope, at the minimum
        path.append(path[-1] - (slope @ slope) / bend * slope)
    return torch.stack(path)


@claim("analysis.condition_number")
@lie("the condition number is the least over the largest eigenvalue", power=-1.0)
@lie("relative errors grow by at most half of it", share=0.5)
@lie("every step crosses the valley to the same height, whatever the condition number", one=0.0)
def the_condition_number_measures_unequal_curvatures(draw, power=1.0, share=1.0, one=1.0):
    """Spectra from equal to nearly singular, error amplification with its extreme case, and the zig-zag of descent."""
    parts, paths = [], {}
    for spread in (1.0, 1.5, 5.0, 50.0, 1e4, 1e8):
        values = spread ** (draw.uniform(4).sort().values - 1)
        values[0], values[-1] = 1 / spread, 1.0
        q = draw.orthogonal(4)
        matrix = 10.0 ** float(draw.uniform(low=-6.0, high=6.0)) * (q * values) @ q.T
        kappa = condition_number(matrix) ** power
        # The worst case: b along the steepest direction, its error along the flattest.
        b, change = (torch.cat([draw.normal(100, 4), worst[None]]) for worst in (q[:, -1], q[:, 0]))
        x, grown = torch.linalg.solve(matrix, b.T).T, torch.linalg.solve(matrix, change.T).T
        grown = grown.norm(dim=1) / x.norm(dim=1)
        exact = {"ulps": 1024, "condition": spread}  # of the least eigenvalue next to the largest
        # Across the narrow valley from (κ, 1) every step lands on the other side, (κ - 1)/(κ + 1) as high.
        narrow = QuadraticFunction(torch.diag(torch.tensor([1.0, spread], dtype=torch.float64)))
        paths[spread] = path = steepest_path(narrow, torch.tensor([spread, 1.0], dtype=torch.float64), 4)
        turned = -(kappa - one) / (kappa + one)
        parts += [
            close(kappa, spread, **exact),
            at_least(kappa * (1 + 1e-12), 1.0),
            close(function_condition(QuadraticFunction((matrix + matrix.T) / 2)).value, spread, **exact),
            at_most(grown, share * kappa * change.norm(dim=1) / b.norm(dim=1), attained=True, ulps=1024 * spread),
            close(path[1:3, 1], torch.stack([turned, turned**2]), scale=1.0, **exact),
        ]
    tall, start = draw.normal(6, 3), draw.normal(2)
    ball = QuadraticFunction(3 * torch.eye(2, dtype=torch.float64), draw.normal(2))
    curved = function_condition(lambda t: torch.exp(t).sum(), (1.0, 2.0), points=64)
    kinked = function_condition(lambda t: torch.exp(t).sum() + torch.relu(t).sum(), (0.5, 1.5), points=64)
    figure = Figure(
        "Descent in a valley of condition 50", "flat direction", "steep direction",
        [Line(paths[50.0][:, 0], paths[50.0][:, 1], "path")],
    )  # fmt: skip
    return all_of(
        *parts,
        close(steepest_path(ball, start, 1)[1], ball.minimiser, within=1e-12).showing(figure),
        always([curved.certified, not kinked.certified, curved.value >= math.e, len(curved.witness) == 4]),
        close([curved.value, curved.seen, kinked.value], [math.e] * 3, within=0.06),
        close(QuadraticFunction(torch.eye(2).double(), constant=2.0)(start), 2 + start.square().sum() / 2),
        close(condition_number(tall), torch.linalg.cond(tall), ulps=1e4),
    )


def with_the_power_inside(f, at, x, degree):
    """The power (x - t)^n gone into the argument of the derivative: an integral of f^(n+1)(x - t)/n!."""
    share = torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)
    t = at + (x - at) * share
    values = nth_derivative(f, x - t, degree + 1) / math.factorial(degree)
    return torch.trapezoid(values, t)[None]


@claim("analysis.taylor")
@lie("the remainder integrates f^(n+1)(x - t)/n!", remainder=with_the_power_inside)
@lie("the polynomial has one term less", missing=1)
@lie("Lagrange's remainder is divided by n!", shift=0)
def taylors_polynomial_and_its_remainder_make_the_function(draw, remainder=taylor_remainder, missing=0, shift=1):
    """Three functions up to the fifth derivative, forwards and backwards, and Lagrange's sandwich for the remainder."""
    at, x = torch.tensor([1 / 3], dtype=torch.float64), torch.tensor([4 / 3], dtype=torch.float64)
    parts = []
    for f in (lambda t: torch.exp(2 * t), torch.sin, lambda t: 1 / (1 + t)):
        for degree in range(5):
            rest = remainder(f, at, x, degree)
            polynomial = taylor_polynomial(f, at, x, degree - missing) if degree >= missing else at - at
            between = nth_derivative(f, torch.linspace(1 / 3, 4 / 3, 101, dtype=torch.float64), degree + 1)
            scaled = between * (x - at) ** (degree + 1) / math.factorial(degree + shift)
            parts += [
                close(polynomial + rest, f(x), within=1e-12),
                at_least(rest + 1e-12, scaled.min()),
                at_most(rest - 1e-12, scaled.max()),
            ]
    back = taylor_polynomial(torch.exp, x, at, 3) + taylor_remainder(torch.exp, x, at, 3)
    # Many points at once; a polynomial, whose high derivatives are 0; one with a coefficient that is learnt.
    many, slope = draw.uniform(2, 3, 5), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    both = taylor_polynomial(torch.exp, many, many + 0.5, 2) + taylor_remainder(torch.exp, many, many + 0.5, 2)
    ends = [nth_derivative(f, many, 3) for f in (torch.ones_like, torch.square, lambda t: slope * t)]
    line = torch.linspace(-3.0, 3.0, 61, dtype=torch.float64)
    figure = Figure(
        "sin and its polynomials", "x", "value",
        [Line(line, line.sin(), "sin")]
        + [Line(line, taylor_polynomial(torch.sin, line[:1] * 0, line, k), f"degree {k}") for k in (1, 3, 5)],
    )  # fmt: skip
    return all_of(
        *parts,
        close(back, torch.exp(at), within=1e-12).showing(figure),
        close(both, torch.exp(many + 0.5), within=1e-12),
        exactly(torch.stack(ends), torch.zeros(3, 2, 3, 5, dtype=torch.float64)),
    )


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
        exactly(batch_hessians(wavy, at), batch_hessians(wavy, at).T),
    )
