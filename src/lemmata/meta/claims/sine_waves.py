"""Sine waves from ten points: initialisations that were learnt in three ways, and what a few steps make of them."""

import torch

from lemmata.data.examples import Examples
from lemmata.data.tasks import sinusoids
from lemmata.feedforward.mlp import MLP
from lemmata.meta.maml import MAML, FirstOrderMAML
from lemmata.meta.reptile import Reptile

STEPS, TASKS, INNER_LR = 1200, 16, 0.02


class Backwards(Reptile):
    """Steps away from where the tasks lead."""

    def loss(self, batch):
        there = super().loss(batch)
        return 2 * there.detach() - there


LEARNERS = {
    "maml": lambda model: MAML(model, 1, INNER_LR),
    "first order": lambda model: FirstOrderMAML(model, 1, INNER_LR),
    "joint": lambda model: MAML(model, 0, INNER_LR),
    "reptile": lambda model: Reptile(model, 5, INNER_LR),
    "backwards": lambda model: Backwards(model, 5, INNER_LR),
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
