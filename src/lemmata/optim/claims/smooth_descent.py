"""Gradient descent on smooth functions: what one step gains, how soon the gradient is small, which step is best."""

import math

import torch

from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie, slope_is
from lemmata.optim.claims.smooth_functions import bowl, slopes, smooth_functions
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path
from lemmata.optim.landscapes import landscape
from lemmata.optim.nesterov import Nesterov
from lemmata.optim.stepsizes import best_constant_step

SLACK = 1e-12  # times the size of the terms: what rounding may add to a value


def after(optimizer, f, x, lr, steps=1):
    """The points after some steps of this length."""
    return descent_path(f, x, steps, lambda parameters: optimizer(parameters, lr=lr))[-1]


@claim("optim.smooth.one_step")
@lie("the bend costs a quarter", half=0.25)
@lie("steps up to 3/L decrease the function", limit=3.0)
@lie("half of 1/L gains most", best=0.5)
def one_step_gains_by_its_length(draw, half=0.5, limit=2.0, best=1.0, optimizer=GradientDescent):
    """Seven functions, steps short and long; on a parabola the bound is reached, and shows the limit and the best."""
    excess, fallen = [], []
    for each in smooth_functions(draw):
        f, x, bend = each.function, each.starts, each.smoothness
        squares = slopes(f, x).square().sum(-1)
        for share in (0.01, 0.5, 1.0, 1.5, 1.99, 3.0):
            lr = share / bend
            change, gain = f(after(optimizer, f, x, lr)) - f(x), lr * (1 - half * share) * squares
            excess.append((change + gain) / (f(x).abs() + squares / bend))
            fallen.append(change < 0) if share < 2 else None
    x, curvature = 1 + draw.uniform(30, 1), 3.0
    parabola = bowl(curvature)

    def gained(share):
        return parabola(x) - parabola(after(optimizer, parabola, x, share / curvature))

    shares = torch.tensor([0.3, 1.0, 2.2], dtype=torch.float64)[:, None]
    found = torch.stack([gained(float(share)) for share in shares])
    return all_of(
        at_most(torch.cat(excess), SLACK),
        always(torch.cat(fallen)),
        close(found, shares / curvature * (1 - half * shares) * slopes(parabola, x).square().sum(-1), within=1e-12),
        always(torch.cat([gained(0.99 * limit) > 0, gained(1.01 * limit) < 0])),
        at_least(gained(best), torch.stack([gained(0.99 * best), gained(1.01 * best)])),
    )


def one_step(optimizer, f, x, lr):
    return after(optimizer, f, x, lr)


def any_other_point(optimizer, f, x, lr):
    return x.roll(1, 0)


def equals(left, right):
    return (left - right).abs() <= SLACK


@claim("optim.smooth.sufficient_decrease")
@lie("the decrease is an equality", printed="003/1", relation=equals)
@lie("the value at every other point is as low", reached=any_other_point)
@lie("the decrease is twice as large", double=1.0)
@lie("a start beside the saddle stays as well", beside=0.001)
def a_step_of_one_over_l_gains_enough(
    draw, double=2.0, relation=torch.le, reached=one_step, beside=0.0, optimizer=GradientDescent
):
    """Seven functions at random points; the parabola that reaches the bound; gradients in the end; and a saddle."""
    kept, ends = [], []
    for each in smooth_functions(draw, points=100):
        f, x, lr = each.function, each.starts, 1 / each.smoothness
        squares = slopes(f, x).square().sum(-1) / each.smoothness
        size = f(x).abs() + squares  # of the terms that are compared
        kept.append(relation((f(reached(optimizer, f, x, lr)) - f(x) + squares / double) / size, SLACK))
        rest = slopes(f, after(optimizer, f, x[:5], lr, steps=200)).norm(dim=-1)
        ends.append(rest / slopes(f, x[:5]).norm(dim=-1).clamp(min=each.smoothness))
    x, parabola = 1 + draw.uniform(30, 1), bowl(4.0)
    saddle = landscape("saddle")
    start = torch.tensor([0.0, beside], dtype=torch.float64)
    return all_of(
        always(torch.cat(kept)),
        close(parabola(x) - parabola(after(optimizer, parabola, x, 1 / 4)), (4 * x[:, 0]) ** 2 / (double * 4)),
        # The logistic loss and the logarithm of a sum flatten slowly; all the others are at rest.
        at_most(torch.cat(ends), 0.05),
        exactly(after(optimizer, saddle, start, 1 / saddle.smoothness, steps=100), start),
    )


