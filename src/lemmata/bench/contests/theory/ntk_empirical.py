"""The tangent kernel of a perceptron between all outputs of 200 examples; the limit is the largest product in it."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.kernel.tangent_kernel import ntk

SIZES = {"cuda": (1024, 384), "cpu": (512, 200)}  # width, examples


class Problem(NamedTuple):
    """A network and its inputs."""

    model: nn.Module
    x: Tensor
    width: int


@entry(
    "ntk_empirical",
    title="Tangent kernel of a network",
    measures="the kernel between all outputs of all pairs of examples, float32",
    cases={"mlp": "784-512-512-10, 200 examples (784-1024-1024-10, 384 examples on a GPU)"},
    targets={"torch.func": 0.02},
)
def problem(case: str, device: str) -> Problem:
    """A network of relu as torch draws it."""
    del case
    width, examples = SIZES.get(torch.device(device).type, SIZES["cpu"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)]
        x = torch.randn(examples, 784)
    return Problem(nn.Sequential(*layers).to(device), x.to(device), width)


@ours("lemmata")
def by_products(problem: Problem) -> Callable[[], Tensor]:
    """Layer by layer, without gradients."""
    return lambda: ntk(problem.model, problem.x)


@peer("torch.func")
def by_jacobians(problem: Problem) -> Callable[[], Tensor]:
    """As torch's own tutorial has it: all Jacobians, contracted parameter by parameter."""
    model, x, _ = problem
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def outputs(parameters: dict[str, Tensor], each: Tensor) -> Tensor:
        return functional_call(model, parameters, (each[None],))[0]

    def kernel() -> Tensor:
        found = vmap(jacrev(outputs), (None, 0))(parameters, x)
        parts = [part.flatten(2) for part in found.values()]  # (examples, outputs, entries)
        return torch.stack([torch.einsum("naf,mbf->nmab", part, part) for part in parts]).sum(0)

    return kernel


@limit("one product of gradients")
def one_product(problem: Problem) -> Callable[[], Tensor]:
    """What passes backwards through a layer, for all outputs of all examples, times itself."""
    rows = torch.randn(10 * len(problem.x), problem.width, device=problem.x.device)
    return lambda: rows @ rows.mT


@agreement(within=1e-3)
def in_numbers(kernel: Tensor) -> dict[str, float]:
    """Its length and its trace."""
    found = kernel.detach().double()
    return {"length": float(found.norm()), "trace": float(found.diagonal().diagonal().sum())}
