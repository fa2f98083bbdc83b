"""Dense associative memory: bad input, dtypes, batches, seeds, and the limits it states."""

import pytest
import torch

from lemmata.connectionism.dense_memory import DenseAssociativeMemory, SeparationMemory
from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.judge import Draw


def signs(*shape, seed=0):
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


@pytest.mark.parametrize(
    ("patterns", "error", "message"),
    [
        ([[1, -1]], TypeError, "patterns must be a tensor, got list"),
        (torch.empty(0, 4), ValueError, "patterns must not be empty, got shape \\(0, 4\\)"),
        (torch.ones(4), ValueError, "patterns must be a \\(patterns, units\\) tensor, got shape \\(4,\\)"),
        (torch.tensor([[1.0, torch.nan]]), ValueError, "patterns must be finite, found 1 NaN value"),
        (torch.tensor([[1.0, torch.inf]]), ValueError, "patterns must be finite, found 1 infinite value"),
        (
            torch.tensor([[0, 1]]),
            ValueError,
            "patterns must hold only -1 and \\+1, got values {0, 1}: use 2 ",
        ),
        (torch.tensor([[True, False]]), ValueError, "patterns must hold only -1 and \\+1, got booleans"),
    ],
)
def test_bad_patterns_are_refused(patterns, error, message, unchecked):
    with pytest.raises(error, match=message):
        DenseAssociativeMemory(patterns)


@pytest.mark.parametrize(
    ("order", "error", "message"),
    [
        (1, ValueError, "order must be >= 2, got 1"),
        (-3, ValueError, "order must be >= 2, got -3"),
        (2.5, TypeError, "order must be an integer, got float"),
        (1000, ValueError, "order must be <= \\d+, got 1000"),
    ],
)
def test_bad_orders_are_refused(order, error, message, unchecked):
    with pytest.raises(error, match=message):
        DenseAssociativeMemory(signs(3, 8), order=order)


@pytest.mark.parametrize("verb", ["energy", "field", "is_stable", "overlaps", "recall", "forward"])
def test_bad_states_are_refused_by_every_verb(verb, unchecked):
    verb = getattr(DenseAssociativeMemory(signs(3, 8)), verb)
    with pytest.raises(ValueError, match="states must have 8 units on its last axis, got shape \\(2, 7\\)"):
        verb(torch.ones(2, 7))
    with pytest.raises(ValueError, match=r"states must hold only -1 and \+1, got values {0.5}"):
        verb(torch.full((2, 8), 0.5))
    with pytest.raises(ValueError, match="states must not be empty"):
        verb(torch.ones(0, 8))
    with pytest.raises(ValueError, match="states must be finite, found 8 NaN values"):
        verb(torch.full((1, 8), torch.nan))
    with pytest.raises(TypeError, match="states must be a tensor"):
        verb([1, -1])


def test_other_bad_arguments_are_refused(unchecked):
    memory = DenseAssociativeMemory(signs(3, 8))
    with pytest.raises(ValueError, match="states must be a \\(batch, units\\) tensor, got shape \\(8,\\)"):
        memory.recall(torch.ones(8))
    with pytest.raises(ValueError, match="max_sweeps must be >= 1, got 0"):
        memory.recall(torch.ones(1, 8), max_sweeps=0)
    with pytest.raises(ValueError, match="unit must be <= 7, got 8"):
        memory.update(torch.ones(8), 8)
    with pytest.raises(ValueError, match="unit must be >= 0, got -1"):
        memory.update(torch.ones(8), -1)
    with pytest.raises(ValueError, match="tries all 2\\^units states: units must be <= 20, got 21"):
        DenseAssociativeMemory(signs(3, 21)).local_minima()


def test_the_base_gives_no_separation_function():
    with pytest.raises(TypeError, match="abstract"):
        SeparationMemory(signs(3, 8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int8])
def test_the_dtype_of_the_patterns_changes_no_number(dtype):
    patterns, states = signs(20, 40), signs(6, 40, seed=1)
    exact, memory = (DenseAssociativeMemory(patterns.to(d), order=4) for d in (torch.float64, dtype))
    kept = dtype if dtype.is_floating_point else torch.get_default_dtype()
    assert memory.energy(states.to(dtype)).equal(exact.energy(states))
    assert memory.field(states.to(dtype)).equal(exact.field(states))
    found = memory.recall(states.to(dtype))
    assert found.states.dtype is kept
    assert found.states.equal(exact.recall(states).states.to(kept))
    assert memory.update(states, 3).dtype is kept


def test_a_batch_is_its_members_and_one_state_needs_no_batch():
    memory, states = DenseAssociativeMemory(signs(30, 24)), signs(2, 3, 24, seed=2)
    assert memory.energy(states).shape == (2, 3)
    assert memory.field(states[0, 0]).equal(memory.field(states)[0, 0])
    assert memory.update(states, 5)[1, 2].equal(memory.update(states[1, 2], 5))
    together = memory.recall(states[0])
    alone = [memory.recall(state[None]) for state in states[0]]
    assert together.states.equal(torch.cat([one.states for one in alone]))
    assert together.sweeps.equal(torch.cat([one.sweeps for one in alone]))
    assert memory(states[0]).equal(together.states)


def test_a_seed_fixes_the_order_and_the_input_is_left_alone():
    memory, states = DenseAssociativeMemory(signs(60, 24)), signs(40, 24, seed=3)
    before = states.clone()
    first, again, other = (memory.recall(states, generator=torch.Generator().manual_seed(s)).states for s in (1, 1, 2))
    assert first.equal(again)
    assert not first.equal(other)
    assert states.equal(before)


