"""Gradient descent: its closed form on a quadratic, where it ends, minibatches, and step sizes that suffice."""

import math
from typing import Any

import sympy
import torch

from lemmata.judge import all_of, at_most, claim, close, exactly, lie, mean_is
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
@lie("1/√t satisfies both", printed="002/1", both=0.5)
@lie("1/t satisfies only the first", first=1.0, loose="smaller exponents satisfy only the first too")
@lie("1/t satisfies only the second", second=1.0)
@lie("constant steps let the noise die out as well", steady=0.0)
def steps_of_one_over_t_satisfy_both(
    draw, both=1.0, first=0.5, second=2.0, steady=1 / 3, optimizer=GradientDescent, schedule=PowerDecay
):
    """Convergence of the series; then descents with noise, one for each step's noise, whose squares add up."""

    def descend(lr, power, gradients, start):
        theta = start.clone().requires_grad_()
        descent = optimizer([theta], lr=lr)
        decay, path = schedule(descent, power), []
        for gradient in gradients:
            theta.grad = gradient(theta.detach())
            descent.step()
            decay.step()
            path.append(theta.detach().clone())
        return torch.stack(path)

    noisy, steps = draw.normal(100, 8) + 3, 400
    mean = descend(1.0, both, [lambda theta, x=x: theta - x for x in noisy], torch.zeros(8).double())[-1]
    stalled = descend(0.25, second, [lambda theta: theta] * steps, torch.ones(1).double())[-1]
    # All is linear: the first entry starts at 1 without noise, each of the others at 0 with the noise of one step.
    start, *noise = torch.eye(steps + 1).double()
    pushed = [lambda theta, xi=xi: theta + xi for xi in noise]
    squares = [descend(1.0, power, pushed, start).square().sum(1) for power in (both, 0.75)]
    t = torch.arange(1, steps + 1).double()
    left = descend(0.5, 0.0, pushed, start)[-1].square().sum()
    return all_of(
        exactly([sums(both), sums(first), sums(second)], [(True, True), (True, False), (False, True)]),
        close(mean, noisy.mean(0), ulps=1000),
        # By induction, since (t + 1)^p - t^p <= 1; for p = 1 both sides are equal.
        at_most(torch.stack(squares), torch.stack([t**-both, t**-0.75]), ulps=1000),
        close(left, steady, within=1e-12),
        # The product of the 1 - 1/(4 t²) is 2/π; what `steps` factors lack of it is 1/(4 steps) of it at most.
        close(stalled, 2 / math.pi, within=2 / math.pi / (4 * steps)),
    )
