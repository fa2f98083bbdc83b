"""The Hopfield network: its energy, its updates, Hebb's rule, and recall of what was stored."""

import torch

from lemmata.connectionism.claims.states import all_states, with_flips, with_unit
from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.judge import Figure, Line, Points, all_of, always, claim, exactly, lie, probability_is


class Lopsided(HopfieldNetwork):
    """Unit i hears unit j with the opposite sign: what the theory of descent forbids."""

    def __init__(self, units, weight=None, bias=None, **options):
        super().__init__(units, weight, bias, **options)
        self.couplings = self.couplings.triu() - self.couplings.tril()


def symmetric(draw, units):
    """Small whole couplings, so that ties are common and sums exact."""
    upper = draw.integers(-2, 3, units, units).double().triu(1)
    return upper + upper.T


@claim("hopfield.energy")
@lie("the quadratic term has a plus sign", printed="000/1", quadratic=0.5)
@lie("only some of the biases count", biases=3)
@lie("each pair counts twice", quadratic=-1.0)
@lie("the biases have a minus sign", linear=-1.0)
def energy_is_a_sum_over_pairs_that_updates_lower(draw, quadratic=-0.5, linear=1.0, biases=8, network=HopfieldNetwork):
    """A sum over pairs and units, against the network's energy on all states; no update may raise it."""
    memory = network(8, bias=draw.signs(8), dtype=torch.float64).store(draw.signs(3, 8))
    weight, bias, states = memory.weight.tolist(), memory.bias.tolist(), all_states(8)

    def summed(x):
        pairs = torch.stack([weight[i][j] * x[:, i] * x[:, j] for i in range(8) for j in range(8)])
        single = torch.stack([bias[i] * x[:, i] for i in range(biases)])
        return quadratic * pairs.sum(0) + linear * single.sum(0)

    before = summed(states)
    after = torch.stack([summed(memory.update(states, unit)) for unit in range(8)])
    return all_of(exactly(memory.energy(states), before), always(after <= before)).showing(moves(before, after))


def moves(before, after):
    """Every update as a point: above the line it has raised the energy."""
    pairs = torch.stack([before.expand_as(after).flatten(), after.flatten()], dim=1).unique(dim=0)
    ends = [float(pairs.min()), float(pairs.max())]
    marks = [Points(pairs[:, 0], pairs[:, 1], "one update of one unit"), Line(ends, ends, "no change")]
    return Figure("What an update does to the energy", "energy before", "energy after", marks)


@claim("hopfield.update_equivalence")
@lie("the bias is added to the field", sign=1.0)
@lie("ties go to -1", tie=-1.0)
@lie("the two energies differ by the field once", gap=1.0)
@lie("a unit also hears itself", diagonal=1.0)
def greedy_update_is_the_sign_of_the_field(draw, sign=-1.0, tie=1.0, gap=2.0, diagonal=0.0, network=HopfieldNetwork):
    """The value of smaller energy, against the update, for all states and units of random networks with ties."""
    states = all_states(7)
    fields, rises, updated, greedy, heard = [], [], [], [], []
    for _ in range(5):
        bias = draw.integers(-2, 3, 7).double()
        memory = network(7, symmetric(draw, 7), bias)
        heard.append(memory.field(states))
        fields.append(states @ (memory.weight + diagonal * torch.eye(7, dtype=torch.float64)) + sign * bias)
        for unit in range(7):
            up, down = (with_unit(states, unit, value) for value in (1.0, -1.0))
            rise = memory.energy(down) - memory.energy(up)
            rises.append(rise)
            greedy.append(with_unit(states, unit, torch.where(rise == 0, tie, rise.sign())))
            updated.append(memory.update(states, unit))
    fields = torch.stack(fields)  # (networks, states, units)
    return all_of(
        exactly(torch.stack(rises), gap * fields.mT.flatten(0, 1)),
        exactly(torch.stack(updated), torch.stack(greedy)),
        exactly(torch.stack(heard), fields),
    )


@claim("hopfield.energy_descent")
@lie("synchronous updates descend too", dynamics="synchronous")
@lie("synchronous updates always settle", cycle=False)
@lie("the energy changes by half the step times the field", rate=-0.5)
@lie("couplings need not be symmetric", network=Lopsided)
def asynchronous_updates_descend_and_stop(
    draw, dynamics="asynchronous", cycle=True, rate=-1.0, network=HopfieldNetwork
):
    """Each update's change of energy, energies along recall, and where it ends against all single flips, for 12 random
    networks; two rivals in lockstep."""
    changes, steps, falls, kept, minima = [], [], [], [], []
    for size in range(26, 38):
        memory = network(size, symmetric(draw, size), draw.integers(-2, 3, size).double(), dtype=torch.float64)
        states, unit = draw.signs(16, size), int(draw.integers(0, size, 1))
        after = memory.update(states, unit)
        steps.append((after - states)[:, unit] * memory.field(states)[:, unit])
        changes.append(memory.energy(after) - memory.energy(states))
        found = memory.recall(states, dynamics, max_sweeps=20, generator=draw.generator, trace=True)
        assert found.energies is not None
        falls.append(found.energies.diff(dim=1).amax(1))
        kept += [memory.update(found.states, one).eq(found.states).all() for one in range(size)]
        flipped = found.states[:, None] * (1 - 2 * torch.eye(size).double())  # (state, unit flipped, unit)
        minima.append((memory.energy(flipped) - memory.energy(found.states)[:, None]).amin(1))
    rivals = network(2, torch.tensor([[0.0, -1.0], [-1.0, 0.0]]))
    return all_of(
        exactly(torch.cat(changes), rate * torch.cat(steps)),
        always(torch.cat(steps) >= 0),
        always(torch.cat(falls) <= 0),
        always(torch.stack(kept)),
        always(torch.cat(minima) >= 0),
        exactly(bool(rivals.recall(torch.ones(1, 2), dynamics="synchronous").cycled), cycle),
    )


