"""Lagrange's multipliers: at a constrained optimum the gradients are parallel."""

import math

import sympy
import torch

from lemmata.foundations.jacobians import gradient_of
from lemmata.foundations.lagrange import Lagrangian
from lemmata.judge import (
    Figure,
    Line,
    Points,
    all_of,
    claim,
    close,
    exactly,
    lie,
)


def contours(level, x, multiplier):
    """The circle, its points of equal x + y, and both gradients where they touch."""
    angle = torch.linspace(0, 2 * math.pi, 121, dtype=torch.float64)
    radius = math.sqrt(level)
    line = torch.linspace(-0.2, 2.2, 5, dtype=torch.float64)
    tip = x + float(multiplier) * 2 * x
    return Figure(
        "Where the gradients are parallel",
        "x",
        "y",
        marks=[
            Line(radius * angle.cos(), radius * angle.sin(), label="constraint"),
            Line(line, float(x.sum()) - line, label="objective at its optimum"),
            Points(x[:1], x[1:], label="optimum"),
            Line([float(x[0]), float(tip[0])], [float(x[1]), float(tip[1])], label="gradient of both"),
        ],
    )


@claim("calculus.lagrangian")
@lie("the gradient of the objective alone vanishes at the optimum", pull=0.0)
@lie("the multiplier is minus the derivative of the optimal value", sign=-1.0)
@lie("the multiplier is twice the derivative of the optimal value", sign=2.0)
def at_a_constrained_optimum_the_gradients_are_parallel(draw, pull=1.0, sign=1.0):
    """Newton's points against exact solutions of two problems, a fine grid, and differences of the optimal value."""
    gamma, s, t = sympy.symbols("gamma s t", real=True)
    level = 1.7
    f, g = (lambda p: p[0] + p[1]), (lambda p: p[0] ** 2 + p[1] ** 2)
    circle = Lagrangian(f, g, level)
    start = torch.tensor([1.0, 0.6], dtype=torch.float64)
    x, multiplier, value = circle.stationary_point(start)
    lowest = circle.stationary_point(-start)
    step = 1e-4
    price = (optimum(f, g, level + step, start) - optimum(f, g, level - step, start)) / (2 * step)
    angle = torch.linspace(0, 2 * math.pi, 20001, dtype=torch.float64)
    brute = (math.sqrt(level) * (angle.cos() + angle.sin())).max()
    product = Lagrangian(lambda p: p[0] * p[1], lambda p: p[0] + p[1] - 1)
    expression = product((s, t), gamma)
    (solved,) = sympy.solve([sympy.diff(expression, v) for v in (s, t, gamma)], [s, t, gamma], dict=True)
    half = product.stationary_point(start)
    elsewhere = draw.normal(2)
    slopes = torch.stack([1 - 0.3 * 2 * elsewhere[0], 1 - 0.3 * 2 * elsewhere[1], level - g(elsewhere)])
    return all_of(
        close(gradient_of(f, x), pull * multiplier * gradient_of(g, x), scale=1.0).showing(
            contours(level, x, multiplier)
        ),
        close(multiplier, sign * price, within=1e-7),  # central differences with step 1e-4
        close(multiplier, 1 / math.sqrt(2 * level)),
        close(x, torch.full((2,), math.sqrt(level / 2), dtype=torch.float64)),
        close(lowest.x, -x),
        close(lowest.multiplier, -multiplier),
        close(value, brute, within=1e-6),  # the grid misses the optimum by at most half its step squared
        close(circle.gradient(x, multiplier), torch.zeros(3).double(), scale=1.0),
        close(circle.gradient(elsewhere, torch.tensor(0.3, dtype=torch.float64)), slopes, scale=4.0),
        exactly((solved[s], solved[t], solved[gamma]), (sympy.Rational(1, 2),) * 3),
        close(
            torch.cat([half.x, half.multiplier[None], half.value[None]]), torch.tensor([0.5, 0.5, 0.5, 0.25]).double()
        ),
    )


def optimum(f, g, level, start):
    """The optimal value as a function of the level."""
    return Lagrangian(f, g, level).stationary_point(start).value
