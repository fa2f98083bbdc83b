"""A step of the first-order optimisers over all parameters of a transformer: ours against torch's.

Torch has each of them as a loop over tensors, as operations on lists of tensors (foreach) and, but for RMSprop, as one
kernel (fused). Ours has the same three; the loop is what is taken by itself on a processor, the lists on a GPU.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.transformer_parameters import Weights, moved, transformer_weights
from lemmata.optim.adagrad import Adagrad
from lemmata.optim.adam import Adam, AdamW
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.rmsprop import RMSprop

WIDTHS = {"cpu": 256}
ON_GPU = 768
KINDS: dict[str, tuple[Any, Any]] = {
    "sgd": (GradientDescent, torch.optim.SGD),
    "adam": (Adam, torch.optim.Adam),
    "adamw": (AdamW, torch.optim.AdamW),
    "adagrad": (Adagrad, torch.optim.Adagrad),
    "rmsprop": (RMSprop, torch.optim.RMSprop),
}
CHANGED = {"sgd": 2, "adam": 3, "adamw": 3, "adagrad": 2, "rmsprop": 2}  # the parameters, and the state of their size


class Task(NamedTuple):
    """What is stepped, by which optimiser, and where the parameters began."""

    case: str
    weights: Weights
    start: list[Tensor]

    def stepping(self, ours: bool, **options: Any) -> Callable[[], "Task"]:
        kind = KINDS[self.case][0 if ours else 1]
        words = {"lr": 1e-3} | ({"momentum": 0.9} if self.case == "sgd" else {})
        optimizer = kind(self.weights.all, **words, **options)

        def step() -> Task:
            optimizer.step()
            return self

        return step


@entry(
    "optimizer_step",
    title="A step of a first-order optimiser",
    measures="one step over the parameters of 12 layers of width 256 (768 on a GPU), float32",
    cases={
        "sgd": "gradient descent with momentum",
        "adam": "Adam",
        "adamw": "AdamW",
        "adagrad": "AdaGrad",
        "rmsprop": "RMSProp",
    },
    targets={"torch foreach": 1.1, "torch": 1.1},
)
def transformer(case: str, device: str) -> Task:
    """Gradients stay the same."""
    weights = transformer_weights(WIDTHS.get(device, ON_GPU), device)
    return Task(case, weights, [p.detach().clone() for p in weights.all])


@ours("lemmata")
def as_it_comes(task: Task) -> Callable[[], Task]:
    """What is taken if nothing is said."""
    return task.stepping(ours=True)


@ours("lemmata foreach")
def by_lists(task: Task) -> Callable[[], Task]:
    """Operations on lists of tensors."""
    return task.stepping(ours=True, foreach=True)


@ours("lemmata fused", cases="sgd adam adamw adagrad")
def by_kernel(task: Task) -> Callable[[], Task]:
    """Torch's kernel."""
    return task.stepping(ours=True, fused=True)


@peer("torch")
def torchs(task: Task) -> Callable[[], Task]:
    """What is taken if nothing is said."""
    return task.stepping(ours=False)


@peer("torch foreach")
def torchs_by_lists(task: Task) -> Callable[[], Task]:
    """Operations on lists of tensors."""
    return task.stepping(ours=False, foreach=True)


@peer("torch fused", cases="sgd adam adamw adagrad")
def torchs_by_kernel(task: Task) -> Callable[[], Task]:
    """One kernel for all."""
    return task.stepping(ours=False, fused=True)


@limit("reading the gradients once, and changing parameters and state once where they are")
def once_through_memory(task: Task) -> Callable[[], None]:
    """One vector in place of many tensors."""
    gradient = torch.cat([p.detach().flatten() for p in task.weights.all])
    changed = [gradient.clone() for _ in range(CHANGED[task.case])]

    def compute() -> None:
        gradient.sum()
        for vector in changed:
            vector.neg_()

    return compute


@agreement(within=1e-3)
def in_numbers(task: Task) -> dict[str, float]:
    """How far the matrices of the first layer have gone, as shares of all."""
    shares = moved(task.start, task.weights.all)
    return {f"share of matrix {number}": float(share) for number, share in enumerate(shares[:4])}
