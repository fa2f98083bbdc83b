"""A meta-step of MAML: the gradient through five steps on each of eight tasks, all at once or one after another."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.data.examples import Examples
from lemmata.meta.maml import MAML

TASKS, WAYS, QUERIES, STEPS, INNER_LR, CHANNELS, SIDE = 8, 5, 15, 5, 0.1, 32, 28


class Task(NamedTuple):
    """A network and a batch of few-shot tasks."""

    network: nn.Module
    batch: Examples


@entry(
    "meta_step",
    title="A meta-step of MAML",
    measures="loss and gradient of the initialisation, second derivatives included",
    cases={"5-way 1-shot": "8 tasks, 5 steps, 4 convolutions of 32 channels on 28 x 28 pixels, 75 queries a task"},
    targets={"a loop with create_graph": 1.0},
)
def few_shot(case: str, device: str) -> Task:
    """The network of the paper, with group normalisation, which has no statistics to share between tasks."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before in (1, CHANNELS, CHANNELS, CHANNELS):
        convolution = nn.Conv2d(before, CHANNELS, 3, padding=1)
        layers += [convolution, nn.GroupNorm(4, CHANNELS), nn.ReLU(), nn.MaxPool2d(2)]
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(CHANNELS, WAYS)).to(device)
    x, query_x = (torch.rand(TASKS, WAYS * each, 1, SIDE, SIDE, device=device) for each in (1, QUERIES))
    y, query_y = (torch.arange(WAYS, device=device).repeat(TASKS, each) for each in (1, QUERIES))
    return Task(network, Examples(x=x, y=y, query_x=query_x, query_y=query_y))


@ours("lemmata")
def with_ours(task: Task) -> Callable[[], dict[str, Tensor]]:
    """All tasks as one computation."""
    maml = MAML(task.network, STEPS, INNER_LR)
    return lambda: _with_gradient(task, maml.loss(task.batch))


@peer("a loop with create_graph")
def by_hand(task: Task) -> Callable[[], dict[str, Tensor]]:
    """What one writes without a library: task after task."""

    def step() -> dict[str, Tensor]:
        losses = [_loss_of_task(task.network, *rows) for rows in zip(*task.batch, strict=True)]
        return _with_gradient(task, torch.stack(losses).mean())

    return step


@limit("one pass of the shared network and back for each step's supports and for the queries")
def passes(task: Task) -> Callable[[], None]:
    """Without weights of its own for each task, and without second derivatives."""
    pairs = [(task.batch.x, task.batch.y)] * STEPS + [(task.batch.query_x, task.batch.query_y)]
    flat = [(x.flatten(0, 1), y.flatten()) for x, y in pairs]

    def compute() -> None:
        for x, y in flat:
            torch.autograd.grad(functional.cross_entropy(task.network(x), y), list(task.network.parameters()))

    return compute


def _loss_of_task(network: nn.Module, x: Tensor, y: Tensor, query_x: Tensor, query_y: Tensor) -> Tensor:
    now: dict[str, Tensor] = dict(network.named_parameters())
    for _ in range(STEPS):
        loss = functional.cross_entropy(functional_call(network, now, (x,)), y)
        slopes = torch.autograd.grad(loss, list(now.values()), create_graph=True)
        now = {name: part - INNER_LR * slope for (name, part), slope in zip(now.items(), slopes, strict=True)}
    return functional.cross_entropy(functional_call(network, now, (query_x,)), query_y)


def _with_gradient(task: Task, loss: Tensor) -> dict[str, Tensor]:
    slopes = torch.autograd.grad(loss, list(task.network.parameters()))
    return {"loss": loss.detach(), "first layer": slopes[0], "last layer": slopes[-2]}


@agreement(within=1e-3)
def in_numbers(found: dict[str, Tensor]) -> dict[str, float]:
    """The loss, and the sizes of two gradients."""
    return {name: float(value.norm()) for name, value in found.items()}
