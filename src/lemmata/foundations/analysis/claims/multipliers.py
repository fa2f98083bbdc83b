"""Lagrange's multipliers: at a constrained optimum the gradients are parallel."""

import math

import sympy
import torch

from lemmata.foundations.analysis.lagrange import Lagrangian
from lemmata.foundations.matrix_calculus.jacobians import gradient_of
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

HALF = sympy.Rational(1, 2)


def contours(level, x, pulled):
    """The circle, the points of equal x + y through the optimum, and both gradients there."""
    angle = torch.linspace(0, 2 * math.pi, 121, dtype=torch.float64)
    radius = math.sqrt(level)
    line = torch.linspace(-0.2, 2.2, 5, dtype=torch.float64)
    tips = {"∇f": x + 1, "γ∇g": x + float(pulled) * 2 * x}
    return Figure(
        "Where the gradients are parallel",
        "x",
        "y",
        marks=[
            Line(radius * angle.cos(), radius * angle.sin(), label="constraint"),
            Line(line, float(x.sum()) - line, label="objective at its optimum"),
            Points(x[:1], x[1:], label="optimum"),
            *(Line([float(x[0]), float(tip[0])], [float(x[1]), float(tip[1])], label=of) for of, tip in tips.items()),
        ],
    )


@claim("calculus.lagrangian")
@lie("the gradient of the objective alone vanishes at the optimum", pull=0.0)
@lie("the multiplier is minus the derivative of the optimal value", sign=-1.0)
def at_a_constrained_optimum_the_gradients_are_parallel(draw, pull=1.0, sign=1.0):
    """Newton's points against exact solutions of two problems, a fine grid, and differences of the optimal value."""
    level = float(draw.uniform(low=1.0, high=2.0))
    f, g = (lambda p: p[0] + p[1]), (lambda p: p[0] ** 2 + p[1] ** 2)
    start = torch.tensor([1.0, 0.6], dtype=torch.float64)
    x, multiplier, value = Lagrangian(f, g, level).stationary_point(start)
    lowest = Lagrangian(f, g, level).stationary_point(-start)
    step = 1e-4
    above, below = (Lagrangian(f, g, level + change).stationary_point(start).value for change in (step, -step))
    angle = torch.linspace(0, 2 * math.pi, 20001, dtype=torch.float64)
    brute = (math.sqrt(level) * (angle.cos() + angle.sin())).max()
    # The largest product of two numbers of sum 1, solved in symbols.
    s, t, gamma = sympy.symbols("s t gamma", real=True)
    product = Lagrangian(lambda p: p[0] * p[1], lambda p: p[0] + p[1] - 1)
    equations = [sympy.diff(product((s, t), gamma), variable) for variable in (s, t, gamma)]
    price = sign * (above - below) / (2 * step)  # by central differences
    figure = contours(level, x, pull * price)
    return all_of(
        close(gradient_of(f, x), pull * multiplier * gradient_of(g, x), scale=1.0).showing(figure),
        close(multiplier, price, within=1e-7),
        close(g(x), level),
        close(value, brute, within=1e-6),  # the grid misses the optimum by at most half its step squared
        close(lowest.multiplier, -multiplier, detail="at the minimum it has the other sign"),
        exactly(sympy.solve(equations, [s, t, gamma]), {s: HALF, t: HALF, gamma: HALF}),
    )
