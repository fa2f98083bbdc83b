"""Tasks one after the other: what is forgotten, and what each strategy keeps of it."""

import torch
from torch import nn

from lemmata.continual.claims.permuted_digits import accuracies
from lemmata.continual.claims.springs import softmax_network, stream_of
from lemmata.continual.ewc import EWC, Spring
from lemmata.continual.rehearsal import Rehearsal
from lemmata.continual.strategy import Strategy
from lemmata.continual.task_stream import permuted_tasks, split_tasks
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.judge import all_of, at_least, at_most, claim, close, lie, reaches
from lemmata.measure.nearest_neighbours import neighbour_accuracy


def in_their_order(x):
    return x


def shuffled(x):
    """All tasks mixed, as if they had come as one."""
    return x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))]


@claim("continual.setting")
@lie("a stream in random order shifts as well", order=shuffled)
@lie("examples of one task are told apart as well", within=0.9)
def the_distribution_shifts_between_tasks(draw, order=in_their_order, within=0.5, stream=permuted_tasks):
    """Nearest neighbours tell the tasks of two streams apart, and two halves of one task not."""
    data, evidence = load("digits"), []
    for tasks in (stream(data, tasks=2, seed=int(draw.integers(0, 1000))), split_tasks(data, tasks=2)):
        first, second = (task.train.x.flatten(1)[draw.permutation(len(task.train))[:600]] for task in tasks)
        whole = order(torch.cat([first, second]))
        evidence.append(at_least(neighbour_accuracy(whole[:600], whole[600:]), 0.9))
        # Six hundred answers of a fair coin stay within 0.13 of a half but once in 10^9 times.
        evidence.append(close(neighbour_accuracy(first[:300], first[300:]), within, within=0.13))
    return all_of(*evidence)


@claim("continual.forgetting")
@lie("training on everything at once forgets as well", strategy="joint")
@lie("the task that was learnt last is forgotten as well", task=2)
def a_new_task_destroys_the_old(draw, strategy="plain", task=0):
    """Three orders of pixels: a task when it was just learnt, and at the end; and all of them learnt together."""
    found, together = accuracies(draw, strategy), accuracies(draw, "joint")
    return all_of(
        reaches(found[task + 1, task], 0.9),
        reaches(found[task + 1, task] - found[3, task], 0.25),
        reaches(together[3].min(), 0.9),
    )


@claim("continual.rehearsal")
@lie("rehearsing the new data alone", strategy=lambda model, size: Strategy(model))
@lie("a quarter of the old examples does as well", part=0.25)
@lie("the sum over tasks, not their mean", tasks=1.0)
def with_everything_kept_it_is_joint_training(draw, strategy=Rehearsal, part=1.0, tasks=2.0):
    """Two tasks of which all is kept: the objective's value and gradient are those of both together."""
    network, x = softmax_network(draw)
    sets = [(x, draw.integers(0, 3, 12)), (x + draw.normal(4), draw.integers(0, 3, 12))]
    made = strategy(network, int(part * 12))
    made.stream = stream_of(*sets)
    made.after_task(made.stream[0].train)
    made.before_task(1)
    names = list(network.parameters())
    losses = [nn.functional.cross_entropy(network(inputs), labels) for inputs, labels in sets]
    together = torch.stack(losses).sum() / tasks
    found = made.loss(made.stream[1].train)
    gradients = [torch.autograd.grad(value, names, retain_graph=True) for value in (found, together)]
    flat = [torch.cat([part.flatten() for part in each]) for each in gradients]
    return all_of(close(found.detach(), together.detach()), close(*flat, ulps=1e4))


@claim("continual.coreset")
@lie("labels need not be right", strategy="wrong labels")
@lie("ten examples of each task do as well", size=10)
def a_hundred_examples_of_each_task(draw, strategy="rehearsal", size=100):
    """Three orders of pixels, in the end: every task, and how much the first gained by a larger buffer."""
    found, plain = accuracies(draw, strategy, size), accuracies(draw, "plain")
    return all_of(reaches(found[3].min(), 0.82), reaches(found[3, 0] - plain[3, 0], 0.2))


@claim("continual.generative_replay")
@lie("noise in place of the model's samples", strategy="replayed noise")
@lie("nothing replayed", strategy="plain")
def made_up_examples_labelled_by_the_old_network(draw, strategy="replay"):
    """Three orders of pixels: the tasks in the end, against training on everything at once."""
    found, together = accuracies(draw, strategy, 20), accuracies(draw, "joint")
    gained = found[3, 0] - accuracies(draw, "plain")[3, 0]
    return all_of(reaches(gained, 0.25), reaches(found[3].mean(), together[3].mean() - 0.058))


@claim("continual.ewc")
@lie("springs without the half", half=1.0)
@lie("all parameters held alike", strategy="uniform")
@lie("springs of no strength", strength=0.0)
def important_parameters_are_held(draw, half=0.5, strategy="ewc", strength=1000.0, springs=EWC):
    """The penalty by hand; two quadratic tasks as if learnt together; and three orders of pixels."""
    network, x = softmax_network(draw)
    made, y = springs(network, strength=7.0), draw.integers(0, 3, 12)
    made.stream = stream_of((x, y), (x, y))
    made.after_task(made.stream[0].train)
    rest = torch.cat([part.detach().flatten() for part in network.parameters()])
    stiff = torch.zeros_like(rest)
    for row in x:  # each example and label by itself
        probability = network(row[None]).softmax(1)[0].detach()
        for k in range(3):
            slopes = torch.autograd.grad(network(row[None]).log_softmax(1)[0, k], list(network.parameters()))
            stiff += probability[k] / 12 * torch.cat([slope.flatten() for slope in slopes]).square()
    moved = draw.normal(len(rest))
    with torch.no_grad():
        nn.utils.vector_to_parameters(rest + moved, network.parameters())
    expected = (
        made.logits(x, 1).log_softmax(1)[torch.arange(12), y].mean().neg() + half * 7.0 * (stiff * moved**2).sum()
    )
    curvature, target, anchor = draw.uniform(2, 5, low=0.5, high=3.0), draw.normal(5), draw.normal(5)
    theta = ((curvature * torch.stack([anchor, target])).sum(0) / curvature.sum(0)).requires_grad_()
    energy = Spring(curvature[0], anchor).energy(theta) + (curvature[1] * (theta - target) ** 2).sum() / 2
    found = accuracies(draw, strategy, strength)
    return all_of(
        close(made.loss(Examples(x=x, y=y)).detach(), expected.detach(), ulps=1e4),
        close(torch.autograd.grad(energy, theta)[0], torch.zeros(5, dtype=torch.float64), scale=10.0),
        reaches(found[2, 0], 0.73),
        reaches(found[2, 1], 0.62),
        reaches(found[3, 0], 0.45),
    )


@claim("continual.gradient_projection")
@lie("projected onto the old activations", strategy="onto")
@lie("no direction is protected", energy=0.0)
def updates_in_the_null_space(draw, strategy="projection", energy=0.95):
    """Three orders of pixels: what the first loses, and what the others reach."""
    found = accuracies(draw, strategy, energy)
    return all_of(at_most(found[1, 0] - found[3, 0], 0.15), reaches(found[3].min(), 0.7))
