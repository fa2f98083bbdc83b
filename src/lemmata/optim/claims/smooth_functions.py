"""Smooth functions with known constants, on which the claims about rates are tried."""

from dataclasses import dataclass
from typing import Any

import torch

from lemmata.foundations.analysis.claims.functions import spectrum
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.optim.landscapes import landscape


@dataclass(frozen=True)
class Smooth:
    """A function of (..., n), a Lipschitz constant of its gradient, a lower bound on it, and starts (points, n)."""

    function: Any
    smoothness: float
    least: float
    starts: Any


def bowl(curvature):
    """The parabola on which every bound about smooth functions is reached."""
    return lambda x: curvature / 2 * x.square().sum(-1)


def smooth_functions(draw, points=50):
    """Quadratics, tiny and huge; a logistic loss, a sum of cosines, the logarithm of a sum; ripples, not convex."""
    data, labels, waves = draw.normal(20, 3), draw.signs(20), draw.normal(5, 3)
    starts = 2 * draw.normal(points, 3)
    quadratic = QuadraticFunction(spectrum(draw, 0.0, 0.5, 4.0))
    return [
        Smooth(bowl(1e-6), 1e-6, 0.0, starts),
        Smooth(bowl(1e6), 1e6, 0.0, starts),
        Smooth(quadratic, 4.0, 0.0, starts),
        Smooth(
            lambda w: torch.nn.functional.softplus(-labels * (w @ data.T)).mean(-1),
            float(torch.linalg.matrix_norm(data, 2)) ** 2 / 80,  # a quarter of the mean of squares
            0.0,
            starts,
        ),
        Smooth(lambda x: torch.cos(x @ waves.T).sum(-1), float(torch.linalg.matrix_norm(waves, 2)) ** 2, -5.0, starts),
        # Above the logarithm of a sum of exponentials of +x and -x lies log 6 at least.
        Smooth(lambda x: torch.logsumexp(torch.cat([x, -x], -1), -1), 1.0, 1.79, starts),
        Smooth(landscape("ripples"), 8.0, 0.0, starts[:, :2]),
    ]


def slopes(f, x):
    """The gradient at every row."""
    x = x.detach().requires_grad_()
    (found,) = torch.autograd.grad(f(x).sum(), x)
    return found
