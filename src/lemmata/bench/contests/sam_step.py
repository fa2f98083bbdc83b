"""What sharpness-aware minimisation costs beyond its two passes: ours against pytorch_optimizer's.

The passes are left out: both closures only hand over gradients that are there. The base is gradient descent, the
cheapest there is, so that the rest shows.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.transformer_parameters import Weights, moved, transformer_weights
from lemmata.optim.sam import SAM

WIDTHS = {"cpu": 256}
ON_GPU = 768
RATE, RADIUS = 1e-3, 0.05


class Task(NamedTuple):
    """Parameters, their gradients, and where they began."""

    weights: Weights
    gradients: list[Tensor]
    start: list[Tensor]

    def hand_over(self) -> None:
        """What a pass would have done."""
        for parameter, gradient in zip(self.weights.all, self.gradients, strict=True):
            parameter.grad = gradient


@entry(
    "sam_step",
    title="A step of SAM without its passes",
    measures="the way to the worst point, back, and the base's step, over all parameters",
    cases={
        "transformer": "12 layers of width 256 (768 on a GPU), float32, with an embedding and a head of 4,096 words"
    },
    targets={"pytorch_optimizer SAM": 1.0, "pytorch_optimizer SAM, foreach": 1.0},
)
def transformer(case: str, device: str) -> Task:
    """Gradients stay the same, so that every step goes as far as the first."""
    weights = transformer_weights(WIDTHS.get(device, ON_GPU), device)
    gradients = [p.grad for p in weights.all if p.grad is not None]
    return Task(weights, gradients, [p.detach().clone() for p in weights.all])


@ours("lemmata")
def with_ours(task: Task) -> Callable[[], Task]:
    """As it comes, with its closure."""
    sam = SAM(task.weights.all, torch.optim.SGD, rho=RADIUS, lr=RATE)

    def step() -> Task:
        sam.step(task.hand_over)
        return task

    return step


@peer("pytorch_optimizer SAM", needs="pytorch_optimizer")
def with_pytorch_optimizer(task: Task) -> Callable[[], Task]:
    """Its usual setting."""
    return _peer_task(task, foreach=None)


@peer("pytorch_optimizer SAM, foreach", needs="pytorch_optimizer")
def with_pytorch_optimizer_lists(task: Task) -> Callable[[], Task]:
    """All parameters at once, as it does by itself on a GPU."""
    return _peer_task(task, foreach=True)


def _peer_task(task: Task, foreach: bool | None) -> Callable[[], Task]:
    import pytorch_optimizer

    sam = pytorch_optimizer.SAM(task.weights.all, torch.optim.SGD, foreach=foreach, rho=RADIUS, lr=RATE)

    def step() -> Task:
        task.hand_over()
        sam.step(task.hand_over)
        return task

    return step


@peer("by hand")
def by_hand(task: Task) -> Callable[[], Task]:
    """What one writes in ten lines."""
    params, base = task.weights.all, torch.optim.SGD(task.weights.all, lr=RATE)

    @torch.no_grad()
    def step() -> Task:
        task.hand_over()
        norm = torch.stack([p.grad.norm() for p in params if p.grad is not None]).norm()
        moves = [RADIUS / norm * p.grad for p in params if p.grad is not None]
        for parameter, move in zip(params, moves, strict=True):
            parameter.add_(move)
        task.hand_over()
        for parameter, move in zip(params, moves, strict=True):
            parameter.sub_(move)
        base.step()
        return task

    return step


@limit("reading gradients three times, copying the parameters twice and moving them twice")
def passes_over_memory(task: Task) -> Callable[[], None]:
    """One vector in place of many tensors."""
    flat = torch.cat([p.detach().flatten() for p in task.weights.all])
    gradient, kept = torch.cat([g.flatten() for g in task.gradients]), torch.empty_like(flat)

    def compute() -> None:
        torch.linalg.vector_norm(gradient)
        kept.copy_(flat)
        flat.add_(gradient, alpha=1e-9)
        flat.copy_(kept)
        flat.add_(gradient, alpha=1e-9)

    return compute


@agreement(within=1e-3)
def in_numbers(task: Task) -> dict[str, float]:
    """How far the matrices of the first layer have gone, as shares of all."""
    shares = moved(task.start, task.weights.all)
    return {f"share of matrix {number}": float(share) for number, share in enumerate(shares[:4])}
