"""The sampler under test: what makes its kernel, the density it is to leave alone, and exact draws from that."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from lemmata import validate
from lemmata.testing.findings import Broken

__all__ = []  # for the suite alone

BEND, WIDTH = 0.5, 0.7  # of the target that is taken where none is given
BOUND, CELLS = 8.0, 400  # the square in which another density is drawn from, cell by cell
REFERENCE = 500_000  # exact draws that the chains are compared with
FEW = 5  # chains in the checks that compare bits


def bent(x: Tensor) -> Tensor:
    """A correlated, skewed density in two dimensions of which exact draws are easy: y bends around x."""
    return -0.5 * x[:, 0].square() - 0.5 * ((x[:, 1] - BEND * x[:, 0].square() - x[:, 0]) / WIDTH).square()


def bent_draws(n: int, generator: Generator) -> Tensor:
    z = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    y = BEND * z[:, 0].square() + z[:, 0] + WIDTH * z[:, 1]
    return torch.stack([z[:, 0], y], dim=1)


@dataclass
class Subject:
    """A sampler and its target."""

    make: Callable[..., Any]
    name: str
    log_density: Callable[[Tensor], Tensor]
    exact: Callable[[int, Generator], Tensor]
    chains: int
    transitions: int
    reversible: bool
    alpha: float

    @classmethod
    def of(
        cls, make: Any, log_density: Any, exact: Any, chains: int, transitions: int, reversible: bool, alpha: float
    ) -> "Subject":
        if not callable(make):
            raise TypeError(f"kernel must be what makes a kernel of a log density, got {type(make).__name__}")
        if log_density is None:
            if exact is not None:
                raise ValueError("exact draws are those of log_density: give it, too")
            log_density, exact = bent, bent_draws
        validate.count("chains", chains, least=1000)
        validate.count("transitions", transitions)
        validate.number("alpha", alpha, above=0, below=0.1)
        exact = from_a_grid(log_density) if exact is None else exact
        inner = getattr(make, "func", make)
        name = getattr(inner, "__name__", repr(inner))
        return cls(make, name, log_density, exact, chains, transitions, validate.flag("reversible", reversible), alpha)

    def kernel(self, log_density: Callable[[Tensor], Tensor] | None = None) -> Any:
        """A new kernel, for the target or another density."""
        kernel = self.make(self.log_density if log_density is None else log_density)
        if not (hasattr(kernel, "init") and hasattr(kernel, "step")):
            raise Broken(f"a kernel must have the methods init and step, got {type(kernel).__name__}")
        return kernel

    def started(self, kernel: Any, position: Tensor, generator: Any) -> Any:
        """The state of chains at these positions, with random velocities where the kernel has them."""
        takes_generator = len(inspect.signature(kernel.init).parameters) > 1
        return kernel.init(position.clone(), generator) if takes_generator else kernel.init(position.clone())

    def walk(self, kernel: Any, state: Any, generator: Any, transitions: int) -> tuple[Any, list[Any]]:
        """The state after so many transitions, and what became of each of them."""
        records = []
        for _ in range(transitions):
            state, transition = kernel.step(state, generator)
            records.append(transition)
        return state, records

    def few(self) -> Tensor:
        """Positions of a few chains, always the same."""
        return self.exact(FEW, Generator().manual_seed(2))


def from_a_grid(log_density: Callable[[Tensor], Tensor]) -> Callable[[int, Generator], Tensor]:
    """Draws from a density in two dimensions: a cell of a grid by its mass, and a uniform place in the cell.

    Inside a cell the density is taken as constant, which moves no distribution function by more than a thousandth of
    what the suite can see, if the density varies on a scale of 0.2 or more.
    """
    edges = torch.linspace(-BOUND, BOUND, CELLS + 1, dtype=torch.float64)
    middle = (edges[1:] + edges[:-1]) / 2
    cells = torch.cartesian_prod(middle, middle)
    value = log_density(cells)
    mass = (value - value.max()).exp().nan_to_num(0.0)
    border = mass.view(CELLS, CELLS)
    outside = max(float(side.sum()) for side in (border[0], border[-1], border[:, 0], border[:, -1])) / float(
        mass.sum()
    )
    if outside > 1e-6:
        raise ValueError(f"log_density has mass at the border of [-{BOUND:g}, {BOUND:g}]²: give exact draws from it")
    size = 2 * BOUND / CELLS
    total = mass.cumsum(0)

    def draw(n: int, generator: Generator) -> Tensor:
        at = torch.rand(n, generator=generator, dtype=torch.float64) * total[-1]
        cell = torch.searchsorted(total, at).clamp(max=len(total) - 1)
        return cells[cell] + size * (torch.rand(n, 2, generator=generator, dtype=torch.float64) - 0.5)

    return draw


def margin(n: int, alpha: float) -> float:
    """By how much an empirical distribution function of n draws is off, except with probability alpha (DKW)."""
    return math.sqrt(math.log(2 / alpha) / (2 * n))
