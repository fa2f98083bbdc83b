"""Minima of convex functions: local ones are global, strong convexity gives exactly one, and a parabola below it."""

import math

import torch
import torch._dynamo  # which the first use of torch.func would import anyway, on the clock of a claim

from lemmata.foundations.claims.convexity import SLACK, cube, exponentials, logistic, spectrum, squares
from lemmata.foundations.convexity import chord_gap, least_curvature
from lemmata.foundations.curvature import curvature_between, quadratic_bound_gap, smoothness, strong_convexity
from lemmata.foundations.function_values import batch_gradients, batch_hessians, batch_values
from lemmata.foundations.quadratic_functions import QuadraticFunction
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie


def descend(f, x, step, steps):
    """Gradient descent from every row of x."""
    for _ in range(steps):
        x = x - step * batch_gradients(f, x)
    return x


def has_minimum(f):
    """Whether the least value over ever wider stretches of the line is taken inside them, not at an end."""
    inside = []
    for size in (10.0, 100.0, 500.0):
        line = torch.linspace(-size, size, 1001, dtype=torch.float64)[:, None]
        inside.append(0 < int(batch_values(f, line).argmin()) < 1000)
    return all(inside)


@claim("convex.local_is_global")
@lie(
    "descent reaches one value on a double well too",
    regime="the function is convex down to 0, and keeps to one valley down to -0.67",
    loose="a larger curvature is convex too",
    curvature=-2.0,
)
@lie("every strictly convex function has a minimum, so has exp", printed="002/1", attained=True)
@lie("a strictly convex function may have two minimisers", apart=0.5)
def local_minima_of_convex_functions_are_global(draw, curvature=1.0, attained=False, apart=0.0):
    """Descent from fifty starts; a strictly convex function has one minimiser if it has any, and exp has none."""
    starts = draw.uniform(50, 1, low=-1.0, high=1.0)

    def quartic(x):  # convex iff curvature >= 0
        return (x**4 + curvature * x**2 + 0.3 * x).sum()

    def plateau(x):  # convex, with every point of [-1, 1] a minimiser
        return (torch.relu(x - 1) ** 2 + torch.relu(-1 - x) ** 2).sum()

    def sides(x):  # strictly convex, with a minimum
        return (torch.exp(x) + torch.exp(-x)).sum()

    ends = [
        descend(f, wide * starts, 1 / smoothness(f, (-1.5, 1.5), points=64).value, steps)
        for f, wide, steps in ((quartic, 1.0, 400), (plateau, 1.5, 5), (sides, 1.0, 60))
    ]
    values = [batch_values(f, x) for f, x in zip((quartic, plateau, sides), ends, strict=True)]
    far = torch.linspace(-500.0, 0.0, 101, dtype=torch.float64)[:, None]
    return all_of(
        close(values[0], values[0][0].expand(50), within=1e-8),
        close(values[1], torch.zeros(50, dtype=torch.float64), within=1e-8),
        close(batch_gradients(sides, ends[2]), torch.zeros(50, 1, dtype=torch.float64), within=1e-6),
        close(ends[2].max() - ends[2].min(), apart, within=1e-6),
        always([float(ends[1].max() - ends[1].min()) > 1.0], detail="the plateau has many minimisers"),
        # exp is strictly convex, and below every value it takes there is another.
        always(chord_gap(exponentials, far / 250, far / 250 - 1, far[:, 0] / -500 * 0.8 + 0.1) > 0),
        exactly([has_minimum(f) for f in (sides, plateau, exponentials)], [True, True, attained]),
    )


def touching_from_below(factor):
    """The hyperbolic cosine and a parabola that touches it at 0."""
    line = torch.linspace(-2.0, 2.0, 81, dtype=torch.float64)
    lines = [Line(line, line.cosh(), "cosh"), Line(line, 1 + factor * line**2 / 2, "1 + μx²/2")]
    return Figure("A parabola of curvature μ below the graph", "x", "f(x)", lines)


