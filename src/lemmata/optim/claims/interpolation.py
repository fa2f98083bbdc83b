"""Stochastic gradients where every example can be fitted: a constant step and no floor of noise."""

import torch

from lemmata.judge import all_of, at_least, at_most, claim, lie
from lemmata.optim.gradient_descent import GradientDescent


def per_example(x):
    """The largest smoothness of an example's loss."""
    return x.square().sum(-1).amax()


def of_the_mean(x):
    """The smoothness of the mean loss."""
    return torch.linalg.eigvalsh(x.mT @ x / len(x)).amax()


def problems(draw, noise):
    """Least squares: more weights than examples, orthonormal examples, and with noise more examples than weights."""
    wide, square = draw.normal(6, 12), draw.orthogonal(8)[:6]
    tall = draw.normal(40, 5)
    inputs = (tall,) if noise else (wide, square)
    return [(x, x @ draw.normal(x.shape[1]) + noise * draw.normal(len(x))) for x in inputs]


def losses_after_one_step(optimizer, x, y, w, lr):
    """The mean loss after a step on each single example, (examples,)."""
    found = []
    for row, target in zip(x, y, strict=True):
        weights = w.clone().requires_grad_()
        rule = optimizer([weights], lr=float(lr))
        (0.5 * (row @ weights - target).square()).backward()
        rule.step()
        found.append(0.5 * (x @ weights.detach() - y).square().mean())
    return torch.stack(found)


@claim("optim.sgd.pl_star")
@lie("the smoothness of the mean loss will do for single examples", printed="004/1", smoothness=of_the_mean)
@lie("the same rate holds where the examples cannot all be fitted", noise=1.0)
@lie("the gain is twice as large", loose="a smaller gain is gained, too", gain=2.0)
def one_random_example_a_step_still_contracts(
    draw, smoothness=per_example, noise=0.0, gain=1.0, optimizer=GradientDescent
):
    """The exact mean over the example of one step, at starts far and near; then a run to the last digit."""
    measured, bounds, ends, starts = [], [], [], []
    for x, y in problems(draw, noise):
        kernel = torch.linalg.eigvalsh(x @ x.mT / len(x) if len(x) <= x.shape[1] else x.mT @ x / len(x))
        least, largest, beta = kernel[0], kernel[-1], smoothness(x)
        lr = least / (largest * beta)
        solution = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
        for size in (3.0, 0.3, 1e-3):
            w = solution + size * draw.normal(x.shape[1])
            loss = 0.5 * (x @ w - y).square().mean()
            measured.append(losses_after_one_step(optimizer, x, y, w, lr).mean())
            bounds.append((1 - gain * least**2 / (largest * beta)) * loss)
        w, order = solution + draw.normal(x.shape[1]), draw.integers(0, len(x), 800).tolist()
        starts.append(0.5 * (x @ w - y).square().mean())
        weights = w.clone().requires_grad_()
        rule = optimizer([weights], lr=float(1 / per_example(x)))
        for chosen in order:
            rule.zero_grad()
            (0.5 * (x[chosen] @ weights - y[chosen]).square()).backward()
            rule.step()
        ends.append(0.5 * (x @ weights.detach() - y).square().mean())
    return all_of(
        at_most(torch.stack(measured), torch.stack(bounds), ulps=1e4),
        at_most(torch.stack(ends), 1e-3 * torch.stack(starts)),
        at_least(torch.stack(starts), 1e-3),
    )
