"""Updates that old data do not notice: null spaces of activations, winners, and units of one's own."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.continual.gradient_projection import GradientProjection
from lemmata.continual.k_winners import winner_take_all
from lemmata.continual.task_masks import MaskedMLP, TaskMasks
from lemmata.continual.task_stream import Task, TaskStream
from lemmata.data.examples import Examples
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


def relu_network(draw, inputs=10, hidden=(24, 24), outputs=3):
    """Two hidden layers, in float64."""
    sizes = [inputs, *hidden]
    layers = []
    for before, width in zip(sizes, hidden, strict=False):
        layers += [nn.Linear(before, width), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(sizes[-1], outputs)).double()
    with torch.no_grad():
        for part in network.parameters():
            part.copy_(draw.normal(*part.shape) / part.shape[-1] ** 0.5)
    return network


def low_rank(draw, n, features, rank):
    """Examples that span only so many directions."""
    return draw.normal(n, rank) @ draw.orthogonal(features)[:rank]


def two_tasks(network, old, new, y):
    """A stream of regression-like tasks: the labels are classes, the inputs the two sets."""
    tasks = [Task(name, Examples(x=x, y=y), Examples(x=x, y=y), (0, 1, 2)) for name, x in (("old", old), ("new", new))]
    return TaskStream(tuple(tasks), "domain", 3)


def trained_under(strategy, stream, steps=100, optimizer=torch.optim.Adam, lr=3e-3):
    """The old task is over, the new one is learnt in so many steps; outputs on the old inputs before and after."""
    model = strategy.model
    strategy.stream = stream
    strategy.after_task(stream[0].train)
    strategy.before_task(1)
    before, start = model(stream[0].train.x).detach(), strategy.loss(stream[1].train).detach()
    learner = optimizer(model.parameters(), lr=lr)
    for _ in range(steps):
        learner.zero_grad()
        strategy.loss(stream[1].train).backward()
        with strategy.guard():
            learner.step()
    return before, model(stream[0].train.x).detach(), start, strategy.loss(stream[1].train).detach()


class OnTheOutputs(GradientProjection):
    """Projects the outputs' side of each step away from old outputs, rather than the inputs' side."""

    def after_task(self, data):
        super().after_task(data)
        for name, layer in self.layers.items():
            rows = layer(self.activations(data.x)[name]).detach()
            self.bases[name] = torch.linalg.svd(rows, full_matrices=False)[2].T

    def guard(self):
        weights = [layer.weight for layer in self.layers.values()]
        for weight, basis in zip(weights, self.bases.values(), strict=True):
            assert weight.grad is not None
            weight.grad = weight.grad - basis @ (basis.T @ weight.grad)
        for layer in self.layers.values():
            assert layer.bias is not None
            layer.bias.grad = None
        return torch.no_grad()


class OntoTheActivations(GradientProjection):
    """Keeps of each step what lies in the old activations."""

    def after_task(self, data):
        super().after_task(data)
        for name, basis in self.bases.items():
            whole = torch.linalg.qr(torch.cat([basis, torch.eye(len(basis), dtype=basis.dtype)], 1)).Q
            self.bases[name] = whole[:, basis.shape[1] :]


class BeforeTheOptimizer(GradientProjection):
    """Projects the gradient, and lets the optimiser make of it what it will."""

    def guard(self):
        for name, layer in self.layers.items():
            basis = self.bases[name]
            assert layer.weight.grad is not None
            assert layer.bias is not None
            layer.weight.grad = layer.weight.grad - layer.weight.grad @ basis @ basis.T
            layer.bias.grad = None
        return torch.no_grad()


@claim("continual.projection_nullspace")
@lie("projected on the side of the outputs", strategy=OnTheOutputs)
@lie("projected onto the activations", strategy=OntoTheActivations)
@lie("the gradient is projected, not the step of Adam", strategy=BeforeTheOptimizer)
@lie("nine tenths of the activations do", energy=0.9)
def old_outputs_stay(draw, energy=1.0, strategy=GradientProjection):
    """Three layers, a hundred steps of Adam: old inputs of low rank are answered as before, others are not."""
    network, old = relu_network(draw), low_rank(draw, 12, 10, 4)
    new, y = draw.normal(12, 10), draw.integers(0, 3, 12)
    others = draw.normal(12, 10)
    unseen = network(others).detach()
    before, after, start, end = trained_under(strategy(network, energy=energy), two_tasks(network, old, new, y))
    return all_of(
        close(after, before, ulps=1e6),
        at_least((network(others).detach() - unseen).abs().max(), 0.01),
        at_most(end, start - 0.01),
    )


@claim("continual.projection_assumptions")
@lie("full rank still leaves a direction", spare=1)
@lie("old tasks improve as well", gain=-0.01)
def no_rank_left_nothing_learnt(draw, spare=0, gain=0.0, strategy=GradientProjection):
    """One layer of twenty inputs: old activations of rank 0 to 20, learning on the new task, the loss of the old."""
    y, learnt, moved = draw.integers(0, 3, 30), [], []
    new = draw.normal(30, 20)
    for rank in (5, 15, 20 - spare):
        network = nn.Sequential(nn.Linear(20, 3)).double()
        with torch.no_grad():
            for part in network.parameters():
                part.copy_(draw.normal(*part.shape) / 4)
        old = low_rank(draw, 30, 20, rank)
        of_old = functional.cross_entropy(network(old), y).detach()
        *_, start, end = trained_under(strategy(network, energy=1.0), two_tasks(network, old, new, y), lr=1e-2)
        learnt.append(start - end)
        moved.append(functional.cross_entropy(network(old), y).detach() - of_old)
    free = nn.Sequential(nn.Linear(20, 3)).double()
    with torch.no_grad():
        for part in free.parameters():
            part.copy_(draw.normal(*part.shape) / 4)
    *_, start, end = trained_under(strategy(free, energy=0.0), two_tasks(free, new, new, y), lr=1e-2)
    return all_of(
        at_least(torch.stack([learnt[0], learnt[1], start - end]), 0.01),
        close(learnt[2], torch.zeros((), dtype=torch.float64), scale=1.0, ulps=1e5),
        close(torch.stack(moved), torch.full((3,), gain, dtype=torch.float64), scale=1.0, ulps=1e5),
    )


def largest(a):
    return a


@claim("continual.kwta")
@lie("the largest in absolute value", rank=torch.abs)
@lie("one more than k", extra=1)
@lie("all that reach the k-th largest", ties="all")
def the_k_largest_and_no_more(draw, rank=largest, extra=0, ties="first", winners=winner_take_all):
    """Against sorting, entry by entry, where values repeat as well; gradients are those of the winners alone."""
    evidence = []
    for a in (draw.normal(40, 9), draw.integers(-2, 3, 40, 9).double(), -1 - draw.uniform(5, 4)):
        for k in (1, 3):
            order = torch.sort(rank(a), dim=1, descending=True, stable=True).indices[:, : k + extra]
            chosen = torch.zeros_like(a).scatter(1, order, 1.0)
            if ties == "all":
                chosen = (a >= a.topk(k, 1).values[:, -1:]).double()
            leaf = a.clone().requires_grad_()
            found = winners(leaf, k)
            found.sum().backward()
            evidence += [exactly(found.detach(), chosen * a), exactly(leaf.grad, chosen)]
    scale = float(draw.uniform(1, low=2, high=5))
    a = draw.normal(20, 7)
    return all_of(*evidence, close(winners(scale * a, 3), scale * winners(a, 3)))


@claim("continual.nonoverlap")
@lie("half of the units were another's before", overlap=0.5)
@lie("one shared unit of each layer", overlap=0.2)
def units_of_ones_own(draw, overlap=0.0, network=MaskedMLP):
    """Fifty steps of Adam on a second task: the answers to the first keep every bit, and the second is learnt."""
    model = network(8, 3, widths=(12, 12), tasks=2, overlap=overlap).double()
    with torch.no_grad():
        for part in model.parameters():
            part.copy_(draw.normal(*part.shape) / part.shape[-1] ** 0.5)
    strategy = TaskMasks(model)
    x, y = draw.normal(2, 20, 8), draw.integers(0, 3, 2, 20)
    tasks = [Task(f"task {k}", Examples(x=x[k], y=y[k]), Examples(x=x[k], y=y[k]), (0, 1, 2)) for k in range(2)]
    strategy.stream = TaskStream(tuple(tasks), "task", 3)
    strategy.before_task(0)
    before = model(x[0]).detach()
    strategy.before_task(1)
    start = strategy.loss(tasks[1].train).detach()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(50):
        optimizer.zero_grad()
        strategy.loss(tasks[1].train).backward()
        optimizer.step()
    end = strategy.loss(tasks[1].train).detach()
    strategy.before_task(0)
    return all_of(exactly(model(x[0]).detach(), before), at_most(end, start - 0.05), always([bool(before.std() > 0)]))