def zigzag(x, slope):
    """A slow ramp of smoothness 1: it falls by `slope` at every iterate, by half of that between two, into a bowl.

    Steps of length 1 go `slope` forwards. Between two iterates the derivative rises to -slope/2 and falls back, as
    fast as smoothness allows, so that a step gains 3/4 slope²: the least that these slopes at its ends leave.
    """
    place = x[..., 0] / slope
    strides = place.clamp(max=0).floor()
    rest = place - strides  # from 0 to 1 along a stride
    tooth = torch.where(rest < 0.5, rest - rest**2 / 2, 0.25 + rest**2 / 2)
    return slope**2 * torch.where(place < 0, -0.75 * strides - tooth, (place - 1) ** 2 / 2 - 0.5)


@claim("optim.gd.eps_critical_rate")
@lie("the number of steps is proportional to 1/ε", power=1.0)
@lie("half as many steps suffice", loose="more steps suffice too", double=1.0)
def the_gradient_is_small_soon(draw, power=2.0, double=2.0, optimizer=GradientDescent):
    """The smallest gradient of seven functions after each number of steps; and ramps on which descent is slow."""
    smallest, bounds = [], []
    for each in smooth_functions(draw, points=10):
        f, bend, steps = each.function, each.smoothness, 100
        path = descent_path(f, each.starts, steps - 1, lambda p, bend=bend: optimizer(p, lr=1 / bend))
        squares = slopes(f, path).square().sum(-1)  # (steps, points)
        taken = torch.arange(1, steps + 1).double()[:, None]
        smallest.append(squares.cummin(0).values / bend)
        bounds.append(double / taken * (f(each.starts) - each.least) * (1 + SLACK))
    eps = 2.0 ** -torch.arange(2.0, 5.0, dtype=torch.float64)  # whose multiples, the iterates, are exact
    strides = (4 / 3 / eps**2).round()
    start = -(strides * eps)[:, None]
    path = descent_path(lambda x: zigzag(x, eps), start, int(strides.max()) + 1, lambda p: optimizer(p, lr=1.0))
    needed = (slopes(lambda x: zigzag(x, eps), path)[..., 0].abs() >= eps).sum(0)  # steps to a smaller gradient
    height = zigzag(start, eps) + eps**2 / 2
    return all_of(
        at_most(torch.cat(smallest), torch.cat(bounds)),
        at_most(needed, double * height / eps**power),
        slope_is(eps, needed / height, -power, within=0.02),
    )


def two_over_the_sum(largest, least):
    return 2 / (largest + least)


def one_over_the_largest(largest, least):
    return 1 / largest


@claim("optim.gd.stepsize_optimality")
@lie("1/L is the best constant step for quadratics", step=one_over_the_largest)
@lie("the best factor is 1 - 2/κ", more=0.0)
@lie(
    "descent with the best step is as fast as any method",
    regime="less momentum is faster too",
    loose="more is, up to 0.97",
    momentum=0.0,
)
def the_best_constant_step(
    draw, step=two_over_the_sum, more=1.0, momentum=9 / 11, optimizer=GradientDescent, accelerated=Nesterov
):
    """Steps up to 1/L never rise; the factor of one step on a quadratic with κ = 100; and a method that is faster."""
    rises = []
    for each in smooth_functions(draw, points=10):
        for share in (0.1, 1.0):
            lr = share / each.smoothness
            values = each.function(descent_path(each.function, each.starts, 5, lambda p, lr=lr: optimizer(p, lr=lr)))
            rises.append(values.diff(dim=0) / values[0].abs())
    least, largest = 0.05, 5.0
    kappa, start = largest / least, torch.ones(20, dtype=torch.float64)
    curvatures = torch.logspace(math.log10(least), math.log10(largest), 20, dtype=torch.float64)

    def valley(x):
        return (curvatures * x.square()).sum(-1) / 2

    def radius(lr):
        return float(after(optimizer, valley, start, lr).abs().max())  # the worst factor of one step

    best = step(largest, least)
    others = [radius(share * best) for share in (0.9, 0.99, 1.01, 1.1)] + [radius(1 / largest)]
    point = start.clone().requires_grad_()
    shipped = best_constant_step(lambda: valley(point), [point])
    fast = descent_path(valley, start, 100, lambda p: accelerated(p, lr=1 / largest, momentum=momentum))
    return all_of(
        at_most(torch.cat(rises), SLACK),
        at_least(others, radius(best)),
        close(radius(shipped), (kappa - more) / (kappa + more)),
        at_most(valley(fast[-1]) / valley(after(optimizer, valley, start, shipped, steps=100)), 0.01),
    )
