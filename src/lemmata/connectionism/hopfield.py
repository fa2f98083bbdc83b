r"""The Hopfield network: binary units whose energy only falls, so that memories are places where it rests."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn

from lemmata.foundations.activations.signs import hopfield_sign
from lemmata.marks import system
from lemmata.validate import count, last_axis, matrix, one_of, signs, vector

__all__ = ["HopfieldNetwork", "Recall"]

# Units whose fields one matrix product refreshes together. From 32 to 256 it hardly matters; at 32 the step inside a
# block stays so small, for a thousand states, that torch does not wake its thread pool thousands of times.
BLOCK = 32
RULES = ("hebb", "pseudo-inverse")


@dataclass(frozen=True, eq=False, repr=False)
class Recall:
    r"""Where a batch of states came to rest, and an honest report of what that is.

    Any associative memory of this chapter may return it: `states` are what was recalled, and `against` compares
    them with the stored patterns. The overlap of a state $x$ with a pattern $\xi$ is $\frac1n\xi^\top x$, so $+1$
    is the memory itself and $-1$ its mirror image; the nearest memory is the one of largest absolute overlap.

    Shapes:
        states: (batch, units)    energies: (batch, moments), or None    all others: (batch,)
    """

    states: Float[Tensor, "batch units"]
    converged: Bool[Tensor, " batch"]  # no single update changes the state
    cycled: Bool[Tensor, " batch"]  # came back to the state of two sweeps before; synchronous updates only
    sweeps: Int[Tensor, " batch"]  # sweeps that changed something
    memory: Int[Tensor, " batch"]  # index of the nearest stored pattern, -1 if none is stored
    overlap: Float[Tensor, " batch"]  # with that pattern, signed; NaN if none is stored
    energies: Float[Tensor, "batch moments"] | None = None  # at the start and after each sweep

    @classmethod
    def against(
        cls, patterns: Float[Tensor, "patterns units"], states: Float[Tensor, "batch units"], **facts: Any
    ) -> "Recall":
        """Report `states` against the stored `patterns`; `facts` are the remaining fields."""
        if len(patterns) == 0:
            memory = torch.full((len(states),), -1, device=states.device)
            return cls(states, memory=memory, overlap=states.new_full((len(states),), torch.nan), **facts)
        # The products are integers and must be exact, so that 1 and -1 mean every bit: half precision cannot count
        # to a thousand, and float32 not beyond 2^24.
        wide = whole_number_dtype(states.dtype, states.shape[1])
        overlaps = states.to(wide) @ patterns.to(wide).T / states.shape[1]  # (batch, patterns)
        memory = overlaps.abs().argmax(1)  # (batch,)
        return cls(states, memory=memory, overlap=overlaps.gather(1, memory[:, None])[:, 0], **facts)

    @property
    def exact(self) -> Bool[Tensor, " batch"]:
        """The state is a stored pattern, bit for bit: its overlap, an integer over the units, is no other."""
        return self.overlap == 1

    @property
    def mirror(self) -> Bool[Tensor, " batch"]:
        """The state is the mirror image of a stored pattern."""
        return self.overlap == -1

    @property
    def spurious(self) -> Bool[Tensor, " batch"]:
        """The state is a fixed point, but neither a memory nor a mirror image."""
        return self.converged & (self.overlap.abs() < 1)

    def __repr__(self) -> str:
        kinds = ("converged", "cycled", "exact", "mirror", "spurious")
        counts = ", ".join(f"{kind}={int(getattr(self, kind).sum())}" for kind in kinds)
        return f"Recall(states={len(self.states)}, {counts})"


@system("hopfield", title="Hopfield network", kind="memory")
class HopfieldNetwork(nn.Module):
    r"""Associative memory of binary units with symmetric couplings and no self-coupling.

    $$ H(x) = -\tfrac12 x^\top W x + b^\top x, \qquad
       x_i \leftarrow \mathrm{sgn}\Big(\sum_j w_{ij} x_j - b_i\Big), \qquad \mathrm{sgn}(0) = +1 $$

    Each update lowers the energy $H$ or keeps it, so asynchronous recall ends in a fixed point: a memory if load and
    noise are small. The couplings are kept as $n W$, which Hebb's rule makes integers: fields and ties are then
    exact without a bias, and recall is the same bit for bit in whatever order a matrix product adds. Sums go up to
    patterns times units; above $2^{24}$ in float32 they are computed in double. Couplings of the pseudo-inverse rule,
    and your own, are what they are in floating point: there rounding may decide a tie.

    Shapes:
        weight: (units, units)    bias: (units,)    states: (..., units) of -1 and +1, in any dtype

    Claims: hopfield.energy, hopfield.update_equivalence, hopfield.energy_descent, hopfield.hebb,
        hopfield.metastable, hopfield.crosstalk, hopfield.network
    Source: Hopfield 1982; pseudo-inverse rule: Personnaz, Guyon, Dreyfus 1985.
    Differs: couplings are kept in the dtype of the network: bfloat16 rounds them beyond 256 patterns and may miss ties.

    >>> memories = torch.tensor([[1, 1, 1, 1, -1, -1, -1, -1], [1, -1, 1, -1, 1, -1, 1, -1]])
    >>> network = HopfieldNetwork.from_patterns(memories)
    >>> noisy = torch.tensor([[-1, 1, 1, 1, -1, -1, -1, -1]])
    >>> network.recall(noisy).states
    tensor([[ 1.,  1.,  1.,  1., -1., -1., -1., -1.]])
    """

    couplings: Tensor
    scale: Tensor
    bias: Tensor
    patterns: Tensor

    def __init__(
        self,
        units: int,
        weight: Float[Tensor, "units units"] | None = None,
        bias: Float[Tensor, " units"] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        count("units", units)
        given = [_symmetric_weight(weight, units)] if weight is not None else []
        given += [vector("bias", bias, units)] if bias is not None else []
        if given:  # the dtype and device of what is given, unless others are asked for
            device, dtype = device or given[0].device, dtype or given[0].dtype
        self.register_buffer("couplings", torch.zeros(units, units, device=device, dtype=dtype))
        self.register_buffer("scale", self.couplings.new_ones(()))  # couplings / scale is the weight
        self.register_buffer("bias", self.couplings.new_zeros(units))
        self.register_buffer("patterns", self.couplings.new_zeros(0, units))
        if weight is not None:
            self.couplings.copy_(weight)
        if bias is not None:
            self.bias.copy_(bias)

    @classmethod
    def from_patterns(cls, patterns: Real[Tensor, "patterns units"], rule: str = "hebb") -> "HopfieldNetwork":
        """A network without biases that has stored `patterns`, in their dtype and on their device."""
        _matrix_of_signs("patterns", patterns)
        dtype = patterns.dtype if patterns.is_floating_point() else None
        return cls(patterns.shape[1], device=patterns.device, dtype=dtype).store(patterns, rule)

    @property
    def units(self) -> int:
        return len(self.bias)

    @property
    def weight(self) -> Float[Tensor, "units units"]:
        """The coupling matrix $W$: symmetric, zero on the diagonal."""
        return self.couplings / self.scale

    def store(self, patterns: Real[Tensor, "patterns units"], rule: str = "hebb") -> "HopfieldNetwork":
        r"""Replace the couplings by those that remember `patterns`; returns the network.

        Hebb: $W = \frac1n(\sum_t x_t x_t^\top - sI)$. Pseudo-inverse: the projection on the span of the patterns
        without its diagonal, which holds correlated patterns too, if they are linearly independent and no unit is told
        by their span alone what to do (its diagonal entry is below 1; fewer patterns than units).
        """
        stored = self._checked_states("patterns", _matrix_of_signs("patterns", patterns)).detach()
        if one_of("rule", rule, RULES) == "hebb":
            wide = stored.to(whole_number_dtype(stored.dtype, len(stored)))
            couplings, scale = (wide.T @ wide).to(stored.dtype), self.units  # (units, patterns) @ (patterns, units)
        else:
            exact = stored.double()
            projection = torch.linalg.pinv(exact) @ exact  # (units, units)
            couplings, scale = ((projection + projection.T) / 2).to(stored), 1
        self.couplings = couplings.fill_diagonal_(0)
        self.scale = self.scale.new_tensor(scale)
        self.patterns = stored.clone()
        return self

    def energy(self, states: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch"]:
        r"""$H(x) = -\frac12 x^\top W x + b^\top x$ of each state."""
        given, wide = self._checked_states("states", states), self._sum_dtype  # (..., units)
        states = given.to(wide)
        pairs = ((states @ self.couplings.to(wide)) * states).sum(-1) / self.scale  # (...), the sum over i and j
        return (states @ self.bias.to(wide) - pairs / 2).to(given.dtype)

    def field(self, states: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch units"]:
        r"""Local field $H_i = \sum_j w_{ij} x_j - b_i$ at each unit: half of what the energy gains if $x_i$ is -1."""
        states, wide = self._checked_states("states", states), self._sum_dtype
        fields = states.to(wide) @ self.couplings.to(wide) - self.scale * self.bias  # (..., units)
        return (fields / self.scale).to(states.dtype)

    def update(self, states: Real[Tensor, "*batch units"], unit: int) -> Float[Tensor, "*batch units"]:
        """Set one unit of every state to the sign of its field: the textbook step, and recall's reference."""
        count("unit", unit, least=0, most=self.units - 1)
        states, wide = self._checked_states("states", states).clone(), self._sum_dtype
        field = states.to(wide) @ self.couplings[unit].to(wide) - self.scale * self.bias[unit]  # (...)
        states[..., unit] = hopfield_sign(field).to(states.dtype)
        return states

    def is_stable(self, patterns: Real[Tensor, "*batch units"]) -> Bool[Tensor, "*batch"]:
        """Whether no single update changes the pattern, that is, whether it is memorised."""
        patterns = self._checked_states("patterns", patterns)
        return (hopfield_sign(self.field(patterns)) == patterns).all(-1)

    def crosstalk(self, patterns: Real[Tensor, "*batch units"]) -> Float[Tensor, "*batch units"]:
        r"""What the other memories add to the field of a pattern stored by Hebb's rule:
        $C_{t,i} = \sum_j w_{ij} x_{t,j} - (1 - \frac1n) x_{t,i}$."""
        given, wide = self._checked_states("patterns", patterns), self._sum_dtype
        patterns = given.to(wide)
        return (patterns @ self.couplings.to(wide) / self.scale - (1 - 1 / self.units) * patterns).to(given.dtype)

    @torch.no_grad()
    def recall(
        self,
        states: Real[Tensor, "batch units"],
        dynamics: str = "asynchronous",
        max_sweeps: int = 100,
        generator: torch.Generator | None = None,
        trace: bool = False,
    ) -> Recall:
        """Run the dynamics until each state rests (or cycles, or `max_sweeps` are over) and report what was found.

        Asynchronous sweeps update the units one after the other in the order 0, 1, ...; a `generator` draws a new
        order for each sweep, the same for the whole batch. `trace=True` records the energies.
        """
        one_of("dynamics", dynamics, ("asynchronous", "synchronous"))
        count("max_sweeps", max_sweeps)
        current = self._checked_states("states", _matrix_of_signs("states", states)).clone()  # (batch, units)
        before = current.clone()  # the states of one sweep ago: meeting them again is a cycle of two
        sweeps = torch.zeros(len(current), dtype=torch.long, device=current.device)
        cycled = torch.zeros_like(sweeps, dtype=torch.bool)
        moving = torch.arange(len(current), device=current.device)  # (moving,): states at rest cost nothing more
        energies = [self.energy(current)] if trace else []
        for _ in range(max_sweeps):
            old = current[moving]  # (moving, units)
            new = self._sweep_units(old, generator) if dynamics == "asynchronous" else hopfield_sign(self.field(old))
            changed = (new != old).any(1)
            cycled[moving] = changed & (new == before[moving]).all(1)
            before[moving], current[moving] = old, new
            sweeps[moving] += changed
            moving = moving[changed & ~cycled[moving]]
            if trace:
                energies.append(self.energy(current))
            if len(moving) == 0:
                break
        converged = ~cycled
        if len(moving):
            converged[moving] = self.is_stable(current[moving])
        return Recall.against(
            self.patterns, current, converged=converged, cycled=cycled, sweeps=sweeps,
            energies=torch.stack(energies, 1) if trace else None,
        )  # fmt: skip

    def forward(self, states: Real[Tensor, "batch units"]) -> Float[Tensor, "batch units"]:
        """The recalled states alone, so that a memory fits into any stack of modules."""
        return self.recall(states).states

    def _sweep_units(self, states: Tensor, generator: torch.Generator | None) -> Tensor:
        """Update every unit once, one after the other, for all states together.

        A block of fields comes from one matrix product; inside the block each flip is passed on to the units still
        to come through the block's own couplings. So the work is that of a synchronous sweep plus a sliver.
        """
        order = _update_order(self.units, generator).to(states.device)
        threshold = (self.scale * self.bias).to(self._sum_dtype)
        # (units, batch): a unit's values side by side
        state = states.T.to(self._sum_dtype).clone(memory_format=torch.contiguous_format)
        for block in order.split(BLOCK):
            rows, mine, least = self.couplings[block].to(state), state[block], threshold[block, None]
            fields = rows @ state  # (block, units) @ (units, batch)
            if torch.equal(hopfield_sign(fields - least), mine):  # no state wants to flip a unit of this block
                continue
            inside = rows[:, block]  # (block, block)
            for k, (field, values) in enumerate(zip(fields.unbind(), mine.unbind(), strict=True)):
                flips = hopfield_sign(field - least[k]) - values
                fields[k + 1 :].addr_(inside[k + 1 :, k], flips)
                values += flips
            state[block] = mine
        return state.T.to(states.dtype).contiguous()

    @property
    def _sum_dtype(self) -> torch.dtype:
        """The dtype of sums over all units, in which Hebb's integers are exact."""
        return whole_number_dtype(self.couplings.dtype, len(self.patterns) * self.units)

    def _checked_states(self, name: str, states: Tensor) -> Tensor:
        return last_axis(name, signs(name, states), self.units, "unit").to(self.couplings)

    def _load_from_state_dict(self, state_dict, prefix, *args) -> None:
        # The number of stored patterns is part of the state, not of the architecture.
        stored = state_dict.get(prefix + "patterns")
        if stored is not None:
            self.patterns = self.patterns.new_empty(stored.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"units={self.units}, patterns={len(self.patterns)}"


def whole_number_dtype(dtype: torch.dtype, most: int) -> torch.dtype:
    """The dtype in which to add up integers that reach so far: at least float32, double where that is not exact.

    >>> whole_number_dtype(torch.bfloat16, 2**24), whole_number_dtype(torch.float32, 2**24 + 1)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32 if most <= 2**24 else torch.float64)


def _update_order(units: int, generator: torch.Generator | None) -> Tensor:
    if generator is None:
        return torch.arange(units)
    return torch.randperm(units, generator=generator, device=generator.device)


def _symmetric_weight(weight: Tensor, units: int) -> Tensor:
    if matrix("weight", weight, "units, units").shape != (units, units):
        raise ValueError(f"weight must have shape ({units}, {units}), got {tuple(weight.shape)}")
    if not torch.equal(weight, weight.T):
        gap = (weight - weight.T).abs().max()
        raise ValueError(f"weight must be symmetric, got differences up to {gap:g}: use (weight + weight.T) / 2")
    if weight.diagonal().any():
        largest = weight.diagonal().abs().max()
        raise ValueError(f"weight must be zero on its diagonal, got up to {largest:g}: use weight.fill_diagonal_(0)")
    return weight


def _matrix_of_signs(name: str, value: Tensor) -> Tensor:
    if signs(name, value).ndim != 2:
        raise ValueError(f"{name} must be a (batch, units) tensor of -1 and +1, got shape {tuple(value.shape)}")
    return value
