"""A step of Muon over all parameters of a transformer: ours against torch's and pytorch_optimizer's.

All use Newton-Schulz for the matrices of the layers and AdamW for the rest. On processors without instructions for
bfloat16 the peers' iterations in that format are slow; ours are in float32 there and in bfloat16 on a GPU.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.transformer_parameters import Weights, moved, transformer_weights
from lemmata.optim.muon import Muon

WIDTHS = {"cpu": 128}
ON_GPU = 768
RATE = 1e-3


class Task(NamedTuple):
    """Parameters with gradients, and where they began."""

    weights: Weights
    start: list[Tensor]


@entry(
    "muon_step",
    title="A step of Muon",
    measures="one step over all parameters",
    cases={
        "transformer": "12 layers of width 128 (768 on a GPU), float32, with an embedding and a head of 4,096 words"
    },
    targets={"torch.optim.Muon and AdamW": 0.143, "pytorch_optimizer Muon": 0.143},
)
def transformer(case: str, device: str) -> Task:
    """Gradients stay the same, so that every step goes as far as the first."""
    weights = transformer_weights(WIDTHS.get(device, ON_GPU), device)
    return Task(weights, [p.detach().clone() for p in weights.hidden])


@ours("lemmata")
def with_ours(task: Task) -> Callable[[], Task]:
    """As it comes: equal shapes are multiplied together."""
    return _stepping_task(
        task, Muon(_parameter_groups(task.weights, "rule", ("muon", "adamw")), lr=RATE, weight_decay=0.0)
    )


@ours("lemmata, one matrix at a time")
def with_ours_singly(task: Task) -> Callable[[], Task]:
    """The readable path."""
    groups = _parameter_groups(task.weights, "rule", ("muon", "adamw"))
    return _stepping_task(task, Muon(groups, lr=RATE, weight_decay=0.0, foreach=False))


@peer("torch.optim.Muon and AdamW")
def with_torch(task: Task) -> Callable[[], Task]:
    """Two optimisers, as torch's documentation shows it."""
    muon = torch.optim.Muon(task.weights.hidden, lr=RATE, weight_decay=0.0)
    return _stepping_task(task, muon, torch.optim.AdamW(task.weights.others, lr=RATE, weight_decay=0.0))


@peer("pytorch_optimizer Muon", needs="pytorch_optimizer")
def with_pytorch_optimizer(task: Task) -> Callable[[], Task]:
    """Its usual setting."""
    import pytorch_optimizer

    groups = [group | {"lr": RATE} for group in _parameter_groups(task.weights, "use_muon", (True, False))]
    return _stepping_task(task, pytorch_optimizer.Muon(groups))


@limit("the matrix products of five Newton-Schulz steps as they are written, in float32 or on a GPU in bfloat16")
def products_alone(task: Task) -> Callable[[], None]:
    """No norm, no momentum, no step."""
    dtype = torch.bfloat16 if task.start[0].is_cuda else torch.float32
    matrices = [(p if p.shape[0] <= p.shape[1] else p.mT).detach().to(dtype) for p in task.weights.hidden]

    def compute() -> None:
        for x in matrices:
            for _ in range(5):
                gram = x @ x.mT
                gram = torch.addmm(gram, gram, gram)
                torch.addmm(x, gram, x)

    return compute


def _parameter_groups(weights: Weights, word: str, values: tuple[object, object]) -> list[dict[str, object]]:
    return [{"params": list(params), word: value} for params, value in zip(weights, values, strict=True)]


def _stepping_task(task: Task, *optimizers: torch.optim.Optimizer) -> Callable[[], Task]:
    def step() -> Task:
        for optimizer in optimizers:
            optimizer.step()
        return task

    return step


@agreement(within=0.02)
def in_numbers(task: Task) -> dict[str, float]:
    """How far the matrices of the first layer have gone, as shares of all: a step has a length for each shape."""
    shares = moved(task.start, task.weights.hidden)
    return {f"share of matrix {number}": float(share) for number, share in enumerate(shares[:4])}
