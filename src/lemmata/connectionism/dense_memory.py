r"""Dense associative memory, and what every memory with an energy $-\sum_\mu F(\xi_\mu^\top x)$ has in common."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Bool, Float, Real
from torch import Tensor, nn

from lemmata.connectionism.hopfield import Recall
from lemmata.foundations.activations.signs import hopfield_sign
from lemmata.marks import system
from lemmata.validate import count, last_axis, signs

__all__ = ["DenseAssociativeMemory", "SeparationMemory"]

MAX_UNITS = 20  # local_minima tries all 2^n states


class SeparationMemory(nn.Module, ABC):
    r"""Binary memory whose energy separates the patterns by a function $F$ of their overlap with the state.

    $$ E(x) = -\sum_\mu F(\xi_\mu^\top x), \qquad x_i \leftarrow \mathrm{sgn} \sum_\mu \Big[
       F\Big(\xi_{\mu i} + \sum_{j \ne i} \xi_{\mu j} x_j\Big)
       - F\Big(-\xi_{\mu i} + \sum_{j \ne i} \xi_{\mu j} x_j\Big) \Big], \qquad \mathrm{sgn}(0) = +1 $$

    The update sets $x_i$ to the value of smaller energy, so recall ends. A subclass gives $F$ and the energy.
    Arithmetic is float64 whatever the dtype of the patterns.

    Shapes:
        patterns: (patterns, units) of -1 and +1    states: (..., units) of -1 and +1, any dtype

    Claims: hopfield.dense, hopfield.exponential, hopfield.more_minima
    """

    patterns: Float[Tensor, "patterns units"]

    def __init__(self, patterns: Real[Tensor, "patterns units"]) -> None:
        super().__init__()
        if signs("patterns", patterns).ndim != 2:
            raise ValueError(f"patterns must be a (patterns, units) tensor, got shape {tuple(patterns.shape)}")
        dtype = patterns.dtype if patterns.is_floating_point() else torch.get_default_dtype()
        self.register_buffer("patterns", patterns.detach().to(dtype, copy=True))

    @abstractmethod
    def energy(self, states: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch"]:
        """The energy of each state."""

    @abstractmethod
    def _separation_function(self, overlaps: Float[Tensor, "*batch patterns"]) -> Callable[[Tensor], Tensor]:
        """$F$ for states with these overlaps, up to a positive factor for each state, which no sign can see."""

    @property
    def units(self) -> int:
        return self.patterns.shape[1]

    def overlaps(self, states: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch patterns"]:
        r"""$\xi_\mu^\top x$ of each state with each pattern, from $-n$ to $n$."""
        return self._checked_states("states", states) @ self.patterns.double().T  # (..., units) -> (..., patterns)

    def update(self, states: Real[Tensor, "*batch units"], unit: int) -> Float[Tensor, "*batch units"]:
        """Set one unit of every state to its value of smaller energy: the formula as it is printed."""
        count("unit", unit, least=0, most=self.units - 1)
        overlaps, states = self.overlaps(states), self._checked_states("states", states).clone()
        states[..., unit] = hopfield_sign(
            self._energy_gap(overlaps, states[..., unit], self.patterns[:, unit].double())
        )
        return states.to(self.patterns.dtype)

    def field(self, states: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch units"]:
        r"""At each unit, what the energy would gain by $x_i = -1$ over $x_i = +1$, all units by one matrix product.

        As $\xi_{\mu i} x_i = \pm 1$, a flip moves the overlap $m_\mu$ by 2 one way or the other, and
        $F(m_\mu - 2 \xi_{\mu i} x_i)$ is linear in $\xi_{\mu i} x_i$: a mean minus half a difference.
        """
        overlaps = self.overlaps(states)
        F = self._separation_function(overlaps)
        low, here, high = F(overlaps - 2), F(overlaps), F(overlaps + 2)  # (..., patterns)
        own = (here - (low + high) / 2).sum(-1, keepdim=True)  # (..., 1)
        return (high - low) / 2 @ self.patterns.double() + own * states  # (..., units)

    def is_stable(self, states: Real[Tensor, "*batch units"]) -> Bool[Tensor, "*batch"]:
        """Whether no single update changes the state."""
        return (hopfield_sign(self.field(states)) == states).all(-1)

    @torch.no_grad()
    def recall(
        self,
        states: Real[Tensor, "batch units"],
        max_sweeps: int = 100,
        generator: torch.Generator | None = None,
        trace: bool = False,
    ) -> Recall:
        """Update the units one after the other until each state rests, and report what was found.

        A sweep takes the units in the order 0, 1, ...; a `generator` draws a new order for each sweep, the same for
        the whole batch. `trace=True` records the energies.
        """
        count("max_sweeps", max_sweeps)
        current = self._checked_states("states", states).clone()
        if current.ndim != 2:
            raise ValueError(f"states must be a (batch, units) tensor, got shape {tuple(states.shape)}")
        sweeps = torch.zeros(len(current), dtype=torch.long, device=current.device)
        moving = (~self.is_stable(current)).nonzero()[:, 0]  # states at rest cost nothing more
        energies = [self.energy(current)]
        for _ in range(max_sweeps):
            if len(moving) == 0:
                break
            old, new = current[moving], self._sweep_units(current[moving], generator)
            current[moving] = new
            sweeps[moving] += 1
            energies += [self.energy(current)] if trace else []
            # A state may look unstable by rounding alone; that no update changed it settles the matter.
            moving = moving[(new != old).any(1) & ~self.is_stable(new)]
        converged = torch.ones_like(sweeps, dtype=torch.bool).index_fill(0, moving, False)
        found = Recall.against(
            self.patterns.double(), current, converged=converged, cycled=torch.zeros_like(converged), sweeps=sweeps,
            energies=torch.stack(energies, 1) if trace else None,
        )  # fmt: skip
        return dataclasses.replace(found, states=current.to(self.patterns.dtype))

    def forward(self, states: Real[Tensor, "batch units"]) -> Float[Tensor, "batch units"]:
        """The recalled states alone."""
        return self.recall(states).states

    def local_minima(self) -> Float[Tensor, "minima units"]:
        """Every state that no single update changes, found by trying all of them."""
        if self.units > MAX_UNITS:
            raise ValueError(f"local_minima tries all 2^units states: units must be <= {MAX_UNITS}, got {self.units}")
        bits = torch.arange(self.units, device=self.patterns.device)
        found = []
        for block in torch.arange(2**self.units, device=self.patterns.device).split(16_384):
            states = (block[:, None] >> bits & 1).double() * 2 - 1
            found.append(states[self.is_stable(states)])
        return torch.cat(found).to(self.patterns.dtype)

    def _sweep_units(self, states: Tensor, generator: torch.Generator | None) -> Tensor:
        """Update every unit once; each flip moves the overlaps by its own pattern values, so none is computed anew."""
        states = states.clone()  # (batch, units)
        overlaps, columns = self.overlaps(states), self.patterns.double().T  # (batch, patterns), (units, patterns)
        order = range(self.units) if generator is None else _shuffled_units(self.units, generator)
        for unit in order:
            new = hopfield_sign(self._energy_gap(overlaps, states[:, unit], columns[unit]))  # (batch,)
            overlaps.addr_(new - states[:, unit], columns[unit])
            states[:, unit] = new
        return states

    def _energy_gap(self, overlaps: Tensor, values: Tensor, column: Tensor) -> Tensor:
        """How much lower the energy is with +1 than with -1 at the unit that has these values and pattern values."""
        F, rest = self._separation_function(overlaps), overlaps - values.unsqueeze(-1) * column  # (..., patterns)
        return (F(rest + column) - F(rest - column)).sum(-1)  # (...)

    def _checked_states(self, name: str, states: Tensor) -> Tensor:
        return last_axis(name, signs(name, states), self.units, "unit").double()

    def extra_repr(self) -> str:
        return f"patterns={len(self.patterns)}, units={self.units}"


@final
@system("dense_memory", title="Dense associative memory", kind="memory")
class DenseAssociativeMemory(SeparationMemory):
    r"""Associative memory of higher order: with $F(z) = z^k$ its capacity grows as $n^{k-1}$.

    $$ E(x) = -\sum_\mu (\xi_\mu^\top x)^k $$

    `order` $k = 2$ is the classical Hopfield network with Hebb's rule, step for step. Even orders also remember the
    mirror images of the patterns, odd ones do not. Overlaps and their powers are integers, and every sum of them
    is exact, ties included, while $s\,(n + 2)^k \le 2^{53}$ for $s$ patterns of $n$ units; beyond that rounding may
    decide between states whose energies are that close.

    Shapes:
        patterns: (patterns, units) of -1 and +1    states: (..., units) of -1 and +1, any dtype

    Claims: hopfield.dense, hopfield.more_minima
    Source: Krotov, Hopfield 2016.

    >>> memory = DenseAssociativeMemory(torch.tensor([[1, 1, 1, 1, 1], [1, -1, 1, -1, 1], [-1, -1, 1, 1, 1]]))
    >>> memory.recall(torch.tensor([[1, 1, 1, 1, -1]])).states
    tensor([[1., 1., 1., 1., 1.]])
    """

    def __init__(self, patterns: Real[Tensor, "patterns units"], order: int = 3) -> None:
        super().__init__(patterns)
        # Up to it, and to 65,000 units, $(n + 2)^k$ summed over the patterns stays inside float64.
        self.order = count("order", order, least=2, most=60)

    def energy(self, states: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch"]:
        r"""$-\sum_\mu (\xi_\mu^\top x)^k$ of each state."""
        return -_integer_power(self.overlaps(states), self.order).sum(-1)

    def _separation_function(self, overlaps: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda overlaps: _integer_power(overlaps, self.order)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, order={self.order}"


def _integer_power(base: Tensor, exponent: int) -> Tensor:
    """By products alone, which are exact on integers; `pow` promises its last bit on no device."""
    if exponent < 4:
        return base if exponent == 1 else base * base if exponent == 2 else base * base * base
    half = _integer_power(base, exponent // 2)
    return half * half * base if exponent % 2 else half * half


def _shuffled_units(units: int, generator: torch.Generator) -> list[int]:
    return torch.randperm(units, generator=generator, device=generator.device).tolist()