def stored(patterns):
    """The number of patterns, s."""
    return len(patterns)


def once(patterns):
    """The number 1, however many patterns there are."""
    return 1


def units(patterns):
    """The number of units, n."""
    return patterns.shape[1]


@claim("hopfield.hebb")
@lie("the identity is subtracted once", printed="000/1", subtracted=once)
@lie("divided by the number of patterns", divisor=stored)
def couplings_count_agreements(draw, subtracted=stored, divisor=units, network=HopfieldNetwork):
    """Agreements minus disagreements of each pair of units, counted, against the couplings; none with itself."""
    patterns = draw.signs(3, 10)
    agreements = (patterns[:, :, None] == patterns[:, None, :]).sum(0)  # (units, units)
    counted = agreements - (3 - agreements) - subtracted(patterns) * torch.eye(10)
    weight = network.from_patterns(patterns).weight
    majority, pairs = 2 * agreements > 3, ~torch.eye(10, dtype=torch.bool)
    return all_of(
        exactly(weight, counted.double() / divisor(patterns)),
        exactly(weight.diagonal(), torch.zeros(10, dtype=torch.float64)),
        exactly((weight > 0)[pairs], majority[pairs]),
    )


@claim("hopfield.metastable")
@lie("the mirror image is never stable", mirror=False)
@lie(
    "the mirror image is stable under biases too",
    regime="a bias below the signal 1 - 1/n turns no unit",
    loose="a bias below the signal 1 - 1/n turns no unit",
    bias=-2.0,
)
@lie("nine units in ten are enough", aligned=9)
def memorised_means_that_no_update_changes_it(draw, mirror=True, bias=0.0, aligned=10, network=HopfieldNetwork):
    """One stored pattern, its mirror image and random states; then all states of a network, update by update, and their
    mirror images."""
    pattern = draw.signs(50)
    single = network(50, bias=bias * pattern, dtype=torch.float64).store(pattern[None])
    memory, states = network.from_patterns(draw.signs(3, 10)), all_states(10)
    kept = torch.stack([memory.update(states, unit)[:, unit] == states[:, unit] for unit in range(10)], 1)
    return all_of(
        exactly(memory.is_stable(states), kept.sum(1) >= aligned),
        exactly(bool(single.is_stable(pattern)), True),
        exactly(bool(single.is_stable(-pattern)), mirror),
        # Three patterns make odd couplings, nine of which are heard: no field is a tie.
        exactly(memory.is_stable(-states), memory.is_stable(states)),
        always(~single.is_stable(draw.signs(1000, 50))),  # by chance one is, with probability 1000 / 2**49
    )


@claim("hopfield.network")
@lie(
    "eighty patterns are recalled as well as ten",
    regime="recall breaks down only as the load comes near 0.138",
    loose="fewer patterns are recalled as well",
    patterns=80,
)
@lie(
    "recalled from states with half of the bits flipped",
    regime="at this small load the memories attract from far away",
    loose="states nearer to the memory are recalled as well",
    flipped=0.5,
)
def noisy_memories_are_recalled(draw, patterns=10, flipped=0.1, network=HopfieldNetwork):
    """Random patterns of 200 bits: how often one of them comes back from noise, and that recall ends where no update
    changes anything."""

    def recalled(n):
        return torch.stack([comes_back(draw, network, patterns, flipped) for _ in range(n)])

    memory = network.from_patterns(draw.signs(10, 200))
    rest = memory.recall(draw.signs(20, 200)).states
    return all_of(
        probability_is(recalled, 0.95, effect=0.8, side="at_least"),
        always(torch.stack([memory.update(rest, unit).eq(rest).all() for unit in range(200)])),
    )


def comes_back(draw, network, patterns, flipped):
    """Whether the first of so many patterns is recalled, bit for bit, from a state with flipped bits."""
    kept = draw.signs(patterns, 200)
    found = network.from_patterns(kept).recall(with_flips(draw, kept[:1], round(200 * flipped)), max_sweeps=5)
    return (found.states == kept[0]).all()
