"""Samplers that see a few examples at a time: how much their noise adds, exactly for the mean of points."""

import torch

from lemmata.bayes.stochastic_gradient import SGLD
from lemmata.judge import all_of, at_most, claim, lie, mean_is

POINTS, BATCH = 8, 2
ALPHA = 1e-9


@claim("mcmc.langevin.minibatch")
@lie("the noise of the batches adds nothing", batches=0.0)
@lie("without noise of its own the chain samples the posterior", temperature=0.0)
@lie("the sum over a batch is taken for its mean", over=BATCH)
@lie("a step has no error of its own", discretised=0.0)
def batches_heat_the_chain(draw, batches=1.0, temperature=1.0, over=1, discretised=1.0):
    r"""SGLD for the mean of 8 points with batches of 2, as many chains as needed: mean and variance against the
    posterior's mean and the variance of the linear step, (2 + ησ²)/(s(2 - ηs)), at two steps. On top of 1/s it falls
    with the step."""
    data = draw.until(lambda: draw.normal(POINTS), lambda x: 0.7 < x.var(correction=0) < 1.3)
    spread = data.var(correction=0) / BATCH * (1 - BATCH / POINTS) * POINTS / (POINTS - 1)
    gradient_variance = POINTS**2 * spread  # of the energy's gradient, for batches without replacement
    means = torch.combinations(data, BATCH).mean(1)  # of every batch
    judged, variances = [], []
    for eta, steps in ((0.05, 20), (0.02, 50)):
        wanted = (2 + batches * eta * gradient_variance) / (POINTS * (2 - discretised * eta * POINTS))

        def settled(chains, eta=eta, steps=steps):
            theta = data.mean().repeat(chains).requires_grad_()
            sampler = SGLD([theta], lr=eta, data_size=POINTS, temperature=temperature, generator=draw.generator)
            for _ in range(steps):
                theta.grad = over * (theta.detach() - means[draw.integers(0, len(means), chains)])
                sampler.step()
            return theta.detach() - data.mean()

        variances.append(wanted)
        judged.append(mean_is(torch.square, settled, wanted, effect=0.1 * float(wanted), alpha=ALPHA / 4))
        judged.append(mean_is(lambda x: x, settled, 0.0, effect=0.15 * float(wanted) ** 0.5, alpha=ALPHA / 4))
    excess = [POINTS * variance - 1 for variance in variances]
    return all_of(*judged, at_most(excess[1], 0.6 * excess[0], detail="excess over 1/s at the smaller step"))
