"""Gradient descent: its closed form on a quadratic, where it ends, minibatches, and step sizes that suffice."""

import math
from typing import Any

import sympy
import torch

from lemmata.judge import all_of, claim, close, exactly, lie, mean_is
from lemmata.optim.claims.paths import path
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.heavy_ball import HeavyBall
from lemmata.optim.schedules import PowerDecay


@claim("optim.gd")
@lie("uphill", sign=1.0)
@lie("the last displacement counts too", optimizer=HeavyBall)
def it_contracts_a_quadratic(draw, sign=-1.0, optimizer=GradientDescent):
    """Two hundred steps in twenty dimensions, against the power of I - ηH that theory gives."""
    hessian, start, end = draw.covariance(20), draw.normal(20), draw.normal(20)
    eta = 0.1
    found = path(lambda p: optimizer(p, lr=eta), start, lambda theta: hessian @ (theta - end), 200)
    eigenvalues, vectors = torch.linalg.eigh(hessian)
    factors = (1 + sign * eta * eigenvalues) ** torch.arange(201)[:, None]  # (steps, directions)
    return close(found, end + factors * (vectors.T @ (start - end)) @ vectors.T, ulps=2000)


def double_well(theta):
    """The gradient of (x² - 1)² + y²."""
    x, y = theta.unbind(-1)
    return torch.stack([4 * x * (x**2 - 1), 2 * y], -1)


def bowl(theta):
    """The gradient of x² + y²."""
    return 2 * theta


@claim("optim.gd.init_dependence")
@lie("all starts lead to one minimum", limit=torch.ones_like)
@lie("a convex function has two limits as well", landscape=bowl)
@lie("a start at x = 0 ends in a minimum", limit=lambda x: torch.where(x >= 0, 1.0, -1.0).double())
def where_it_ends_depends_on_the_start(draw, landscape=double_well, limit=torch.sign, optimizer=GradientDescent):
    """441 starts in the plane of (x² - 1)² + y², whose minima are (±1, 0) and whose saddle is the origin."""
    line = torch.arange(-10, 11).double() / 5  # with a zero that is one
    starts = torch.cartesian_prod(line, line)
    ends = path(lambda p: optimizer(p, lr=0.05), starts, landscape, 400)[-1]
    expected = torch.stack([limit(starts[:, 0]), torch.zeros(len(starts)).double()], -1)
    return close(ends, expected, within=1e-12)  # y shrinks by 0.9 a step


def anew(draw, chains, examples, steps, batch):
    return draw.integers(0, examples, steps, chains, batch)


def once(draw, chains, examples, steps, batch):
    return draw.integers(0, examples, 1, chains, batch).expand(steps, -1, -1)


@claim("optim.sgd")
@lie("the index is drawn once and kept", sampling=once)
@lie("the gradients of a minibatch are summed up", reduce=torch.sum)
def on_average_it_is_gradient_descent(draw, sampling=anew, reduce=torch.mean, optimizer=GradientDescent):
    """Regression by minibatches of two with steps that fall like 1/t, against the same steps on all examples."""
    examples, steps, batch = 16, 10, 2
    x, y = draw.normal(examples, 3), draw.normal(examples)
    # Rounded: the last bits of a solver turn on where its numbers lie in memory.
    start = torch.linalg.lstsq(x, y[:, None]).solution[:, 0].round(decimals=6) + 3 * draw.unit(3)

    def ends(gradient, chains):
        theta = start.repeat(chains, 1).requires_grad_()
        descent = optimizer([theta], lr=0.25)
        schedule = PowerDecay(descent, delay=4.0)
        for chosen in sampling(draw, chains, examples, steps, batch):  # (chains, batch)
            theta.grad = gradient(theta.detach(), chosen)
            descent.step()
            schedule.step()
        return theta.detach()

    def of_some(theta, chosen):
        errors = (x[chosen] * theta[:, None]).sum(-1) - y[chosen]
        return reduce(errors[..., None] * x[chosen], 1)

    whole = ends(lambda theta, chosen: ((x * theta).sum(-1) - y).unsqueeze(-1).mul(x).mean(0, keepdim=True), 1)[0]
    along = torch.nn.functional.normalize(whole - start, dim=0)
    end = float((whole * along).sum())
    return mean_is(lambda theta: (theta * along).sum(-1), lambda chains: ends(of_some, chains), end, effect=0.02)


def sums(power):
    """Whether the steps of c/t^p add up to infinity, and their squares to something finite."""
    t, p = sympy.Symbol("t", positive=True, integer=True), sympy.Rational(str(power))
    series: list[Any] = [sympy.Sum(t**-exponent, (t, 1, sympy.oo)) for exponent in (p, 2 * p)]
    return not series[0].is_convergent(), bool(series[1].is_convergent())


@claim("optim.robbins_monro")
@lie("1/√t satisfies both", printed="002/1", both=0.5, regime="every exponent above 1/2 satisfies both")
@lie("1/t satisfies only the first", first=1.0, loose="smaller exponents satisfy only the first too")
@lie(
    "1/t satisfies only the second",
    second=1.0,
    regime="every exponent above 1 satisfies the second alone",
    loose="larger exponents do so too",
)
def steps_of_one_over_t_satisfy_both(draw, both=1.0, first=0.5, second=2.0, optimizer=GradientDescent):
    """Convergence of the series; the mean of 100 numbers, found by steps 1/t; and steps of 1/(4 t²), which stall."""

    def descend(lr, power, gradients):
        theta = torch.zeros(8).double().requires_grad_()
        descent = optimizer([theta], lr=lr)
        schedule = PowerDecay(descent, power)
        for gradient in gradients:
            theta.grad = gradient(theta.detach())
            descent.step()
            schedule.step()
        return theta.detach()

    noisy, steps = draw.normal(100, 8) + 3, 1000
    mean = descend(1.0, 1.0, [lambda theta, x=x: theta - x for x in noisy])
    stalled = descend(0.25, 2.0, [lambda theta: theta - 1] * steps)
    # The product of the 1 - 1/(4 t²) is 2/π; what 1,000 factors lack of it is 1/(4 · 1000) of it at most.
    return all_of(
        exactly([sums(both), sums(first), sums(second)], [(True, True), (True, False), (False, True)]),
        close(mean, noisy.mean(0), ulps=1000),
        close(1 - stalled, 2 / math.pi, within=2 / math.pi / (4 * steps)),
    )
