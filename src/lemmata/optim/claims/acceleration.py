"""Acceleration: the rates of Nesterov's method, and a function on which the heavy ball goes round for ever."""

import torch

from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import all_of, at_most, claim, close, lie, slope_is
from lemmata.optim.claims.smooth_functions import slopes
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path
from lemmata.optim.heavy_ball import HeavyBall
from lemmata.optim.nesterov import Nesterov


def chain(n):
    """Nesterov's worst quadratic, of smoothness 4: each variable is tied to the next, and only the first is pulled."""
    matrix = 2 * torch.eye(n, dtype=torch.float64) - torch.diag(torch.ones(n - 1).double(), 1)
    matrix = matrix - torch.diag(torch.ones(n - 1).double(), -1)
    pull = torch.zeros(n, dtype=torch.float64)
    pull[0] = -1.0
    return QuadraticFunction(matrix, pull), torch.linalg.solve(matrix, -pull)


def iterates(optimizer, f, start, steps, lr, settings=None, **chosen):
    """The iterates of an accelerated method, whose path is that of its look-ahead points."""
    ahead = descent_path(f, start, steps, lambda p: optimizer(p, lr=lr, **chosen), settings)[:-1]
    return torch.cat([start[None], ahead - lr * slopes(f, ahead)])


def growing_momentum(step):
    """(t - 1)/(t + 2) before step t = 1, 2, ..."""
    return {"momentum": step / (step + 3)}


def rounded_corner(slopes):
    """|x| with some slope, rounded by a parabola of curvature 1: the worst of them is the worst for descent at all."""

    def value(x):
        size = x[..., 0].abs()
        return torch.where(size > slopes, slopes * size - slopes**2 / 2, size**2 / 2)

    return value


@claim("optim.nesterov.rate")
@lie("acceleration gives 1/t³", loose="a slower rate holds too", power=3.0)
@lie("descent alone gives 1/t²", plain=2.0)
@lie("the factor of strongly convex functions is that of descent", root=1.0)
def acceleration_has_better_guarantees(
    draw, power=2.0, plain=1.0, root=0.5, optimizer=GradientDescent, accelerated=Nesterov
):
    """A chain of variables, and 100 rounded corners of which the worst counts; quadratics of three conditions."""
    (tied, lowest), taken = chain(50), torch.arange(1.0, 201.0, dtype=torch.float64)
    corners, ones = rounded_corner(torch.logspace(-5.0, -1.0, 100, dtype=torch.float64)), torch.ones(100, 1).double()

    def above(method, settings=None, **chosen):  # heights over L times the squared distance, (steps, functions)
        chained = iterates(method, tied, torch.zeros_like(lowest), 200, 0.25, settings, **chosen)
        cornered = corners(iterates(method, corners, ones, 200, 1.0, settings, **chosen))
        long = (tied(chained) - tied(lowest)) / (4 * lowest.square().sum())
        return torch.stack([long, cornered.amax(1)], -1)[1:]

    fast, slow = above(accelerated, growing_momentum, momentum=0.0), above(optimizer)
    kappas, rates, heights = torch.tensor([25.0, 100.0, 400.0], dtype=torch.float64), [], []
    for kappa in kappas:
        curvatures = torch.stack([1 / kappa, torch.ones_like(kappa)])
        steps, momentum = int(20 * kappa**0.5), float((kappa**0.5 - 1) / (kappa**0.5 + 1))
        f, start = QuadraticFunction(torch.diag(curvatures)), torch.tensor([1.0, 0.3], dtype=torch.float64)
        path = iterates(accelerated, f, start, steps, 1.0, momentum=momentum)
        rates.append(1 - (path[-1, 0] / path[steps // 2, 0]) ** (2 / steps))
        bound = (1 - kappa**-root) ** torch.arange(steps + 1).double() * (f(start) + start.square().sum() / (2 * kappa))
        heights.append(f(path) - bound)
    return all_of(
        at_most(fast, (2 / (taken + 1) ** power)[:, None]),
        at_most(slow, (1 / (2 * taken**plain))[:, None]),
        slope_is(taken[50:], slow[50:, 1], -plain, within=0.015),
        at_most(torch.cat(heights), 1e-15),
        slope_is(kappas, rates, -root, within=0.015),
    )


def bent_line(x):
    """Its slope is 25x below 1, x + 24 up to 2, and 25x - 24 above: curvatures 25, 1 and 25."""
    x = x[..., 0]
    below, between, above = 12.5 * x**2, x**2 / 2 + 24 * x - 12, 12.5 * x**2 - 24 * x + 36
    return torch.where(x < 1, below, torch.where(x < 2, between, above))


def cycle_of_three(eta=1 / 9, beta=4 / 9):
    """One point above 2 and two below 1, from x' = (1 + β - 25η)x - βx'' - η(-24 or 0) for each of them."""
    one, shift = torch.eye(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64).roll(1, 1)  # to the next point
    matrix = shift - (1 + beta - 25 * eta) * one + beta * shift.T
    return torch.linalg.solve(matrix, torch.tensor([24 * eta, 0.0, 0.0], dtype=torch.float64))


@claim("optim.heavy_ball.counterexample")
@lie("it comes to rest", period=1)
@lie("it goes round with steps of 1/L as well", rate=1 / 25)
@lie("it goes round from 3 as well", regime="starts from 3.06 on lead to the same cycle", loose="up to 3.46", start=3.0)
def the_heavy_ball_can_go_round_for_ever(
    draw, period=3, rate=1 / 9, start=3.3, optimizer=HeavyBall, accelerated=Nesterov
):
    """Two hundred steps: the cycle, against its equations; and Nesterov's method, which converges."""
    place = torch.tensor([start], dtype=torch.float64)
    path = descent_path(bent_line, place, 200, lambda p: optimizer(p, lr=rate, momentum=4 / 9))[-30:, 0]
    end = descent_path(bent_line, place, 200, lambda p: accelerated(p, lr=1 / 25, momentum=2 / 3))[-1]
    return all_of(
        close(path[period:], path[:-period], within=1e-9),
        close(path.sort().values, cycle_of_three().sort().values.repeat_interleave(10), within=1e-9),
        at_most(end.abs(), 1e-10),
    )
