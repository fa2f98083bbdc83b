"""The Hopfield network: its energy, its updates, Hebb's rule, and recall of what was stored."""

import torch

from lemmata.connectionism.claims.states import all_states, with_flips, with_unit
from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.data import digits
from lemmata.judge import Figure, Image, Line, Points, all_of, always, claim, close, exactly, lie, probability_is


class Lopsided(HopfieldNetwork):
    """Unit i hears unit j, but not the other way round: what the theory of descent forbids."""

    def __init__(self, units, weight=None, bias=None, **options):
        super().__init__(units, weight, bias, **options)
        self.couplings = self.couplings.triu() - self.couplings.tril()


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

    after = torch.stack([summed(memory.update(states, unit)) for unit in range(8)])
    return all_of(
        exactly(memory.energy(states), summed(states)),
        exactly(memory.energy(states[7]), memory.energy(states)[7]),
        always(after <= summed(states)),
    ).showing(moves(summed(states).expand(8, -1), after))


def moves(before, after):
    """Every update as a point: above the line it has raised the energy."""
    pairs = torch.stack([before.flatten(), after.flatten()], dim=1).unique(dim=0)
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
    states, parts = all_states(7), []
    for _ in range(5):
        bias = draw.integers(-2, 3, 7).double()
        memory = network(7, symmetric(draw, 7), bias)
        field = states @ (memory.weight + diagonal * torch.eye(7, dtype=torch.float64)) + sign * bias
        parts.append(exactly(memory.field(states), field))
        for unit in range(7):
            up, down = (with_unit(states, unit, value) for value in (1.0, -1.0))
            rise = memory.energy(down) - memory.energy(up)
            greedy = torch.where(rise == 0, torch.full_like(rise, tie), rise.sign())
            parts += [
                exactly(rise, gap * field[:, unit]),
                exactly(memory.update(states, unit), with_unit(states, unit, greedy)),
            ]
    return all_of(*parts)


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
    parts = []
    for size in range(26, 38):
        memory = network(size, symmetric(draw, size), draw.integers(-2, 3, size).double(), dtype=torch.float64)
        states, unit = draw.signs(16, size), int(draw.integers(0, size, 1))
        after = memory.update(states, unit)
        step = (after - states)[:, unit] * memory.field(states)[:, unit]
        found = memory.recall(states, dynamics, max_sweeps=20, generator=draw.generator, trace=True)
        assert found.energies is not None
        rest = found.states
        updated = torch.stack([memory.update(rest, one) for one in range(size)], 1)
        flipped = rest[:, None] * (1 - 2 * torch.eye(size).double())  # (state, unit flipped, unit)
        parts += [
            exactly(memory.energy(after) - memory.energy(states), rate * step),
            always(step >= 0),
            always(found.energies.diff(dim=1) <= 0),
            exactly(updated, rest[:, None].expand_as(updated)),
            always(memory.energy(flipped) >= memory.energy(rest)[:, None]),
        ]
    rivals = network(2, torch.tensor([[0.0, -1.0], [-1.0, 0.0]]))
    lockstep = rivals.recall(torch.ones(1, 2), dynamics="synchronous")
    outcome = (bool(lockstep.cycled), bool(lockstep.converged), int(lockstep.sweeps), int(lockstep.memory))
    in_turn = rivals.recall(torch.ones(1, 2)).states
    parts += [exactly(outcome, (cycle, not cycle, 2, -1)), exactly(in_turn, torch.tensor([[-1.0, 1.0]]))]
    return all_of(*parts)