def test_recall_reports_what_it_did():
    memory = DenseAssociativeMemory(signs(3, 40))
    found = memory.recall(torch.cat([memory.patterns, -memory.patterns]), trace=True)
    assert found.exact[:3].all()
    assert found.sweeps[:3].tolist() == [0, 0, 0]
    assert found.converged.all()
    assert not found.mirror.any()  # three is odd: mirror images are no memories
    assert found.energies.shape == (6, 1 + int(found.sweeps.max()))
    assert memory.recall(memory.patterns).energies is None
    assert not DenseAssociativeMemory(signs(40, 40), order=2).recall(signs(9, 40), max_sweeps=1).converged.all()


def test_even_orders_remember_mirror_images():
    memory = DenseAssociativeMemory(signs(3, 40), order=4)
    assert memory.is_stable(-memory.patterns).all()


def test_one_unit_and_one_pattern_are_enough():
    minima = DenseAssociativeMemory(torch.tensor([[-1.0]])).local_minima()
    assert minima.tolist() == [[-1.0]]


def test_minima_are_found_beyond_one_block_of_states():
    memory = DenseAssociativeMemory(signs(2, 15), order=3)
    minima = memory.local_minima()
    assert memory.is_stable(minima).all()
    assert all((minima == pattern).all(1).any() for pattern in memory.patterns)


def test_state_dict_and_repr():
    memory, other = DenseAssociativeMemory(signs(5, 12)), DenseAssociativeMemory(signs(5, 12, seed=9))
    other.load_state_dict(memory.state_dict())
    assert other.patterns.equal(memory.patterns)
    assert repr(memory) == "DenseAssociativeMemory(patterns=5, units=12, order=3)"


def test_the_memory_keeps_its_own_copy_of_the_patterns():
    patterns = torch.ones(1, 4)
    memory = DenseAssociativeMemory(patterns)
    patterns.neg_()
    assert memory.patterns.equal(torch.ones(1, 4))


@pytest.mark.parametrize("order", [2, 3])
def test_recall_repeats_the_updates_and_lowers_the_energy(order):
    draw = Draw("repeats")
    memory, states = DenseAssociativeMemory(draw.signs(10, 12), order=order), draw.signs(40, 12)
    swept = states
    for unit in range(12):
        up, down = states.clone(), states.clone()
        up[:, unit], down[:, unit] = 1.0, -1.0
        assert memory.field(states)[:, unit].equal(memory.energy(down) - memory.energy(up))
        swept = memory.update(swept, unit)
    found, once = memory.recall(states, trace=True), memory.recall(states, max_sweeps=1)
    assert once.states.equal(swept)
    assert once.converged.equal(memory.is_stable(swept))
    assert once.energies is None
    assert (found.converged & ~found.cycled).all()
    assert (found.energies.diff(dim=1) <= 0).all()
    assert found.energies[:, 0].equal(memory.energy(states))
    assert found.energies[:, -1].equal(memory.energy(found.states))
    assert memory(states).equal(found.states)


def test_pairs_take_the_sweeps_and_the_energy_of_the_classical_network():
    draw = Draw("pairs")
    patterns, states = draw.signs(6, 32), draw.signs(20, 32)
    pairs, network = DenseAssociativeMemory(patterns, order=2), HopfieldNetwork.from_patterns(patterns)
    ours, theirs = (m.recall(states, generator=torch.Generator().manual_seed(5)) for m in (pairs, network))
    assert ours.states.equal(theirs.states)
    assert ours.sweeps.equal(theirs.sweeps)
    assert ours.memory.equal(theirs.memory)
    # The diagonal, which the classical network leaves out, is 1 for each unit and pattern.
    assert pairs.energy(ours.states).equal(2 * 32 * network.energy(ours.states) - 6 * 32)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 10])
def test_energies_and_fields_are_exact_whole_numbers_below_their_bound(order):
    draw, units = Draw("whole"), 20
    count = 3
    assert count * (units + 2) ** order <= 2**53
    patterns, states = draw.signs(count, units), draw.signs(5, units)
    memory = DenseAssociativeMemory(patterns, order=order)
    overlaps = [[int(value) for value in row] for row in (states @ patterns.T).tolist()]
    assert memory.energy(states).tolist() == [-sum(value**order for value in row) for row in overlaps]
    for unit in range(units):
        own = [[int(v) for v in row] for row in (states[:, unit, None] * patterns[:, unit]).tolist()]
        rest = [[m - o for m, o in zip(*pair, strict=True)] for pair in zip(overlaps, own, strict=True)]
        column = [int(value) for value in patterns[:, unit].tolist()]
        gains = [sum((r + c) ** order - (r - c) ** order for r, c in zip(row, column, strict=True)) for row in rest]
        assert memory.field(states)[:, unit].tolist() == gains


def test_patterns_one_flip_apart_come_to_rest_where_rounding_rules():
    draw = Draw("ties")
    pairs, where = draw.signs(20, 100).repeat(2, 1), draw.integers(0, 100, 20)
    pairs[torch.arange(40), where.repeat(2)] = torch.tensor([1.0, -1.0]).double().repeat_interleave(20)
    assert DenseAssociativeMemory(pairs, order=30).recall(pairs, max_sweeps=3).converged.all()


@pytest.mark.parametrize(("order", "patterns"), [(2, 6), (3, 64)])
def test_lower_orders_recall_fewer_patterns(order, patterns):
    draw, recalled = Draw("fewer"), 0
    for _ in range(40):
        stored = draw.signs(patterns, 64)
        noisy = torch.where(draw.uniform(1, 64).argsort(1) < 6, -stored[:1], stored[:1])
        recalled += DenseAssociativeMemory(stored, order=order).recall(noisy, 5).exact.item()
    assert recalled >= 32
