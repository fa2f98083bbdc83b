"""Narrow valleys: how slowly gradient descent zig-zags along them, and what helps."""

import math

import torch

from lemmata.judge import all_of, at_least, at_most, claim, close, lie
from lemmata.optim.adagrad import Adagrad
from lemmata.optim.adam import Adam
from lemmata.optim.claims.paths import path
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.heavy_ball import HeavyBall
from lemmata.optim.rmsprop import RMSprop


def _quadratic_gradient(hessian):
    """The gradient of a quadratic with its minimum at the origin."""
    return lambda x: hessian @ x


def _steps_needed(make, hessian, start, most):
    """How many steps lower the loss to a millionth, or `most` if more."""
    place, first = torch.nn.Parameter(start.clone()), float(start @ hessian @ start)
    optimizer = make([place])
    for step in range(most):
        place.grad = slope = hessian @ place.detach()
        if float(place.detach() @ slope) <= 1e-6 * first:
            return step
        optimizer.step()
    return most


def descent(kappa):
    return lambda params: GradientDescent(params, lr=2 / (kappa + 1))


def heavy_ball(kappa):
    root = math.sqrt(kappa)
    return lambda params: HeavyBall(params, lr=(2 / (root + 1)) ** 2, momentum=((root - 1) / (root + 1)) ** 2)


def adam(kappa):
    return lambda params: Adam(params, lr=0.1)


def _diagonal_methods():
    """Methods with a step for each coordinate, at step sizes that suit a start of order one."""
    yield lambda params: Adagrad(params, lr=1.0)
    yield lambda params: RMSprop(params, lr=0.03)
    yield adam(1000)


def _mean_contraction(make, kappa, steps):
    """The logarithm of what a step does to the distance, in the mean over `steps` steps after as many others."""
    slope = _quadratic_gradient(torch.diag(torch.tensor([1.0, kappa]).double()))
    places = path(make(kappa), torch.ones(2).double(), slope, 2 * steps)
    return (places[-1].abs().amax() / places[steps].abs().amax()).log() / steps, places


@claim("optim.conditioning.remedies")
@lie("descent does not feel the condition number", plain=0.0)
@lie("the root of the condition number is enough for descent", plain=0.5)
@lie("the heavy ball is no quicker", heavy=1.0)
@lie("the step of the steep coordinate keeps its sign", sign=1.0)
@lie("Adam does not see a rotation either", blind=adam)
def narrow_valleys_and_what_helps(draw, plain=1.0, heavy=0.5, sign=-1.0, blind=heavy_ball):
    """Two coordinates with curvatures 1 and up to 1,000; then ten, along the axes and rotated."""
    found, formula, turns, ratios, kappas = [], [], [], [], (100.0, 1000.0)
    for kappa in kappas:
        rate, places = _mean_contraction(descent, kappa, 200)
        found.append(rate)
        formula.append(math.log1p(-2 / (kappa**plain + 1)) if plain else -math.inf)
        turns.append(places[1:, 1] / places[:-1, 1] * (kappa + 1) / (kappa - 1))
    zigzag = all_of(close(found, formula, ulps=2**16), close(torch.cat(turns), sign, ulps=2**16))
    if not zigzag.holds:
        return zigzag
    for kappa in kappas:
        rate, _ = _mean_contraction(heavy_ball, kappa, round(50 * math.sqrt(kappa)))
        ratios.append(rate / math.log1p(-2 / (kappa**heavy + 1)))
    # The two roots coincide: n steps do a factor of two more than the n before, a hundredth of their logarithm.
    ball = close(ratios, 1.0, within=0.01)
    if not ball.holds:
        return ball
    q, start = draw.orthogonal(10), draw.signs(10) * draw.uniform(10, low=0.5, high=2.0)
    straight = torch.diag(10.0 ** torch.linspace(0, 3, 10).double())
    turned = q @ straight @ q.T
    slow = _steps_needed(descent(1000), straight, start, most=10_000)
    aligned = [_steps_needed(make, straight, start, most=slow) for make in _diagonal_methods()]
    rotated = [
        _steps_needed(make, turned, q @ start, most=4 * n) for make, n in zip(_diagonal_methods(), aligned, strict=True)
    ]
    makes = [make(1000) for make in (descent, blind)]
    plainly = [path(make, start, _quadratic_gradient(straight), 50) for make in makes]
    turning = [path(make, q @ start, _quadratic_gradient(turned), 50) @ q for make in makes]
    return all_of(
        zigzag,
        ball,
        at_most(torch.tensor(aligned).double(), slow / 20),
        at_least(torch.tensor(rotated).double(), 3 * torch.tensor(aligned).double()),
        close(turning, plainly, ulps=2**16, scale=10.0),
    )
