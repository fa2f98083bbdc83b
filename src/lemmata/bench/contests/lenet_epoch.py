"""What the training loop costs around a real network: LeNet-5 on small pictures, ours against a loop by hand.

All train the same network from the same weights with AdamW for five epochs in batches of 64, each in its own order.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.bare_loops import bare_loop
from lemmata.convolution.lenet import LeNet5
from lemmata.data.registry import load
from lemmata.train.loop import fit
from lemmata.train.options import Options

BATCH, EPOCHS, RATE = 64, 5, 3e-3


class Task(NamedTuple):
    """A network with its first weights, and what it learns."""

    network: nn.Module
    x: Tensor
    y: Tensor
    device: str


Learnt = tuple[nn.Module, Task]


@entry(
    "lenet_epoch",
    title="LeNet-5 through the training loop",
    measures="five epochs of AdamW",
    cases={"fashion": "2,000 pictures of 28 x 28, LeNet-5 with relu, batch 64, 160 steps"},
    targets={"bare loop": 1.05},
)
def clothing(case: str, device: str) -> Task:
    """Clothing and a LeNet-5."""
    found = load(case).train
    torch.manual_seed(0)
    network = LeNet5(activation="relu", padding=2, device=device)
    return Task(network, found.x[:, None].to(device), found.y.to(device), device)


@ours("lemmata")
def by_fit(task: Task) -> Callable[[], Learnt]:
    """Our loop as it comes, without a folder."""
    options = Options(epochs=EPOCHS, batch_size=BATCH, lr=RATE, device=task.device)
    return lambda: (fit(copy.deepcopy(task.network), (task.x, task.y), options=options, progress=False).system, task)


@peer("bare loop")
def by_hand(task: Task) -> Callable[[], Learnt]:
    """What one writes in ten lines."""
    return lambda: (bare_loop(task.network, task.x, task.y, EPOCHS, BATCH, RATE, fused=None), task)


@peer("bare loop, fused optimiser")
def by_hand_fused(task: Task) -> Callable[[], Learnt]:
    """The same with the option that our loop sets by itself: what is left is the loop alone."""
    return lambda: (bare_loop(task.network, task.x, task.y, EPOCHS, BATCH, RATE, fused=True), task)


@limit("forward and backward passes on one batch, as many as there are steps")
def passes_alone(task: Task) -> Callable[[], None]:
    """No order, no optimiser, no look at the loss."""
    network, x, y = copy.deepcopy(task.network), task.x[:BATCH], task.y[:BATCH]

    def compute() -> None:
        for _ in range(EPOCHS * -(-len(task.x) // BATCH)):
            cross_entropy(network(x), y).backward()
            network.zero_grad()

    return compute


@agreement(within=0.1)
def final_accuracy(learnt: Learnt) -> dict[str, float]:
    """The fraction of training pictures that are right: orders of the batches differ, so that it is only alike."""
    network, task = learnt
    with torch.no_grad():
        return {"accuracy": (network(task.x).argmax(1) == task.y).double().mean().item()}
