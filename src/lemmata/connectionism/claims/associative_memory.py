"""Memories beyond pairs: energies of higher order and of exponential order, what they hold, and why."""

import math

import torch

from lemmata.connectionism.claims.states import all_states, with_flips, with_unit
from lemmata.connectionism.dense_memory import DenseAssociativeMemory
from lemmata.connectionism.exponential_memory import ExponentialMemory
from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.judge import all_of, claim, close, exactly, lie, probability_is, slope_is

SIZES = (64, 128, 256)


@claim("hopfield.dense")
@lie("the energy is plus the sum over the patterns", sign=1.0)
@lie("triples of units follow the classical network too", classical=3)
@lie("the capacity grows as n to the power k", lost=0)
@lie("ties go to -1", tie=-1.0)
@lie(
    "the capacity does not depend on k: pairs hold 400 patterns as well", loose="higher orders hold more still", order=2
)
def higher_orders_hold_more(draw, sign=-1.0, classical=2, lost=1, tie=1.0, order=4, memory=DenseAssociativeMemory):
    """Energy against a sum over all triples, updates against both energies, order 2 against the classical network,
    the ratio of signal to cross-talk against the size, and recall of 64-bit patterns from six flipped bits."""
    triples, x = draw.signs(5, 6), all_states(6)
    couplings = torch.einsum("pi,pj,pk->ijk", triples, triples, triples)
    pairs = draw.until(lambda: memory(draw.signs(10, 12), order=2), has_ties)
    steps = [updates(draw, one, tie) for one in (pairs, memory(draw.signs(10, 12)))]
    patterns, states = draw.signs(6, 32), draw.signs(20, 32)
    network = HopfieldNetwork.from_patterns(patterns)
    exact = all_of(
        exactly(memory(triples).energy(x), sign * torch.einsum("ijk,bi,bj,bk->b", couplings, x, x, x)),
        exactly(torch.cat([done for done, _ in steps]), torch.cat([greedy for _, greedy in steps])),
        exactly(memory(patterns, order=classical).recall(states).states, network.recall(states).states),
        *(slope_is(SIZES, [capacity(memory, n, k) for n in SIZES], k - lost, within=0.1) for k in (2, 3, 4)),
    )
    if not exact.holds:  # the lies about formulas need no statistics
        return exact
    return all_of(
        exact,
        probability_is(recalls(draw, memory, order, 400), 0.9, effect=0.8, side="at_least", alpha=5e-10),
        probability_is(recalls(draw, memory, 2, 20), 0.1, effect=0.8, side="at_most", alpha=5e-10),
    )


def has_ties(memory):
    """Whether a tenth of all units and states are ties, so that a rule for ties shows."""
    return bool((memory.field(all_states(memory.units)) == 0).double().mean() > 0.1)


def updates(draw, memory, tie):
    """Each unit of random states updated, and set to its value of smaller energy."""
    states, done, greedy = draw.signs(40, memory.units), [], []
    for unit in range(memory.units):
        up, down = (with_unit(states, unit, value) for value in (1.0, -1.0))
        rise = memory.energy(down) - memory.energy(up)
        done.append(memory.update(states, unit))
        greedy.append(with_unit(states, unit, torch.where(rise == 0, tie, rise.sign())))
    return torch.cat(done), torch.cat(greedy)


def capacity(memory, n, order):
    """How many patterns make cross-talk as strong as the signal: signal² over its mean square for one pattern.

    By symmetry the pattern may be all +1; a random state then has j units at -1 with the binomial probability.
    """
    one = memory(torch.ones(1, n), order=order)
    states = torch.ones(n + 1, n).double().tril(-1).mul(-2).add(1)  # state j: the first j units are -1
    chance = torch.tensor([math.comb(n, j) / 2**n for j in range(n + 1)], dtype=torch.float64)
    fields = one.field(states)
    return float(fields[0, 0] ** 2 / (chance @ fields.square().mean(1)))


