"""Lagrange's multipliers: at a constrained optimum the gradients are parallel."""

import math

import sympy
import torch
from torch.autograd.functional import jacobian

from lemmata.judge import Figure, Line, Points, all_of, claim, close, exactly, lie


def total(x):
    return x[0] + x[1]


def skewed(x):
    return torch.exp(x[0]) + x[0] * x[1] - x[1]


def squared_length(x):
    return x[0] ** 2 + x[1] ** 2


def optimum(objective, level, best):
    """The best of 1,024 points of the circle of this squared length, then of ever nearer ones around it: to 5e-8."""
    angle, spread = torch.zeros(1).double(), math.pi
    for _ in range(3):  # nearer points would differ in value by rounding alone
        angle = angle + spread * torch.linspace(-1, 1, 1025, dtype=torch.float64)
        x = math.sqrt(level) * torch.stack([angle.cos(), angle.sin()])
        at = int(best(objective(x), dim=0))
        angle, spread = angle[at], spread / 256
    return x[:, at]


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
    """Largest and smallest values on circles, found on a grid: gradients, prices; and the Lagrangian in symbols."""
    level, step = float(draw.uniform(low=1.0, high=2.0)), 1e-4
    parts = []
    for objective, best in ((f, best) for f in (total, skewed) for best in (torch.argmax, torch.argmin)):
        x = optimum(objective, level, best)
        above, below = (objective(optimum(objective, level + change, best)) for change in (step, -step))
        price = sign * (above - below) / (2 * step)  # df*/dc by central differences
        of_f, of_g = jacobian(objective, x), jacobian(squared_length, x)
        multiplier = of_f @ of_g / (of_g @ of_g)  # makes the gradients as parallel as they can be
        figure = None if parts else contours(level, x, pull * price)
        parts += [
            close(of_f, pull * multiplier * of_g, within=1e-6).showing(figure),  # 5e-8 times second derivatives of 6
            close(multiplier, price, within=1e-6),  # the step squared, 1e-8, times a third derivative of some 10
        ]
    x, y, gamma = sympy.symbols("x y gamma", real=True)
    lagrangian = x + y - gamma * (x**2 + y**2 - 2)
    found = sympy.solve([sympy.diff(lagrangian, each) for each in (x, y, gamma)], [x, y, gamma])
    half = sympy.Rational(1, 2)
    return all_of(*parts, exactly(set(found), {(1, 1, half), (-1, -1, -half)}, detail="either sign"))
