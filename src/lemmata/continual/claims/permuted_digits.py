"""Three orders of the pixels of handwritten digits, learnt one after the other: the runs that several claims share."""

import torch
from torch import nn

from lemmata.continual.ewc import EWC, Spring
from lemmata.continual.generative_replay import GenerativeReplay
from lemmata.continual.gradient_projection import GradientProjection
from lemmata.continual.learning import learn
from lemmata.continual.rehearsal import Rehearsal
from lemmata.continual.strategy import Strategy
from lemmata.continual.task_stream import Task, TaskStream, permuted_tasks
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA


class Learner(nn.Module):
    """A network, and the accuracies on all tasks that it had on its way."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10)
        )  # fmt: skip
        self.register_buffer("accuracies", torch.zeros(4, 3, dtype=torch.float64))

    def forward(self, x):
        return self.layers(x)


class UniformSprings(EWC):
    """Holds every parameter alike."""

    def after_task(self, data):
        super().after_task(data)
        last = self.springs.pop()
        self.springs.append(Spring(torch.full_like(last.stiffness, float(last.stiffness.mean())), last.rest))


class WrongLabels(Rehearsal):
    """Keeps old examples with labels that were dealt out anew."""

    def after_task(self, data):
        super().after_task(data)
        kept = self.buffers.pop()
        self.buffers.append(Examples(x=kept.x, y=kept.y[torch.randperm(len(kept))]))


class OntoOldActivations(GradientProjection):
    """Keeps of each step what lies in the old activations, rather than what does not."""

    def after_task(self, data):
        super().after_task(data)
        for name, basis in self.bases.items():
            whole = torch.linalg.qr(torch.cat([basis, torch.eye(len(basis))], 1)).Q
            self.bases[name] = whole[:, basis.shape[1] :]


class Noise(nn.Module):
    """A generative model that learns nothing."""

    def sample(self, n):
        return torch.rand(n, 64)


def fit_pixels(model, data):
    model.fit(data.x)


STRATEGIES = {
    "plain": lambda net, amount: Strategy(net),
    "ewc": EWC,
    "uniform": UniformSprings,
    "rehearsal": lambda net, amount: Rehearsal(net, int(amount)),
    "wrong labels": lambda net, amount: WrongLabels(net, int(amount)),
    "replay": lambda net, amount: GenerativeReplay(net, lambda: ProbabilisticPCA(64, int(amount)), fit_pixels),
    "replayed noise": lambda net, amount: GenerativeReplay(net, Noise, lambda model, data: None),
    "projection": GradientProjection,
    "onto": OntoOldActivations,
}


def train(learner, generator, strategy, amount, epochs=12):
    """One task after the other under a strategy with its one number, or all at once."""
    stream = permuted_tasks(load("digits"), tasks=3)
    seed = int(torch.randint(2**31, (), generator=generator))
    options = {"lr": 1e-3, "batch_size": 64, "seed": seed, "device": "cpu"}
    if strategy == "joint":
        everything = stream.joint()
        whole = Task("all", Examples(x=everything.x, y=everything.y), stream[0].test, tuple(range(10)))
        learn(learner, TaskStream((whole,), "domain", 10), epochs=epochs, **options)
        with torch.no_grad():
            found = [(learner(task.test.x).argmax(1) == task.test.y).double().mean() for task in stream]
        learner.accuracies[:] = torch.stack(found)
        return
    learned = learn(learner, stream, STRATEGIES[strategy](learner, amount), epochs=epochs, **options)
    learner.accuracies.copy_(learned.accuracy_matrix)


def accuracies(draw, strategy, amount=0.0):
    """Row i after i tasks, (4, 3)."""
    return draw.trained(Learner, train, strategy=strategy, amount=float(amount)).accuracies