@claim("convex.strong")
@lie("the constant of a quadratic is 1.01 times its least eigenvalue", factor=1.01)
@lie("the parabola is μ|y - x|², without the one half", factor=2.0)
@lie("the curvature of the ridge alone is twice the ridge", ridge_share=2.0)
def a_parabola_of_curvature_mu_touches_from_below(draw, factor=1.0, ridge_share=1.0):
    """Quadratics of known spectrum, the logistic loss with a ridge, felt alone far out, and exp of known curvature."""
    matrix = spectrum(draw, 0.7, 1.5, 4.0)
    quadratic = QuadraticFunction(matrix, draw.normal(3))
    found = strong_convexity(quadratic)
    x, y = draw.normal(1000, 3), draw.normal(1000, 3)
    bottom = torch.linalg.eigh(matrix).eigenvectors[:, 0]
    gaps, touching = (quadratic_bound_gap(quadratic, at, y, factor * 0.7) for at in (x, y + bottom))
    ridge = 0.3
    loss = logistic(draw, ridge)
    # The exponential on [-1, 2] bends by e^-1 at least; only intervals can know that.
    proved = strong_convexity(exponentials, (-1.0, 2.0), points=64)
    estimated = strong_convexity(lambda t: exponentials(t) + torch.relu(t).sum(), (-1.0, 2.0), points=64)
    # Along the kernel of its Hessian the bound of intervals is negative and of no use: the estimate 0 is kept.
    loose = strong_convexity(lambda t: torch.exp(t.sum()), cube(2), points=64)
    size, along = curvature_between(quadratic, x, y)
    return all_of(
        at_most(gaps - SLACK, torch.zeros_like(gaps)).showing(touching_from_below(factor)),
        close(touching, torch.zeros_like(touching), within=1e-11),
        close(found.value, 0.7, within=1e-12),
        close(found.seen, 0.7, within=1e-12),
        always([found.certified, proved.certified, not estimated.certified, not loose.certified]),
        close(loose.value, 0.0, within=1e-6),
        always(["proved is only >=" in loose.reason, "least eigenvalue" in found.reason]),
        at_least(along, 0.7),
        at_least(size, along),
        at_least(least_curvature(loss, torch.cat([x[:200], 1e4 * x[:200]])), ridge_share * ridge, attained=True),
        close(
            quadratic_bound_gap(squares, x.reshape(10, 100, 3), y.reshape(10, 100, 3), 3.0),
            (x - y).square().sum(1).reshape(10, 100) / 2,
            within=1e-12,
        ),
        at_most(proved.value, math.exp(-1)),
        at_least(proved.value, 0.98 * math.exp(-1)),
        close(estimated.value, math.exp(-1), within=1e-3),
        close(curvature_between(exponentials, *estimated.witness)[1], estimated.value, within=1e-6),
    )


@claim("convex.strong_unique_minimum")
@lie("convexity alone gives one minimiser", least=0.0)
@lie("the value grows like μ|x - x*|², without the one half", half=1.0)
def strong_convexity_gives_one_minimiser(draw, least=0.5, half=0.5):
    """Descent from fifty starts ends in one point, above which the function grows at least quadratically."""
    quadratic = QuadraticFunction(spectrum(draw, least, 1.0, 2.0))
    ridge = 0.4
    loss = logistic(draw, ridge)
    top = float(torch.linalg.eigvalsh(batch_hessians(loss, torch.zeros(3, dtype=torch.float64)))[-1])
    parts = []
    for f, mu, steps, bend in ((quadratic, 0.5, 80, 2.0), (loss, ridge, 80, top)):  # the loss bends most at 0
        ends = descend(f, 3 * draw.normal(50, 3), 1 / bend, steps)
        lowest = ends[batch_values(f, ends).argmin()]
        x = lowest + torch.cat([draw.normal(1000, 3), torch.linalg.eigh(quadratic.matrix).eigenvectors.T])
        growth = batch_values(f, x) - batch_values(f, lowest)
        parts += [
            close(ends, lowest.expand(50, 3), within=1e-8),
            at_least(growth + SLACK, half * mu * (x - lowest).square().sum(1)),
        ]
    along = torch.linalg.eigh(quadratic.matrix).eigenvectors[:, 0]
    return all_of(
        *parts,
        close(quadratic(along), half * 0.5, detail="along the least curvature the bound is attained"),
        close(quadratic.minimiser, torch.zeros(3, dtype=torch.float64), within=1e-12),
    )
