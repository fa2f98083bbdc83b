"""Learning rates for each coordinate: what they do not depend on, AdaGrad, RMSProp, Adam and its bias correction."""

from typing import Any

import torch

from lemmata.judge import ALPHA, all_of, always, claim, close, lie, mean_is
from lemmata.optim.adagrad import Adagrad
from lemmata.optim.adam import Adam, AdamW
from lemmata.optim.claims.paths import driven
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.rmsprop import RMSprop

SCALES = 10.0 ** torch.arange(-3, 4).double()


@claim("optim.adaptive.principle")
@lie("gradient descent does so too", optimizers=(GradientDescent, Adagrad, RMSprop, Adam))
@lie("the rate falls with the square root of the size", power=0.5)
@lie("the rate falls with the mean square, without a root", power=2.0)
def rates_are_inverse_to_past_gradients(draw, power=1.0, optimizers=(Adagrad, RMSprop, Adam)):
    """Gradients in seven coordinates that differ by a factor only, from a thousandth to a thousand: equal steps."""
    common = draw.normal(50, 1)
    steps = []
    for kind in optimizers:
        words = {} if kind is GradientDescent else {"eps": 0.0}
        found = driven(lambda p, kind=kind, words=words: kind(p, lr=0.1, **words), common * SCALES)  # (steps, scales)
        steps.append(found / found[:, 3:4])
    return close(torch.stack(steps), (SCALES ** (1 - power)).expand(len(steps), 50, -1), ulps=1000)


def outside(gamma, eps):
    return gamma.sqrt() + eps


def inside(gamma, eps):
    return (gamma + eps).sqrt()


@claim("optim.adagrad")
@lie("there is no root", root=1.0)
@lie("squares are averaged, not summed", optimizer=RMSprop)
@lie("the small constant stands inside of the root", below=inside)
def steps_shrink_with_all_past_gradients(draw, root=0.5, below=outside, optimizer=Adagrad):
    """Constant gradients of all sizes, step t of which is η/√t; the first step, which shows δ; falling rates."""
    eta, t = 0.1, torch.arange(1, 101).double()[:, None]
    constant = driven(lambda p: optimizer(p, lr=eta, eps=0.0), SCALES.expand(100, -1))
    first = driven(lambda p: optimizer(p, lr=eta, eps=0.5), SCALES[None])
    random = draw.normal(100, 5)
    rates = -driven(lambda p: optimizer(p, lr=eta, eps=0.5), random) / random
    return all_of(
        close(constant, -eta * t**-root * torch.ones(7).double(), ulps=1000),
        close(first[0], -eta * SCALES / below(SCALES**2, 0.5), ulps=1000),
        always(rates.diff(dim=0) < 0),
    )


@claim("optim.rmsprop")
@lie("the squared derivative is subtracted", printed="004/1", numerator=torch.square)
@lie("squares are summed, not averaged", optimizer=Adagrad)
@lie("the small constant stands inside of the root", below=inside)
@lie("the mean is corrected for its start at zero", bias=0.0)
def steps_tend_to_the_learning_rate(draw, numerator=torch.clone, below=outside, bias=1.0, optimizer=RMSprop):
    """Constant gradients of both signs, for which v is g² (1 - β^t); and Adam without its momentum."""
    alpha, beta, t = 0.01, 0.9, torch.arange(1, 301).double()[:, None]
    words: dict[str, Any] = {"lr": alpha} | ({"alpha": beta} if optimizer is RMSprop else {})
    g = torch.cat([SCALES, -SCALES])
    found = driven(lambda p: optimizer(p, eps=0.5, **words), g.expand(300, -1))
    average = g**2 * (1 - bias * beta**t)  # (steps, coordinates)
    random = draw.normal(100, 5)
    plain = driven(lambda p: optimizer(p, eps=0.0, **words), random)
    adam = driven(lambda p: Adam(p, lr=alpha, betas=(0.0, beta), eps=0.0), random)
    lasting = driven(lambda p: optimizer(p, eps=0.0, **words), g.expand(300, -1))[-1]
    return all_of(
        close(found, -alpha * numerator(g) / below(average, 0.5), ulps=1000),
        close(plain, adam / (1 - bias * beta ** t[:100]).sqrt(), ulps=1000),
        close(lasting, -alpha * g.sign(), ulps=1000),
    )


@claim("optim.adam")
@lie("the second moment decays like the first", printed="004/3", decay=0.9)
@lie("no bias correction", corrected=0.0)
@lie("the small constant stands inside of the root", below=inside)
@lie("in AdamW the decay belongs to the gradient", decoupled=Adam)
def weighted_means_make_the_step(draw, decay=0.999, corrected=1.0, below=outside, decoupled=AdamW, optimizer=Adam):
    """A hundred steps for random gradients, against means over all the past; the first for gradients of all sizes."""
    eta, momentum, memory, eps, t = 0.01, 0.9, 0.999, 0.1, torch.arange(100).double()
    g, start = draw.normal(100, 5), draw.normal(5)
    ages = t[:, None] - t  # (now, then)
    weight, heaviness = (torch.where(ages >= 0, rate ** ages.clamp(min=0), 0.0) for rate in (momentum, decay))
    mean = (1 - momentum) * weight @ g / (1 - corrected * momentum ** (t[:, None] + 1))
    square = (1 - memory) * heaviness @ g**2 / (1 - corrected * memory ** (t[:, None] + 1))
    found = driven(lambda p: optimizer(p, lr=eta, eps=eps), g, start)
    first = driven(lambda p: optimizer(p, lr=eta, eps=0.0), SCALES[None])[0]
    shrunk = driven(lambda p: decoupled(p, lr=eta, eps=eps, weight_decay=0.5), g, start)
    places = start + torch.cat([torch.zeros(1, 5).double(), shrunk[:-1].cumsum(0)])
    return all_of(
        close(found, -eta * mean / below(square, eps), ulps=1000),
        close(first, -eta, ulps=1000),
        close(shrunk, found - eta * 0.5 * places, ulps=1000),
    )


@claim("optim.adam.bias_correction")
@lie("the exponent is t - 1", late=-1.0)
@lie("there is no bias", bias=0.0)
def zero_starts_are_undone(draw, late=0.0, bias=1.0, optimizer=Adam):
    """Constant gradients, for which the corrected means are exact; and gradients with mean and variance 1."""
    rates = torch.tensor([0.5, 0.8]).double()

    def moments(gradients):
        """Of each step the means of gradients and of their squares: (steps, 2, coordinates)."""
        theta = torch.zeros_like(gradients[0]).requires_grad_()
        adam, kept = optimizer([theta], lr=0.0, betas=tuple(rates.tolist())), []
        for theta.grad in gradients:
            adam.step()
            kept.append(torch.stack([adam.state[theta]["exp_avg"], adam.state[theta]["exp_avg_sq"]]))
        return torch.stack(kept)

    g, t = draw.normal(6), torch.arange(1, 101).double()[:, None]
    factors = 1 - bias * rates ** (t + late)  # (steps, 2)
    noisy = lambda chains: moments(draw.normal(3, chains) + 1)[-1].T  # noqa: E731
    return all_of(
        close(moments(g.expand(100, -1)), factors[..., None] * torch.stack([g, g**2]), ulps=1000),
        mean_is(lambda kept: kept[:, 0], noisy, factors[2, 0] * 1, effect=0.02, alpha=ALPHA / 2),
        mean_is(lambda kept: kept[:, 1], noisy, factors[2, 1] * 2, effect=0.05, alpha=ALPHA / 2),
    )