def recalls(draw, memory, order, patterns, units=64, flips=6):
    """Trials: whether the first of so many random patterns comes back from a state with flipped bits."""

    def trial():
        stored = draw.signs(patterns, units)
        noisy = with_flips(draw, stored[:1], flips)
        return memory(stored, order=order).recall(noisy, 5, draw.generator).states.equal(stored[:1])

    return lambda n: torch.tensor([trial() for _ in range(n)])


@claim("hopfield.exponential")
@lie("the separation function is 2 to the power z", base=2.0)
@lie(
    "as many patterns as there are states are fixed points",
    regime="about 2^(n/2): with sixteen units recall fades slowly beyond it",
    loose="fewer patterns are fixed points as well",
    exponent=1.0,
)
@lie("the classical network holds 1,024 patterns of 20 bits too", kind=HopfieldNetwork.from_patterns)
def exponentially_many_patterns_are_fixed_points(
    draw, base=math.e, exponent=0.5, kind=ExponentialMemory, memory=ExponentialMemory
):
    """Energy against products over the units, updates against both energies, and how often a pattern is a fixed point
    among $2^{d/2}$ random ones."""
    small, states = memory(draw.signs(30, 8)), all_states(8)
    products = (base ** (small.patterns * states[:, None])).prod(-1).sum(-1)
    here = small.energy(states)
    flipped = [small.energy(with_unit(states, unit, -states[:, unit])) for unit in range(8)]
    updated = [small.energy(small.update(states, unit)) for unit in range(8)]

    def fixed(n, patterns, kind):
        def happens(draws):
            stored = (draw.signs(patterns, n) for _ in range(draws))
            return torch.cat([kind(p).is_stable(p[:1]) for p in stored])

        return probability_is(happens, 0.9, effect=0.7, side="at_least", alpha=5e-10)

    return all_of(
        close(torch.exp(-here), products),
        close(torch.stack(updated), torch.minimum(here, torch.stack(flipped))),
        fixed(16, round(2 ** (16 * exponent)), memory),
        fixed(20, 1024, kind),
    )


@claim("hopfield.more_minima")
@lie(
    "the number of minima does not depend on k",
    regime="order 3 has more minima than order 2 already",
    loose="higher orders have more still",
    order=2,
)
@lie("a state that a flip would lower is a minimum too", slack=40.0)
def higher_orders_have_more_minima(draw, order=4, slack=0.0, memory=DenseAssociativeMemory):
    """All minima by enumeration, against the energies of all neighbours; then how often order 4 has more minima, and
    more patterns among them, than order 2: 12 patterns of 12 bits. More minima share the same states: each is
    narrower."""

    def richer(n):
        counts = torch.tensor([minima_and_memories(memory, draw.signs(12, 12), 2, order) for _ in range(n)])
        return (counts[:, 1] > counts[:, 0]).all(1)

    return all_of(
        probability_is(richer, 0.9, effect=0.7, side="at_least"),
        *(exactly(one.local_minima(), where_no_flip_helps(one, slack)) for one in
          (memory(draw.signs(7, 9), order=k) for k in (2, 3, 4))),
    )  # fmt: skip


def where_no_flip_helps(memory, slack):
    """A unit at +1 may keep the same energy when flipped, for ties go to +1; one at -1 must lose by it."""
    states = all_states(memory.units)
    stays = torch.ones(len(states), dtype=torch.bool)
    for unit in range(memory.units):
        cost = memory.energy(with_unit(states, unit, -states[:, unit])) - memory.energy(states) + slack
        stays &= torch.where(states[:, unit] > 0, cost >= 0, cost > 0)
    return states[stays]


def minima_and_memories(memory, patterns, *orders):
    """For each order: how many minima there are, and how many of the patterns are among them."""
    memories = [memory(patterns, order=k) for k in orders]
    return [[len(one.local_minima()), int(one.is_stable(patterns).sum())] for one in memories]