@claim("hopfield.hebb")
@lie("the identity is subtracted once", printed="000/1", subtracted=1)
@lie("the diagonal is kept, and yet no unit hears itself", subtracted=0)
@lie("divided by the number of patterns", divisor=3)
def couplings_count_agreements(draw, subtracted=3, divisor=10, network=HopfieldNetwork):
    """Agreements minus disagreements of each pair of units, counted, against the couplings; none with itself."""
    patterns = draw.signs(3, 10)
    agreements = (patterns[:, :, None] == patterns[:, None, :]).sum(0)
    counted = agreements - (3 - agreements) - subtracted * torch.eye(10)
    weight = network.from_patterns(patterns).weight
    majority, pairs = 2 * agreements > 3, ~torch.eye(10, dtype=torch.bool)
    return all_of(
        exactly(weight, counted.double() / divisor),
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
    """One stored pattern, its mirror image and random states; then all states of a network, update by update."""
    pattern = draw.signs(50)
    single = network(50, bias=bias * pattern, dtype=torch.float64).store(pattern[None])
    memory, states = network.from_patterns(draw.signs(3, 10)), all_states(10)
    kept = torch.stack([memory.update(states, unit)[:, unit] == states[:, unit] for unit in range(10)], 1)
    return all_of(
        exactly(bool(single.is_stable(pattern)), True),
        exactly(bool(single.is_stable(-pattern)), mirror),
        always(~single.is_stable(draw.signs(1000, 50))),  # by chance one is, with probability 1000 / 2**49
        exactly(memory.is_stable(states), kept.sum(1) >= aligned),
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
@lie("Hebb's rule recalls handwritten digits as well", rule="hebb")
@lie("a mirror image counts as the memory", mirrored="exact")
def noisy_memories_are_recalled(
    draw, patterns=10, flipped=0.1, rule="pseudo-inverse", mirrored="mirror", network=HopfieldNetwork
):
    """Exact recall of random patterns (200 units) and of ten digits (64); sweeps and report against plain loops."""

    def recalled(n):
        return torch.stack([_recalls_one(draw, network, patterns, flipped) for _ in range(n)])

    pictures = ten_digits()
    album = network.from_patterns(pictures, rule)

    def developed(n):
        which = draw.integers(0, 10, n)
        found = album.recall(with_flips(draw, pictures[which], 6))
        return found.exact & (found.memory == which)

    stored = draw.signs(10, 200)
    mirror = network.from_patterns(stored).recall(-stored)
    evidence = all_of(
        probability_is(recalled, 0.95, effect=0.8, side="at_least", alpha=5e-10),
        probability_is(developed, 0.9, effect=0.8, side="at_least", alpha=5e-10),
        always(getattr(mirror, mirrored) & (mirror.memory == torch.arange(10)) & mirror.converged & ~mirror.spurious),
        *_pseudo_inverse_projects(network, pictures),
        *_recall_does_what_plain_loops_do(draw, network),
    )
    return evidence.showing(album_figure(draw, pictures, network)) if evidence.holds else evidence


def _recalls_one(draw, network, patterns, flipped):
    stored = draw.signs(patterns, 200)
    found = network.from_patterns(stored).recall(with_flips(draw, stored[:1], round(200 * flipped)), max_sweeps=5)
    return (found.states == stored[0]).all()


def _pseudo_inverse_projects(network, pictures):
    """The projection on the span of the patterns, from an orthonormal basis of it, without its diagonal."""
    weight, basis = network.from_patterns(pictures, "pseudo-inverse").weight, torch.linalg.qr(pictures.T).Q
    projection = (basis @ basis.T).fill_diagonal_(0)
    condition = float(torch.linalg.cond(pictures))
    return close(weight, projection, condition=condition), exactly(weight, weight.T.contiguous())


def _recall_does_what_plain_loops_do(draw, network):
    """Too many memories and some biases: unit by unit, and pattern by pattern, recall must say the same."""
    stored, bias = draw.signs(32, 80), draw.integers(-2, 3, 80) / 4
    memory = network(80, bias=bias, dtype=torch.float64).store(stored)
    states = draw.signs(100, 80)
    sweeps, after = torch.zeros(100, dtype=torch.long), states
    for _ in range(2):
        before = after
        for unit in range(80):
            after = memory.update(after, unit)
        sweeps += (after != before).any(1)
    found = memory.recall(states, max_sweeps=2)
    overlaps = torch.stack([(after * pattern).mean(1) for pattern in stored], 1)
    known = torch.stack([(after == sign * pattern).all(1) for pattern in stored for sign in (1, -1)]).any(0)
    return (
        exactly(found.states, after),
        exactly(found.sweeps, sweeps),
        exactly(found.converged, memory.is_stable(after)),
        exactly(found.overlap.abs(), overlaps.abs().amax(1)),
        exactly(found.overlap, overlaps.gather(1, found.memory[:, None])[:, 0]),
        exactly(found.spurious, memory.is_stable(after) & ~known),
        always([bool(found.spurious.any()), bool((~found.converged).any()), found.energies is None]),
    )


# --- What the claims draw and show ---


def symmetric(draw, units):
    """Small whole couplings, so that ties are common and sums exact."""
    upper = draw.integers(-2, 3, units, units).double().triu(1)
    return upper + upper.T


def ten_digits():
    """The first handwritten picture of each digit in black and white, as signs."""
    images, labels = digits().everything
    return torch.stack([(images[labels == digit][0] > 0.5).flatten().double() * 2 - 1 for digit in range(10)])


def album_figure(draw, pictures, network):
    noisy = with_flips(draw, pictures, 6)
    restored = {rule: network.from_patterns(pictures, rule).recall(noisy) for rule in ("pseudo-inverse", "hebb")}
    rows = {"stored": pictures, "6 of 64 pixels flipped": noisy}
    rows |= {f"recalled, {rule}": found.states for rule, found in restored.items()}
    note = "Digits look alike: their cross-talk drowns Hebb's rule, while the pseudo-inverse rule cancels it."
    return Figure("Ten handwritten digits", marks=[Image(sheet(row), label) for label, row in rows.items()], note=note)


def sheet(states):
    """Ten pictures of 8 by 8 in two rows, a grey line between them."""
    framed = torch.nn.functional.pad((states.view(10, 8, 8) + 1) / 2, (0, 1, 0, 1), value=0.5)
    return framed.view(2, 5, 9, 9).permute(0, 2, 1, 3).reshape(18, 45)[:-1, :-1]
