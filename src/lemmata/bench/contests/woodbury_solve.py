"""A diagonal plus low rank, solved by Woodbury's identity against the dense solve of the same matrix."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.foundations.linear_algebra.woodbury import DiagonalPlusLowRank

SIZE, RANK = 4096, 32


class System(NamedTuple):
    """The matrix in its parts and formed, and the right-hand side."""

    diagonal: Tensor
    left: Tensor
    right: Tensor
    dense: Tensor
    b: Tensor


@entry(
    "woodbury",
    title="Woodbury against the dense solve",
    measures="one solve for one right-hand side; the dense matrix is formed beforehand",
    cases={"rank32": "n = 4,096, rank 32, float64"},
    targets={"torch.linalg.solve": 0.05},
)
def low_rank_system(case: str, device: str) -> System:
    """Positive diagonal, random factors."""
    generator = torch.Generator().manual_seed(0)
    diagonal = 1 + torch.rand(SIZE, generator=generator, dtype=torch.float64)
    left = torch.randn(SIZE, RANK, generator=generator, dtype=torch.float64) / SIZE**0.5
    right = torch.randn(RANK, SIZE, generator=generator, dtype=torch.float64) / SIZE**0.5
    b = torch.randn(SIZE, generator=generator, dtype=torch.float64)
    dense = torch.diag(diagonal) + left @ right
    return System(*(part.to(device) for part in (diagonal, left, right, dense, b)))


@ours("lemmata")
def by_woodbury(system: System) -> Callable[[], Tensor]:
    """From the parts, with one step of refinement."""
    return lambda: DiagonalPlusLowRank(system.diagonal, system.left, system.right).solve(system.b)


@peer("torch.linalg.solve")
def by_elimination(system: System) -> Callable[[], Tensor]:
    """The formed matrix."""
    return lambda: torch.linalg.solve(system.dense, system.b)


@limit("reading both factors once")
def factors_alone(system: System) -> Callable[[], Tensor]:
    """Every entry of the factors takes part: one product with each."""
    return lambda: system.left @ (system.right @ system.b)


@agreement(within=1e-9)
def in_numbers(x: Tensor) -> dict[str, float]:
    """Length and first entry of the solution."""
    return {"length": float(x.norm()), "first": float(x[0])}
