"""One gradient step of an ensemble: all members in one batch, against a loop over networks of their own."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.bayes.ensemble import Ensemble, MLPEnsemble, summed_over_members
from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.feedforward.mlp import MLP

SIZES = {"small": (16, 32, 64), "wide": (8, 256, 256)}  # members, width, batch
INPUTS, CLASSES = 64, 10
LR = 1e-6  # so small that the loss is the same after any number of repeats


class Task(NamedTuple):
    """Networks of one kind, a batch, and where the first weights of each began."""

    members: list[MLP]
    x: Tensor
    y: Tensor


@entry(
    "ensemble_step",
    title="A step of an ensemble",
    measures="answers, gradients and a step of gradient descent for all members on one batch",
    cases={
        "small": "16 perceptrons 64-32-10, batches of 64 examples",
        "wide": "8 perceptrons 64-256-10, batches of 256 examples",
    },
    targets={"a loop over members": 1.0},
)
def networks(case: str, device: str) -> Task:
    """Every contender takes copies of the same members."""
    count, width, batch = SIZES[case]
    torch.manual_seed(0)
    members = [MLP(INPUTS, CLASSES, widths=(width,)).to(device) for _ in range(count)]
    return Task(members, torch.randn(batch, INPUTS, device=device), torch.arange(batch, device=device) % CLASSES)


@ours("lemmata")
def in_one_batch(task: Task) -> Callable[[], float]:
    """Stacked parameters, one optimiser."""
    first = task.members[0]
    ensemble = MLPEnsemble(INPUTS, CLASSES, len(task.members), widths=first.config.widths).to(task.x.device)
    ensemble.put(Ensemble(task.members).flat)
    return _stepping_task(task, ensemble)


@ours("lemmata, any networks")
def by_vmap(task: Task) -> Callable[[], float]:
    """The general ensemble, which maps over whatever the members are."""
    return _stepping_task(task, Ensemble(task.members))


def _stepping_task(task: Task, ensemble: Ensemble) -> Callable[[], float]:
    loss = summed_over_members(functional.cross_entropy)
    optimizer = torch.optim.SGD(ensemble.parameters(), LR)

    def step() -> float:
        optimizer.zero_grad()
        found = loss(ensemble(task.x), task.y)
        found.backward()
        optimizer.step()
        return float(found.detach())

    return step


@peer("a loop over members")
def one_by_one(task: Task) -> Callable[[], float]:
    """What one writes without vmap: an optimiser over all parameters, a pass for each network."""
    optimizer = torch.optim.SGD([value for member in task.members for value in member.parameters()], LR)

    def step() -> float:
        optimizer.zero_grad()
        found = torch.stack([functional.cross_entropy(member(task.x), task.y) for member in task.members]).sum()
        found.backward()
        optimizer.step()
        return float(found.detach())

    return step


@limit("the matrix products of both layers, forwards and backwards, as batched products")
def products(task: Task) -> Callable[[], None]:
    """Two products forwards; backwards two for the weights and one between the layers."""
    first, last = (torch.stack([list(m.parameters())[k].detach() for m in task.members]) for k in (0, 2))
    x = task.x.expand(len(task.members), -1, -1)  # (members, batch, inputs)

    def compute() -> None:
        hidden = torch.bmm(x, first.mT)  # (members, batch, width)
        logits = torch.bmm(hidden, last.mT)  # (members, batch, classes)
        torch.bmm(logits.mT, hidden)
        back = torch.bmm(logits, last)
        torch.bmm(back.mT, x)

    return compute


@agreement(within=1e-3)
def losses(result: float) -> dict[str, float]:
    """The summed loss."""
    return {"summed loss": result}
