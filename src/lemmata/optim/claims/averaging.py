"""Averages of the iterates of stochastic gradient descent: what they are, and how fast they forget the noise."""

import torch

from lemmata.judge import all_of, at_least, at_most, claim, close, lie, slope_is
from lemmata.optim.averaging import PolyakAverage
from lemmata.optim.gradient_descent import GradientDescent


def _averaged_chains(draw, average, lr, slope, start, times):
    """Chains of gradient descent with unit noise: average and last iterate, at each of the times: (times, chains).

    `slope` gives the gradient of every chain at its place.
    """
    place = torch.nn.Parameter(start.clone())
    optimizer, mean, found, last = GradientDescent([place], lr=lr), average([place]), [], []
    for step in range(1, times[-1] + 1):
        place.grad = slope(place.detach()) + draw.normal(len(place))
        optimizer.step()
        mean.update()
        if step in times:
            last.append(place.detach().clone())
            with mean.applied():
                found.append(place.detach().clone())
    return torch.stack(found), torch.stack(last)


def _strongly_convex(draw, average, times):
    """Excess of average and last iterate for h = x^2/2 from the minimum, at a constant step: (times,) each."""
    found = _averaged_chains(draw, average, 0.5, torch.clone, torch.zeros(20_000).double(), times)
    return tuple(places.square().mean(1) / 2 for places in found)


def _kink_excess(draw, average, times, length):
    """Mean excess for h = |x| from 1, after t steps of size length/sqrt(t): (times,)."""
    ends = [
        _averaged_chains(draw, average, length * t**-0.5, torch.sign, torch.ones(2000).double(), [t])[0].abs().mean()
        for t in times
    ]
    return torch.stack(ends)


def _two_kinks(draw, average, times, length):
    """Mean excess from 0 for h = |x - 1|/sqrt(t) in half of the chains and |x + 1|/sqrt(t) in the others: (times,)."""
    centre, excess = torch.ones(4000).double(), []
    centre[::2] = -1.0
    for t in times:
        slope = lambda x, t=t: (x - centre).sign() * t**-0.5  # noqa: E731
        places, _ = _averaged_chains(draw, average, length * t**-0.5, slope, torch.zeros(4000).double(), [t])
        excess.append((places - centre).abs().mean() * t**-0.5)
    return torch.stack(excess)


def all_iterates(params):
    return PolyakAverage(params)


def last_iterate(params):
    return PolyakAverage(params, ema_decay=0.0)


NOISE = "the average over chains is itself random"


# How often whoever guesses after t observations which of two normal means is theirs, 2/sqrt(t) apart, must err.
CONFUSED = float(torch.special.ndtr(torch.tensor(-1.0).double()))


@claim("optim.polyak_averaging")
@lie("the newest iterate gets the weight of all before it", newest=0.0)
@lie("the last iterate does as well", average=last_iterate)
@lie("strongly convex problems need the root too", strong=0.5, regime=NOISE, loose=NOISE)
@lie("every convex problem is as quick", convex=1.0, regime=NOISE, loose=NOISE)
@lie("steps of no length do as well", length=0.0, regime="shorter steps do, later", loose="longer steps do as well")
def averaging_the_iterates(draw, newest=1.0, strong=1.0, convex=0.5, length=1.0, average=all_iterates):
    """Means of drawn iterates; chains on a parabola at a constant step, on a kink, and on two that look alike."""
    iterates, place, beta = draw.normal(50, 7), torch.nn.Parameter(torch.zeros(7).double()), 0.1
    mean, forgetting = PolyakAverage([place]), PolyakAverage([place], ema_decay=1 - beta)
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
    times = torch.tensor([64, 256, 1024])
    return all_of(
        parabola,
        slope_is(times, _kink_excess(draw, average, times.tolist(), length), -convex, within=0.04),
        at_least(_two_kinks(draw, average, times[:2].tolist(), length), CONFUSED * times[:2].double() ** -convex),
    )
