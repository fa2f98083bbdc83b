r"""Exponential associative memory: the separation function $e^z$ stores a number of patterns exponential in $n$."""

from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Float, Real
from torch import Tensor

from lemmata.connectionism.dense_memory import SeparationMemory
from lemmata.marks import system

__all__ = ["ExponentialMemory"]

# Terms are rounded to whole multiples of 1 / GRID. Their sums, below 8, are then exact in float64, so that equal terms
# of opposite sign cancel: two patterns one flip apart weigh the same at that unit.
GRID = 2.0**48


@final
@system("exponential_memory", title="Exponential associative memory", kind="memory")
class ExponentialMemory(SeparationMemory):
    r"""Associative memory with $F = \exp$: random patterns up to about $2^{n/2}$ are fixed points.

    $$ E(x) = -\log \sum_\mu e^{\xi_\mu^\top x}, \qquad
       x_i \leftarrow \mathrm{sgn} \sum_\mu \Big[ e^{\xi_{\mu i} + \sum_{j \ne i} \xi_{\mu j} x_j}
       - e^{-\xi_{\mu i} + \sum_{j \ne i} \xi_{\mu j} x_j} \Big] $$

    Everything is taken relative to $\sum_\mu e^{\xi_\mu^\top x}$ of the current state, which no sign can see: nothing
    overflows, however many units there are. Relative to it each pattern counts in whole multiples of $2^{-48}$: equal
    terms cancel exactly, and a field below $2^{-48}$ times the number of patterns may come out as a tie. `field` is in
    these units, $x_i (1 - e^{E(x) - E(x')})$ with $x'$ the state with unit $i$ flipped.

    Shapes:
        patterns: (patterns, units) of -1 and +1    states: (..., units) of -1 and +1, any dtype

    Claims: hopfield.exponential
    Source: Demircigil et al. 2017.
    Differs: the energy is minus the logarithm of the sum, where the source has minus the sum: the same order of
        states and the same updates, but it fits into a floating-point number.

    >>> patterns = torch.randint(0, 2, (500, 300), generator=torch.Generator().manual_seed(0)) * 2 - 1
    >>> memory = ExponentialMemory(patterns)
    >>> noisy = torch.where(torch.arange(300) < 60, -1, 1) * patterns[:1]
    >>> memory.recall(noisy).exact
    tensor([True])
    """

    def energy(self, states: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch"]:
        r"""$-\log \sum_\mu e^{\xi_\mu^\top x}$ of each state."""
        return -self.overlaps(states).logsumexp(-1)

    def _separation_function(self, overlaps: Tensor) -> Callable[[Tensor], Tensor]:
        total = overlaps.logsumexp(-1, keepdim=True)  # (..., 1)
        return lambda overlaps: (torch.exp(overlaps - total) * GRID).round() / GRID
