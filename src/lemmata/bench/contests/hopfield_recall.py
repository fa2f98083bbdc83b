"""Hopfield recall at full size against plain torch loops: 1,000 noisy states until every one is at rest.

The loop over units is what the textbook says: take a unit, compute its field in all states, set its sign. It reads all
states for each of the 4,096 units, which takes ten to thirty seconds in all. It is not scaled up from a part and not
run on less: it does the whole work, and if that takes longer than the whole budget it does it once. Both loops drop
states that have come to rest, as ours does, so that nobody is slowed by states that need no work.

Ours also checks what it is given and tells of each state where it came to rest and which memory is nearest. Beside
the loop over units that is nothing; beside synchronous sweeps, which are one product each for everybody, it shows.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.connectionism.hopfield import HopfieldNetwork

STATES, UNITS, PATTERNS, NOISE = 1000, 4096, 400, 0.1


class Memories(NamedTuple):
    """A network that has stored its patterns, and noisy copies of them."""

    network: HopfieldNetwork
    states: Tensor
    dynamics: str


@entry(
    "hopfield",
    title="Hopfield recall until every state is at rest",
    measures="one recall of all states, with 10 % of the units flipped at the start",
    cases={
        "asynchronous": "1,000 states x 4,096 units, 400 patterns, asynchronous",
        "synchronous": "1,000 states x 4,096 units, 400 patterns, synchronous",
    },
    targets={"torch loop over units": 1.0, "torch loop over sweeps": 1.0},
)
def noisy_memories(case: str, device: str) -> Memories:
    """Random patterns below capacity, stored by Hebb's rule; each state is a pattern with noise."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.where(torch.rand(PATTERNS, UNITS, generator=generator) < 0.5, -1.0, 1.0)
    flips = torch.where(torch.rand(STATES, UNITS, generator=generator) < NOISE, -1.0, 1.0)
    states = patterns[torch.arange(STATES) % PATTERNS] * flips
    return Memories(HopfieldNetwork.from_patterns(patterns.to(device)), states.to(device), case)


@ours("lemmata")
def recall(memories: Memories) -> Callable[[], Tensor]:
    """Our recall."""
    return lambda: memories.network.recall(memories.states, memories.dynamics).states


@peer("torch loop over units", cases="asynchronous")
def loop_over_units(memories: Memories) -> Callable[[], Tensor]:
    """One unit after the other, as printed."""
    couplings = memories.network.couplings

    def sweep(states: Tensor) -> Tensor:
        states = states.clone()
        for unit in range(UNITS):
            states[:, unit] = _sign_of_field(states @ couplings[unit])
        return states

    return lambda: _to_rest(sweep, memories.states)


@peer("torch loop over sweeps", cases="synchronous")
def loop_over_sweeps(memories: Memories) -> Callable[[], Tensor]:
    """All units at once, as printed."""
    return lambda: _to_rest(lambda states: _sign_of_field(states @ memories.network.couplings), memories.states)


@limit("the products of couplings and moving states alone")
def products(memories: Memories) -> Callable[[], None]:
    """Whatever uses the couplings must multiply them with every state that still moves, in every sweep."""
    found = memories.network.recall(memories.states, memories.dynamics)
    # The last sweep of a state finds that nothing changed, unless it ended in a cycle.
    taken = found.sweeps + (~found.cycled).long()
    moving = [int((taken >= sweep).sum()) for sweep in range(1, int(taken.max()) + 1)]
    columns = memories.states.T.contiguous()
    results = [columns.new_empty(UNITS, count) for count in moving]

    def multiply() -> None:
        for result in results:
            torch.mm(memories.network.couplings, columns[:, : result.shape[1]], out=result)

    return multiply


@agreement(within=0.0)
def states_in_numbers(states: Tensor) -> dict[str, float]:
    """Integers that differ as soon as a unit does, but for rare luck."""
    states = states.double().cpu()
    by_unit = states.sum(0) @ torch.arange(1, UNITS + 1).double()
    by_state = states.sum(1) @ torch.arange(1, STATES + 1).double()
    return {"sum": float(states.sum()), "sum by unit": float(by_unit), "sum by state": float(by_state)}


def _to_rest(sweep: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
    """Sweep the states that still move, until none does or it is back where it was two sweeps ago."""
    current, before = states.clone(), states.clone()
    moving = torch.arange(len(states), device=states.device)
    while len(moving):
        old = current[moving]
        new = sweep(old)
        going = (new != old).any(1) & (new != before[moving]).any(1)
        before[moving], current[moving] = old, new
        moving = moving[going]
    return current


def _sign_of_field(field: Tensor) -> Tensor:
    return torch.where(field >= 0, 1.0, -1.0)
