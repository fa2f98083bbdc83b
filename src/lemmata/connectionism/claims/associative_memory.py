"""Memories beyond pairs: energies of higher order and of exponential order, what they hold, and why."""

import math

import torch

from lemmata.connectionism.claims.states import all_states, with_flips, with_unit
from lemmata.connectionism.dense_memory import DenseAssociativeMemory
from lemmata.connectionism.exponential_memory import ExponentialMemory
from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.judge import (
    Bars,
    Figure,
    Line,
    Points,
    all_of,
    always,
    at_most,
    claim,
    close,
    exactly,
    lie,
    probability_is,
    slope_is,
)


@claim("hopfield.dense")
@lie("the energy is plus the sum over the patterns", sign=1.0)
@lie("triples of units follow the classical network too", classical=3)
@lie("the capacity grows as n to the power k", growth=0)
@lie("ties go to -1", tie=-1.0)
@lie(
    "the capacity does not depend on k: pairs hold 400 patterns as well", loose="higher orders hold more still", order=2
)
@lie(
    "pairs fail at six patterns already",
    regime="from six patterns to twenty pairs fail more and more often",
    loose="with more patterns they fail as well",
    failing=6,
)
def higher_orders_hold_more(
    draw, sign=-1.0, classical=2, growth=-1, tie=1.0, order=4, failing=20, memory=DenseAssociativeMemory
):
    """Energy against a sum over all triples, updates against both energies, order 2 against the classical network,
    the ratio of signal to cross-talk against the size, and recall of 64-bit patterns from six flipped bits."""
    pairs = draw.until(lambda: memory(draw.signs(10, 12), order=2), _has_ties)
    exact = all_of(
        _energy_sums_over_triples(draw, memory, sign),
        *(_updates_are_greedy(draw, one, tie) for one in (pairs, memory(draw.signs(10, 12)))),
        _any_shape_will_do(draw, memory(draw.signs(10, 12))),
        _ties_end(draw, lambda patterns: memory(patterns, order=30), 100, exact=False),
        _follows_the_classical_network(draw, memory, classical),
        *(slope_is(SIZES, [_capacity(memory, n, k) for n in SIZES], k + growth, within=0.1) for k in (2, 3, 4)),
    )
    parts = [exact]
    for k, patterns, side, predicted in (
        (order, 400, "at_least", 0.9),
        (2, failing, "at_most", 0.1),
        (2, 6, "at_least", 0.9),
        (3, 64, "at_least", 0.9),
    ):
        if not parts[-1].holds:  # one part that fails is enough
            return all_of(*parts)
        recalled = _recalls(draw, memory, k, patterns)
        parts.append(probability_is(recalled, predicted, effect=0.8, side=side, alpha=2.5e-10))
    evidence = all_of(*parts)
    return evidence.showing(_recall_figure(draw, memory)) if evidence.holds else evidence


SIZES = (64, 128, 256)


def _energy_sums_over_triples(draw, memory, sign):
    """The default order is three, and so is the number of indices of its couplings."""
    patterns = draw.signs(5, 6)
    triples = torch.einsum("pi,pj,pk->ijk", patterns, patterns, patterns)
    x = all_states(6)
    return exactly(memory(patterns).energy(x), sign * torch.einsum("ijk,bi,bj,bk->b", triples, x, x, x))


def _has_ties(memory):
    """Whether a tenth of all units and states are ties, so that a rule for ties shows."""
    return bool((memory.field(all_states(memory.units)) == 0).double().mean() > 0.1)


def _updates_are_greedy(draw, memory, tie=1.0):
    """One update takes the lower of the two energies, whose difference is the field; recall repeats it to the end."""
    states, parts = draw.signs(40, memory.units), []
    field = memory.field(states)
    for unit in range(memory.units):
        up, down = (with_unit(states, unit, value) for value in (1.0, -1.0))
        rise = memory.energy(down) - memory.energy(up)
        greedy = torch.where(rise == 0, tie, rise.sign())
        parts += [
            exactly(memory.update(states, unit), with_unit(states, unit, greedy)),
            exactly(field[:, unit], rise),
        ]
    found, once = memory.recall(states, trace=True), memory.recall(states, max_sweeps=1)
    swept = states
    for unit in range(memory.units):
        swept = memory.update(swept, unit)
    return all_of(
        *parts,
        exactly(once.states, swept),
        exactly(once.converged, memory.is_stable(swept)),
        always(found.converged & ~found.cycled),
        always(found.energies.diff(dim=1) <= 0),
        exactly(found.energies[:, 0], memory.energy(states)),
        exactly(found.energies[:, -1], memory.energy(found.states)),
        exactly(memory(states), found.states),
        exactly(once.energies is None, True),
    )


