"""Networks of which few units speak at a time: the rank of their activations, and units that a new task recruits."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.continual.activation_subspace import activation_basis
from lemmata.continual.heterogeneous_dropout import HeterogeneousDropout
from lemmata.continual.k_winners import WinnerTakeAll
from lemmata.continual.task_stream import permuted_tasks
from lemmata.data.registry import load
from lemmata.judge import all_of, at_most, claim, close, lie, reaches
from lemmata.train.evaluation_mode import evaluating

KEPT = 0.46  # the mean probability by which a unit is kept in the second task, with the alpha below


class Sparse(nn.Module):
    """One hidden layer: what drops its units, and the contest of those that are left."""

    def __init__(self, k=0, alpha=0.0, keep=1.0):
        super().__init__()
        self.hidden = nn.Linear(64, 200)
        self.active = WinnerTakeAll(k) if k else nn.Identity()
        self.dropped = HeterogeneousDropout(200, alpha) if keep == 1 else UniformDropout(keep)
        self.head = nn.Linear(200, 10)
        self.register_buffer("used", torch.zeros(200))  # how often each unit is active in the first task

    def activations(self, x):
        return self.active(self.dropped(self.hidden(x).relu()))

    def forward(self, x):
        return self.head(self.activations(x))


class UniformDropout(HeterogeneousDropout):
    """Keeps all units with one probability, from the second task on."""

    def __init__(self, keep):
        super().__init__(200)
        self.keep = keep

    @property
    def keep_probability(self):
        return torch.full_like(self.active, self.keep if self.active.any() else 1.0)


def train(network, generator, tasks=1, epochs=8):
    """One order of the pixels after the other, by plain descent."""
    stream = permuted_tasks(load("digits"), tasks=tasks)
    for task in stream:
        optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
        for _ in range(epochs):
            for rows in torch.randperm(len(task.train), generator=generator).split(64):
                optimizer.zero_grad()
                functional.cross_entropy(network(task.train.x[rows]), task.train.y[rows]).backward()
                optimizer.step()
        network.dropped.end_task()
        if task is stream[0]:
            with evaluating(network):
                network.used.copy_((network.activations(task.test.x) != 0).float().mean(0))


def rank_of_a_class(network, energy):
    """The mean over classes of how many directions hold so much of their activations."""
    data = load("digits").train
    with torch.no_grad():
        found = network.activations(data.x.flatten(1))
    return sum(activation_basis(found[data.y == k], energy).shape[1] for k in range(10)) / 10


@claim("continual.sparsity_lowrank")
@lie("of the directions that hold most of the energy as well", energy=0.95)
@lie("as low with half of the units", k=100)
def winners_span_few_directions(draw, energy=1.0, k=10):
    """Two networks that learnt the digits: the rank of each class's activations, of 200 units."""
    dense, sparse = (draw.trained(Sparse, train, k=winners) for winners in (0, k))
    few, many = rank_of_a_class(sparse, energy), rank_of_a_class(dense, energy)
    with torch.no_grad():
        found = sparse.activations(load("digits").train.x.flatten(1))
    return all_of(
        at_most(few, many / 3),
        at_most((found != 0).sum(1), k, attained=True),
        reaches(accuracy_of(sparse), 0.8),
    )


def accuracy_of(network, task=0):
    """On the digits as they are, or with their pixels in the order of a later task."""
    data = permuted_tasks(load("digits"), tasks=task + 1)[task].test
    with torch.no_grad():
        return float((network(data.x).argmax(1) == data.y).double().mean())


def share_of_the_old_winners(network):
    """How much of the second task's activity falls to the fifth of the units that the first used most."""
    second = permuted_tasks(load("digits"), tasks=2)[1].test
    with torch.no_grad():
        shares = (network.activations(second.x) != 0).double().mean(0)
    most = network.used.argsort(descending=True)[:40]
    return float(shares[most].sum() / shares.sum())


@claim("continual.heterogeneous_dropout")
@lie("uniform dropout of the same mean rate", dropped="uniform")
@lie("units that were seldom active are dropped", alpha=-1.0)
def new_tasks_recruit_other_units(draw, dropped="heterogeneous", alpha=3.0, layer=HeterogeneousDropout):
    """The probabilities of a layer by hand; and two orders of pixels, learnt with it and without: units in common."""
    x = draw.uniform(50, 6) * (draw.uniform(50, 6) < torch.linspace(0.2, 1.0, 6))
    made = layer(6, 3.0).double()
    made(x)
    made.end_task()
    shares = (x != 0).double().mean(0)
    alike = draw.trained(Sparse, train, k=20, tasks=2, keep=KEPT)
    other = draw.trained(Sparse, train, k=20, tasks=2, alpha=3.0) if dropped == "heterogeneous" else alike
    return all_of(
        close(made.keep_probability, torch.exp(-alpha * shares / shares.max())),
        at_most(share_of_the_old_winners(other), 0.5 * share_of_the_old_winners(alike)),
        reaches(accuracy_of(other, task=1), 0.8),
    )
