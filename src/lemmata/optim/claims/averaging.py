"""Averages of the iterates of stochastic gradient descent: what they are, and how fast they forget the noise."""

import torch

from lemmata.judge import all_of, at_most, claim, close, lie, slope_is
from lemmata.optim.averaging import PolyakAverage
from lemmata.optim.gradient_descent import GradientDescent

CHAINS = 20_000


def _averages(draw, average, lr, slope, start, times):
    """Many chains of gradient descent with unit noise: average and last iterate, at each of the times: (times, chains).

    `slope` gives the gradient of a chain at its place.
    """
    place = torch.nn.Parameter(torch.full((CHAINS,), start).double())
    optimizer, mean, found, last = GradientDescent([place], lr=lr), average([place]), [], []
    for step in range(1, times[-1] + 1):
        place.grad = slope(place.detach()) + draw.normal(CHAINS)
        optimizer.step()
        mean.update()
        if step in times:
            last.append(place.detach().clone())
            with mean.applied():
                found.append(place.detach().clone())
    return torch.stack(found), torch.stack(last)


def _strongly_convex(draw, average, times):
    """Excess of average and last iterate for h = x^2/2 from the minimum, at a constant step: (times,) each."""
    found = _averages(draw, average, 0.5, torch.clone, 0.0, times)
    return tuple(places.square().mean(1) / 2 for places in found)


def _convex(draw, average, times):
    """Excess for h = |x|/sqrt(t), which looks flat for t steps of size 1/sqrt(t) from 1: (times,)."""
    excess = []
    for t in times:
        places, _ = _averages(draw, average, t**-0.5, lambda x, t=t: x.sign() * t**-0.5, 1.0, [t])
        excess.append(places.abs().mean() * t**-0.5)
    return torch.stack(excess)


def all_iterates(params):
    return PolyakAverage(params)


def last_iterate(params):
    return PolyakAverage(params, ema_decay=0.0)


NOISE = "the average over chains is itself random"


@claim("optim.polyak_averaging")
@lie("the newest iterate gets the weight of all before it", newest=0.0)
@lie("the last iterate does as well", average=last_iterate)
@lie("strongly convex problems need the root too", strong=0.5, regime=NOISE, loose=NOISE)
@lie("every convex problem is as quick", convex=1.0, regime=NOISE, loose=NOISE)
def averaging_the_iterates(draw, newest=1.0, strong=1.0, convex=0.5, average=all_iterates):
    """Means of drawn iterates; 20,000 chains on a parabola at a constant step, and on ever flatter kinks."""
    iterates, place, beta = draw.normal(50, 7), torch.nn.Parameter(torch.zeros(7).double()), 0.1
    mean, forgetting = average([place]), PolyakAverage([place], ema_decay=1 - beta)
    moving = iterates[0]
    for number, iterate in enumerate(iterates):
        place.data.copy_(iterate)
        mean.update()
        forgetting.update()
        moving = moving if number == 0 else (1 - beta) * moving + newest * beta * iterate
    same = all_of(close(mean.averages[0], iterates.mean(0)), close(forgetting.averages[0], moving))
    if not same.holds:
        return same
    times = [50, 100, 200, 400]
    averaged, last = _strongly_convex(draw, average, times)
    parabola = all_of(
        same,
        slope_is(times, averaged, -strong, within=0.05),
        at_most(last.amax() / last.amin(), 1.1, detail="the last iterate stays where its noise holds it"),
    )
    if not parabola.holds:
        return parabola
    return all_of(parabola, slope_is([16, 64, 256], _convex(draw, average, [16, 64, 256]), -convex, within=0.04))