def _any_shape_will_do(draw, memory):
    """States may come one by one, or in a batch of batches."""
    states = draw.signs(2, 3, memory.units)
    verbs = (memory.energy, memory.field, memory.is_stable, memory.overlaps, lambda x: memory.update(x, 1))
    return all_of(*(exactly(verb(states)[1, 2], verb(states[1, 2])) for verb in verbs))


def _ties_end(draw, build, units, exact=True):
    """Two patterns one flip apart weigh the same at that unit: it goes to +1, or where rounding rules it stays."""
    pairs = draw.signs(20, units).repeat(2, 1)
    where = draw.integers(0, units, 20)
    pairs[torch.arange(40), where.repeat(2)] = torch.tensor([1.0, -1.0]).double().repeat_interleave(20)
    memory = build(pairs)
    found = memory.recall(pairs, max_sweeps=3)
    if not exact:
        return always(found.converged)
    upper = pairs[:20]
    stable = exactly(memory.is_stable(upper), torch.ones(20, dtype=torch.bool))
    return all_of(always(found.converged), exactly(found.states, upper.repeat(2, 1)), stable)


def _follows_the_classical_network(draw, memory, order):
    """The same states after the same sweeps; the energies differ by a factor and a constant."""
    patterns, states, seed = draw.signs(6, 32), draw.signs(20, 32), int(draw.integers(0, 2**31, 1))
    pairs, network = memory(patterns, order=order), HopfieldNetwork.from_patterns(patterns)
    ours, theirs = (m.recall(states, generator=torch.Generator().manual_seed(seed)) for m in (pairs, network))
    energy = 2 * 32 * network.energy(ours.states) - 6 * 32  # the diagonal, 1 for each unit and pattern
    return all_of(
        exactly(ours.states, theirs.states),
        exactly(ours.sweeps, theirs.sweeps),
        exactly(ours.memory, theirs.memory),
        exactly(pairs.energy(ours.states), energy),
    )


def _capacity(memory, n, order):
    """How many patterns make cross-talk as strong as the signal: signal² over its mean square for one pattern.

    By symmetry the pattern may be all +1; a random state then has j units at -1 with the binomial probability.
    """
    one = memory(torch.ones(1, n), order=order)
    states = torch.ones(n + 1, n).double().tril(-1).mul(-2).add(1)  # state j: the first j units are -1
    share = torch.tensor([math.comb(n, j) / 2**n for j in range(n + 1)], dtype=torch.float64)
    fields = one.field(states)
    return float(fields[0, 0] ** 2 / (share @ fields.square().mean(1)))


def _recall_figure(draw, memory):
    loads = [4, 12, 40, 120, 400, 1000]
    kinds = {f"k = {k}": lambda p, k=k: memory(p, order=k) for k in (2, 3, 4)} | {"exponential": ExponentialMemory}
    marks = []
    for label, kind in kinds.items():
        rates = []
        for load in loads:
            patterns = draw.signs(load, 64)
            rates.append(kind(patterns).recall(with_flips(draw, patterns[:6], 6), 8).exact.double().mean())
        marks += [Line(loads, rates, label), Points(loads, rates, label)]
    note = "64 units, 6 of them flipped; up to 6 patterns of one random memory for each point."
    return Figure("What a memory holds", "stored patterns", "recalled exactly", marks, x_log=True, note=note)


@claim("hopfield.exponential")
@lie("the separation function is 2 to the power z", base=2.0)
@lie(
    "as many patterns as there are states are fixed points",
    regime="about 2^(n/2): with sixteen units recall fades slowly beyond it",
    loose="fewer patterns are fixed points as well",
    exponent=1.0,
)
@lie("the classical network holds 1,024 patterns of 20 bits too", kind=HopfieldNetwork.from_patterns)
@lie("each pattern is counted twice", copies=2.0)
def exponentially_many_patterns_are_fixed_points(
    draw, base=math.e, exponent=0.5, copies=1.0, memory=ExponentialMemory, kind=ExponentialMemory
):
    """Energy against products over the units, updates against both energies also where $e^n$ overflows, and how often
    a pattern is a fixed point among $2^{n/2}$ random ones."""
    states = all_states(8)
    small = memory(draw.signs(30, 8))
    products = (base ** (small.patterns * states[:, None])).prod(-1).sum(-1)
    exact = all_of(
        close(torch.exp(-small.energy(states)), copies * products),
        _updates_lower_the_energy(draw, small, states),
        _any_shape_will_do(draw, small),
        _ties_end(draw, memory, 80),
        _nothing_overflows(draw, memory, 800),
    )
    if not exact.holds:  # the lies about formulas need no statistics
        return exact

    def fixed(n, patterns, kind):
        def happens(draws):
            stored = (draw.signs(patterns, n) for _ in range(draws))
            return torch.cat([kind(p).is_stable(p[:1]) for p in stored])

        return probability_is(happens, 0.9, effect=0.7, side="at_least", alpha=5e-10)

    return all_of(exact, fixed(16, round(2 ** (16 * exponent)), memory), fixed(20, 1024, kind))


