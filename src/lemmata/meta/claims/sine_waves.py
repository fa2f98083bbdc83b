"""Sine waves from ten points: initialisations that were learnt in three ways, and what a few steps make of them."""

import torch

from lemmata.data.examples import Examples
from lemmata.data.tasks import sinusoids
from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, at_most, claim, close, lie
from lemmata.meta.maml import MAML, FirstOrderMAML
from lemmata.meta.reptile import Reptile

STEPS, TASKS, INNER_LR = 1200, 16, 0.02


LEARNERS = {
    "maml": lambda model: MAML(model, 1, INNER_LR),
    "first order": lambda model: FirstOrderMAML(model, 1, INNER_LR),
    "joint": lambda model: MAML(model, 0, INNER_LR),
    "reptile": lambda model: Reptile(model, 5, INNER_LR),
}


def build(learner):
    return LEARNERS[learner](MLP(1, 1, widths=(40, 40), activation="tanh"))


def teach(maml, generator, learner, updates=STEPS):
    """Batches of new waves at every update."""
    seed = int(torch.randint(2**31, (), generator=generator))
    waves = sinusoids(n=updates * TASKS, test=1, seed=seed).train
    optimizer = torch.optim.Adam(maml.parameters(), lr=3e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    for first in range(0, len(waves), TASKS):
        optimizer.zero_grad()
        maml.loss(waves[first : first + TASKS]).backward()
        optimizer.step()
        rates.step()


def errors_after(maml, steps, tasks=400):
    """The mean squared error on new points of new waves, after so many steps on ten."""
    waves: Examples = sinusoids(n=1, test=tasks, seed=12345).test
    found = maml(waves.x, waves.y, waves.query_x, steps).detach()
    return float((found - waves.query_y).square().mean())


def trained_start(draw, learner, updates=STEPS):
    """A start that was learnt in one of the ways, the same for all claims."""
    return draw.trained(build, teach, learner=learner, updates=updates)


@claim("meta.maml")
@lie("trained on all tasks together", learner="joint")
@lie("before any step is taken", steps=0)
def one_step_from_a_learnt_start(draw, learner="maml", steps=1, factor=0.5):
    """The error on new waves after one step and after ten, against a network that learnt all waves together."""
    found, together = trained_start(draw, learner), trained_start(draw, "joint")
    return all_of(
        at_most(errors_after(found, steps), factor * errors_after(together, 1)),
        at_most(errors_after(found, 10), factor * errors_after(together, 10)),
    )


@claim("meta.reptile")
@lie("the step in the other direction", share=-1.0)
@lie("the whole way to each task, one after the other", share=4.0)
@lie("trained on all tasks together", learner="joint")
def towards_where_the_tasks_lead(draw, share=1.0, learner="reptile", factor=0.8, method=Reptile):
    """One update of plain descent by hand, on a network and four waves; and new waves after ten steps."""
    network = MLP(1, 1, widths=(6,), activation="tanh").double()
    x = draw.uniform(4, 10, 1, low=-5, high=5)
    waves = Examples(x=x[:, :6], y=x[:, :6].sin(), query_x=x[:, 6:], query_y=x[:, 6:].cos())
    reptile, start = (
        method(network, 3, 0.05),
        {name: part.detach().clone() for name, part in network.named_parameters()},
    )
    both = [(torch.cat([a, c]), torch.cat([b, d])) for a, b, c, d in zip(*waves, strict=True)]
    ends = [reptile.adapt(inputs, targets) for inputs, targets in both]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.3)
    reptile.loss(waves).backward()
    optimizer.step()
    lead = {name: sum(end[name] for end in ends) / 4 - part for name, part in start.items()}
    by_hand = {name: (part + share * 0.3 * lead[name]).detach() for name, part in start.items()}
    trained = trained_start(draw, learner, 900 if learner == "reptile" else STEPS)
    return all_of(
        *(close(part.detach(), by_hand[name], ulps=1e4) for name, part in network.named_parameters()),
        at_most(errors_after(trained, 10), factor * errors_after(trained_start(draw, "joint"), 10)),
    )
