"""Minima of convex functions: local ones are global, strong convexity gives exactly one, and a parabola below it."""

import math

import torch

from lemmata.foundations.analysis.claims.functions import (
    SLACK,
    chord_gap,
    curvature_between,
    descend,
    exponentials,
    least_curvature,
    logistic,
    quadratic_bound_gap,
    spectrum,
)
from lemmata.foundations.analysis.curvature import smoothness, strong_convexity
from lemmata.foundations.analysis.function_values import batch_hessians, batch_values
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie


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
        for f, wide, steps in ((quartic, 1.0, 200), (plateau, 1.5, 5), (sides, 1.0, 60))
    ]
    values = [batch_values(f, x) for f, x in zip((quartic, plateau), ends, strict=False)]
    far = torch.linspace(-500.0, 0.0, 101, dtype=torch.float64)[:, None]
    return all_of(
        close(torch.stack(values), torch.stack([value[0].expand(50) for value in values]), within=1e-8),
        close(ends[2].max() - ends[2].min(), apart, within=1e-6),
        at_least(ends[1].max() - ends[1].min(), 1.0, detail="the plateau has many minimisers"),
        # exp is strictly convex, and below every value it takes there is another.
        always(chord_gap(exponentials, far / 250, far / 250 - 1, far[:, 0] / -500 * 0.8 + 0.1) > 0),
        exactly([has_minimum(f) for f in (sides, plateau, exponentials)], [True, True, attained]),
    )


def touching_from_below(half, mu):
    """The hyperbolic cosine, bent by 0.7 at least, and a parabola that touches it at 0."""
    line = torch.linspace(-2.0, 2.0, 81, dtype=torch.float64)
    lines = [
        Line(line, 0.7 * line.cosh(), "0.7 cosh x"),
        Line(line, 0.7 + half * mu * line**2, f"0.7 + {half:.3g} μx²"),
    ]
    return Figure("A parabola of curvature μ below the graph", "x", "f(x)", lines)


@claim("convex.strong")
@lie("the parabola is μ|y - x|², without the one half", half=1.0)
@lie("the largest eigenvalue of the Hessian is the constant", constant=torch.amax)
def a_parabola_of_curvature_mu_touches_from_below(draw, half=0.5, constant=torch.amin):
    """Quadratics of known spectrum, the logistic loss with a ridge, felt alone far out, and exp of known curvature."""
    eigenvalues = torch.tensor([0.7, 1.5, 4.0], dtype=torch.float64)
    quadratic = QuadraticFunction(spectrum(draw, *eigenvalues.tolist()), draw.normal(3))
    mu, found = float(constant(eigenvalues)), strong_convexity(quadratic)
    x, y = draw.normal(1000, 3), draw.normal(1000, 3)
    bottom = quadratic.eigenvectors[:, 0]
    gaps, touching = (quadratic_bound_gap(quadratic, at, y, 2 * half * mu) for at in (x, y + bottom))
    # The exponential on [-1, 2] bends by e^-1 at least; only intervals can know that.
    proved = strong_convexity(exponentials, (-1.0, 2.0), points=64).value
    return all_of(
        at_most(gaps, SLACK).showing(touching_from_below(half, mu)),
        close(touching, torch.zeros_like(touching), within=1e-11),
        close([found.value, found.seen], [mu, mu], within=1e-12),
        at_least(curvature_between(quadratic, x, y)[1], mu),
        at_least(least_curvature(logistic(draw, 0.3), torch.cat([x, 1e4 * x])), 0.3, attained=True),
        always([0.98 * math.exp(-1) <= proved <= math.exp(-1)]),
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
    for f, mu, bend in ((quadratic, 0.5, 2.0), (loss, ridge, top)):  # the loss bends most at 0
        ends = descend(f, 3 * draw.normal(50, 3), 1 / bend, 80)
        lowest = ends[batch_values(f, ends).argmin()]
        x = lowest + torch.cat([draw.normal(1000, 3), quadratic.eigenvectors.T])
        growth = batch_values(f, x) - batch_values(f, lowest)
        parts += [
            close(ends, lowest.expand(50, 3), within=1e-8),
            at_least(growth + SLACK, half * mu * (x - lowest).square().sum(1)),
        ]
    along = quadratic.eigenvectors[:, 0]
    return all_of(*parts, close(quadratic(along), half * 0.5, detail="along the least curvature the bound is attained"))