def _updates_lower_the_energy(draw, memory, states):
    """Each unit takes its value of smaller energy; the field is the gain in units of the state's own sum."""
    parts, here = [], memory.energy(states)
    for unit in range(memory.units):
        flipped = memory.energy(with_unit(states, unit, -states[:, unit]))
        gain = states[:, unit] * (1 - torch.exp(here - flipped))
        lower = torch.minimum(here, flipped)
        parts += [
            close(memory.energy(memory.update(states, unit)), lower),
            close(memory.field(states)[:, unit], gain, scale=math.e**2, ulps=256),
        ]
    return all_of(*parts)


def _nothing_overflows(draw, memory, n):
    """Patterns come back from a fifth of their bits flipped; the energy of one alone is minus the size."""
    patterns = draw.signs(100, n)
    stored = memory(patterns)
    found = stored.recall(with_flips(draw, patterns[:4], n // 5), trace=True)
    return all_of(
        exactly(found.states, patterns[:4]),
        exactly(stored.is_stable(patterns), torch.ones(100, dtype=torch.bool)),
        at_most(found.energies[:, 1:], found.energies[:, :-1]),
        close(memory(patterns[:1]).energy(patterns[:1]), -float(n)),
    )


@claim("hopfield.more_minima")
@lie(
    "the number of minima does not depend on k",
    regime="order 3 has more minima than order 2 already",
    loose="higher orders have more still",
    order=2,
)
@lie("a state that a flip would lower is a minimum too", slack=40.0)
@lie("triples hold as few patterns as pairs", loose="higher orders hold more still", triple=2)
def higher_orders_have_more_minima(draw, order=4, triple=3, slack=0.0, memory=DenseAssociativeMemory):
    """All minima by enumeration, against the energies of all neighbours; then how often order 4 has more minima, and
    more patterns among them, than order 2: 12 patterns of 12 bits. More minima share the same states: each is
    narrower."""
    enumerated = [_minima_are_where_no_flip_helps(draw, memory, k, slack) for k in (2, 3, 4)]

    def richer(n):
        counts = torch.tensor([_count(memory, draw.signs(12, 12), 2, triple, order) for _ in range(n)])
        pairs, triples, quads = counts.unbind(1)
        return (quads > pairs).all(1) & (triples[:, 1] > pairs[:, 1])

    evidence = all_of(*enumerated, probability_is(richer, 0.9, effect=0.7, side="at_least"))
    return evidence.showing(_minima_figure(draw, memory)) if evidence.holds else evidence


def _minima_are_where_no_flip_helps(draw, memory, order, slack):
    """A unit at +1 may keep the same energy when flipped, for ties go to +1; one at -1 must lose by it."""
    one, states = memory(draw.signs(7, 9), order=order), all_states(9)
    stays = torch.ones(len(states), dtype=torch.bool)
    for unit in range(9):
        cost = one.energy(with_unit(states, unit, -states[:, unit])) - one.energy(states) + slack
        stays &= torch.where(states[:, unit] > 0, cost >= 0, cost > 0)
    return exactly(one.local_minima(), states[stays])


def _count(memory, patterns, *orders):
    """For each order: how many minima there are, and how many of the patterns are among them."""
    memories = [memory(patterns, order=k) for k in orders]
    return [[len(one.local_minima()), int(one.is_stable(patterns).sum())] for one in memories]


def _minima_figure(draw, memory):
    counts = torch.tensor([_count(memory, draw.signs(12, 12), 2, 3, 4, 5) for _ in range(10)]).double().mean(0)
    names = [f"k = {k}" for k in (2, 3, 4, 5)]
    marks = [Bars(names, counts[:, 0], "local minima"), Bars(names, counts[:, 1], "patterns among them")]
    note = "12 random patterns of 12 units, mean of 10 draws. Even orders keep the mirror images too."
    return Figure("Higher orders have more minima", "order", "states", marks, note=note)


# --- Instances -------------------------------------------------------------------------------------------------


def _recalls(draw, memory, order, patterns, units=64, flips=6):
    """Trials: whether the first of so many random patterns comes back from a state with flipped bits."""

    def trial():
        stored = draw.signs(patterns, units)
        noisy = with_flips(draw, stored[:1], flips)
        return memory(stored, order=order).recall(noisy, 5, draw.generator).states.equal(stored[:1])

    return lambda n: torch.tensor([trial() for _ in range(n)])
