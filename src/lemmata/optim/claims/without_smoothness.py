"""Gradient descent on a kink: constant steps end in a cycle, falling steps in the minimum."""

import torch

from lemmata.judge import all_of, at_least, at_most, claim, close, lie
from lemmata.optim.gradient_descent import GradientDescent


def path(optimizer, start, steps, lr):
    """The points that descent on |x| visits, all starts at once; `lr` gives the length of step t = 1, 2, ..."""
    x = start.clone().requires_grad_()
    rule, points = optimizer([x], lr=lr(1)), [start]
    for step in range(1, steps + 1):
        rule.param_groups[0]["lr"] = lr(step)
        rule.zero_grad()
        x.abs().sum().backward()
        rule.step()
        points.append(x.detach().clone())
    return torch.stack(points)  # (steps + 1, starts)


@claim("optim.smooth.needed")
@lie("a constant step that is small enough reaches the minimum", remains=0.0)
@lie("steps whose sum is finite reach it, too", regime="up to the power one the sum is infinite", power=2.0)
def a_constant_step_on_a_kink_ends_in_a_cycle(draw, remains=1.0, power=0.5, optimizer=GradientDescent):
    """Starts that are no multiples of the step: the two points of the cycle; then steps that fall like a power of t."""
    steps = torch.tensor([0.3, 0.1, 0.01], dtype=torch.float64)
    found, cycle = [], []
    for lr in steps.tolist():
        rest = draw.uniform(50, low=0.1 * lr, high=0.9 * lr)
        start = rest + lr * draw.integers(1, 20, 50).double()
        low, high = path(optimizer, start, 40, lambda _, lr=lr: lr)[-2:].sort(0).values
        found += [low, high]
        cycle += [remains * (rest - lr), remains * rest]
    start = draw.uniform(50, low=0.5, high=3.0)
    points = path(optimizer, start, 600, lambda t: 0.5 / t**power)
    crossed = (points[:-1] * points[1:] <= 0).cumsum(0) > 0  # (600, starts): 0 lies behind
    last_step = 0.5 / torch.arange(1, 601, dtype=torch.float64)[:, None] ** power
    return all_of(
        close(torch.stack(found), torch.stack(cycle), within=1e-12),
        at_least(torch.stack(found[::2] + found[1::2]).abs().amax(), 0.15),  # half of the longest step, and more
        at_most(torch.where(crossed, points[1:].abs(), 0.0), last_step.expand(-1, 50)),
        at_most(points[-1].abs(), 0.5 / 600**0.5),
    )
