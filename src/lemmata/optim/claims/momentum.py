"""Momentum: the heavy ball in both its forms, gradients that persist, alternate or are noise; and Nesterov."""

import torch

from lemmata.judge import all_of, always, at_most, claim, close, lie, mean_is
from lemmata.optim.claims.paths import driven, path
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path
from lemmata.optim.heavy_ball import HeavyBall
from lemmata.optim.nesterov import Nesterov

BETAS = (0.0, 0.5, 0.9)


@claim("optim.heavy_ball")
@lie("the gradient is added", sign=1.0)
@lie(
    "the ball comes to rest for β = 1 too",
    friction=1.0,
    regime="with less friction it comes to rest later",
    loose="with more friction it comes to rest as well",
)
@lie("the gradient is taken ahead of the ball", optimizer=Nesterov)
@lie("a new step size scales the last displacement too", optimizer=GradientDescent)
def a_ball_with_friction(draw, sign=-1.0, friction=0.9, optimizer=HeavyBall):
    """A run on a quadratic with step sizes that change, against both forms; and the ball's rest, which needs β < 1."""
    hessian, start, beta, etas = draw.covariance(8), draw.normal(8), 0.9, draw.uniform(200, low=0.02, high=0.1)
    found = descent_path(
        lambda theta: ((theta @ hessian) * theta).sum(-1) / 2,
        start,
        200,
        lambda p: optimizer(p, lr=0.1, momentum=beta),
        lambda step: {"lr": float(etas[step])},
    )
    now, before = found[1:-1], found[:-2]
    three = now + sign * etas[1:, None] * now @ hessian + beta * (now - before)
    displacement, two = torch.zeros(8).double(), [start]
    for eta in etas:
        displacement = beta * displacement + sign * eta * hessian @ two[-1]
        two.append(two[-1] + displacement)
    rolled = path(lambda p: optimizer(p, lr=0.1, momentum=friction), start, lambda theta: hessian @ theta, 600)
    return all_of(
        close(found[2:], three, ulps=100),
        close(found, torch.stack(two), ulps=2000),
        # Every factor has modulus √β: 600 steps leave 0.9^300, times a few from the crossing of two eigenvalues.
        at_most(rolled[-1].norm(), 1e-12 * start.norm()),
    )


def geometric(beta):
    return 1 / (1 - beta)


def doubled(beta):
    return 1 + beta


@claim("optim.heavy_ball.constant_gradient")
@lie("the sum starts at τ = 1", printed="000/1", first=1)
@lie("the current gradient does not enter", printed="003/2", first=1)
@lie("the effective rate is η(1 + β)", rate=doubled)
def steps_grow_to_the_effective_rate(draw, first=0, rate=geometric, optimizer=HeavyBall):
    """Four hundred steps along constant gradients for three momenta, from a ball at rest."""
    delta, eta = draw.normal(6), 0.1
    t = torch.arange(1, 401).double()[:, None]
    steps, sums, limits = [], [], []
    for beta in BETAS:
        steps.append(driven(lambda p, beta=beta: optimizer(p, lr=eta, momentum=beta), delta.expand(400, -1)))
        sums.append(-eta * (beta**first - beta**t) / (1 - beta) * delta)
        limits.append(-eta * rate(beta) * delta)
    found = torch.stack(steps)  # (momenta, steps, coordinates)
    return all_of(
        close(found, torch.stack(sums), ulps=1000),
        close(found[:, -1], torch.stack(limits), ulps=1000),
        always(found[1:].abs().diff(dim=1)[:, :30] > 0),
    )


def damped(beta):
    return 1 / (1 + beta)


def complement(beta):
    return 1 - beta


@claim("optim.momentum.sign_filter")
@lie("a persistent gradient gains 1/√(1 - β)", power=0.5)
@lie("an alternating gradient gains 1 - β", alternating=complement)
def it_passes_what_persists(draw, power=1.0, alternating=damped, optimizer=HeavyBall):
    """Steps after four hundred gradients that persist, and as many that alternate, for three momenta."""
    signs = torch.stack([torch.ones(400), (-1.0) ** torch.arange(400)], -1).double()
    size, eta = draw.uniform(1, low=0.5, high=2.0), 0.1
    ends = [driven(lambda p, b=beta: optimizer(p, lr=eta, momentum=b), signs * size)[-1] for beta in BETAS]
    gains = (torch.stack(ends) / (-eta * signs[-1] * size)).T  # (kinds, momenta)
    return all_of(
        close(gains[0], [(1 - beta) ** -power for beta in BETAS], ulps=1000),
        close(gains[1], [alternating(beta) for beta in BETAS], ulps=1000),
    )


def averaged(beta):
    return (1 - beta) / (1 + beta)


def squared(beta):
    return (1 - beta) ** 2


def unscaled(beta):
    return 1 / (1 - beta**2)


@claim("optim.momentum.noise")
@lie("the variance ratio is (1 - β)²", ratio=squared)
@lie("the velocity without the factor 1 - β has this variance too", ratio=unscaled)
@lie("the standard deviation falls by this factor", power=2.0)
def averaging_smooths_noise(draw, ratio=averaged, power=1.0, optimizer=HeavyBall):
    """The weights of past gradients, whose squares add up to the ratio; and noise itself, for β = 1/2."""

    def smoothed(beta, gradients):
        return -driven(lambda p: optimizer(p, lr=1 - beta, momentum=beta), gradients)

    impulse = torch.eye(300)[:, :1].double()
    found = [smoothed(beta, impulse).square().sum() for beta in BETAS]
    noise = lambda chains: smoothed(0.5, draw.normal(30, chains))[-1]  # noqa: E731
    return all_of(
        close(found, [ratio(beta) ** power for beta in BETAS], ulps=1000),
        mean_is(torch.square, noise, ratio(0.5) ** power, effect=0.02),
    )


@claim("optim.nesterov")
@lie("the gradient is taken at θ_t", optimizer=HeavyBall)
@lie("the look-ahead point is twice as far", factor=2.0)
@lie("the iterate goes uphill", sign=1.0)
def it_looks_ahead(draw, factor=1.0, sign=-1.0, optimizer=Nesterov):
    """A run on a convex function: the points where gradients are taken are those the two lines give."""
    matrix, start, eta, beta = draw.normal(6, 6), draw.normal(6), 0.05, 0.9

    def gradient(theta):
        return theta + torch.tanh(theta @ matrix.T) @ matrix  # of |θ|²/2 + Σ log cosh (Mθ)

    chi = path(lambda p: optimizer(p, lr=eta, momentum=beta), start, gradient, 100)
    theta = torch.cat([start[None], chi + sign * eta * gradient(chi)])  # θ_0, θ_1, ... from χ_1, χ_2, ...
    ahead = theta[1:] + factor * beta * theta.diff(dim=0)
    return close(chi[1:], ahead[:-1], ulps=1000)
