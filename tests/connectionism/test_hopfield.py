"""The Hopfield network beyond its claims: bad input, dtypes, state_dict, batches of one, order, report."""

import pytest
import torch

from lemmata.connectionism.hopfield import HopfieldNetwork, Recall, whole_number_dtype
from lemmata.data import digits
from lemmata.judge import Draw


def signs(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, shape, generator=generator).double() * 2 - 1


@pytest.fixture
def memory():
    return HopfieldNetwork.from_patterns(signs(4, 70))


# --- Bad input ---


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.zeros(3, 2), r"weight must have shape \(3, 3\), got \(3, 2\)"),
        (torch.zeros(3), r"weight must be a \(units, units\) tensor, got shape \(3,\)"),
        (torch.eye(3) * 0.5, r"weight must be zero on its diagonal, got up to 0\.5: use weight\.fill_diagonal_\(0\)"),
        (torch.ones(3, 3).triu(1), r"weight must be symmetric, got differences up to 1: use \(weight \+ weight\.T\)"),
        (torch.full((3, 3), torch.nan), r"weight must be finite, found 9 NaN values"),
    ],
)
def test_a_weight_that_is_no_coupling_matrix_is_refused(unchecked, weight, message):
    with pytest.raises(ValueError, match=message):
        HopfieldNetwork(3, weight)


def test_units_and_bias_are_checked(unchecked):
    with pytest.raises(ValueError, match="units must be >= 1, got 0"):
        HopfieldNetwork(0)
    with pytest.raises(TypeError, match="units must be an integer, got float"):
        HopfieldNetwork(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bias must have 3 entries, got 2"):
        HopfieldNetwork(3, bias=torch.zeros(2))
    with pytest.raises(ValueError, match="bias must be finite, found 1 infinite value"):
        HopfieldNetwork(2, bias=torch.tensor([0.0, torch.inf]))


@pytest.mark.parametrize("method", ["energy", "field", "is_stable", "crosstalk", "recall"])
@pytest.mark.parametrize(
    ("states", "message"),
    [
        (torch.zeros(2, 70), r"must hold only -1 and \+1, got values \{0\}"),
        (torch.ones(2, 3), r"must have 70 units on its last axis, got shape \(2, 3\)"),
        (torch.ones(0, 70), r"must not be empty, got shape \(0, 70\)"),
        (torch.full((1, 70), torch.nan), "must be finite, found 70 NaN values"),
        (torch.tensor(1.0), r"got shape \(\)"),
    ],
)
def test_states_that_are_not_signs_are_refused(unchecked, memory, method, states, message):
    with pytest.raises(ValueError, match=message):
        getattr(memory, method)(states)


def test_the_arguments_of_recall_store_and_update_are_checked(unchecked, memory):
    states = signs(2, 70)
    with pytest.raises(ValueError, match="dynamics must be one of asynchronous, synchronous, got 'async'"):
        memory.recall(states, dynamics="async")
    with pytest.raises(ValueError, match="max_sweeps must be >= 1, got 0"):
        memory.recall(states, max_sweeps=0)
    with pytest.raises(ValueError, match=r"states must be a \(batch, units\) tensor of -1 and \+1, got shape \(70,\)"):
        memory.recall(states[0])
    with pytest.raises(ValueError, match="rule must be one of hebb, pseudo-inverse, got 'oja'"):
        memory.store(states, rule="oja")
    with pytest.raises(ValueError, match=r"patterns must be a \(batch, units\) tensor of -1 and \+1"):
        memory.store(states[0])
    with pytest.raises(ValueError, match=r"got values \{0, 1\}: use 2 \* patterns - 1"):
        HopfieldNetwork.from_patterns((states + 1) / 2)
    with pytest.raises(ValueError, match="unit must be <= 69, got 70"):
        memory.update(states, 70)
    with pytest.raises(ValueError, match="unit must be >= 0, got -1"):
        memory.update(states, -1)
    with pytest.raises(TypeError, match="states must be a tensor, got list"):
        memory.energy([1, -1])  # type: ignore[arg-type]


# --- Dtypes, shapes, state ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("states", [torch.int64, torch.float32, torch.float64, torch.bfloat16])
def test_states_of_any_dtype_are_recalled_in_the_dtype_of_the_network(dtype, states):
    patterns = signs(3, 40)
    memory = HopfieldNetwork.from_patterns(patterns.to(dtype))
    found = memory.recall(patterns.to(states))
    assert found.states.dtype == found.overlap.dtype == memory.energy(patterns.to(states)).dtype == dtype
    assert torch.equal(found.states.double(), patterns)


@pytest.mark.parametrize(
    ("dtype", "most", "wide"),
    [
        (torch.bfloat16, 2**8, torch.float32),
        (torch.float16, 2**24, torch.float32),
        (torch.float16, 2**24 + 1, torch.float64),
        (torch.float32, 2**24, torch.float32),
        (torch.float32, 2**24 + 1, torch.float64),
        (torch.float64, 2**24 + 1, torch.float64),
    ],
)
def test_sums_are_taken_where_whole_numbers_are_exact(dtype, most, wide):
    assert whole_number_dtype(dtype, most) is wide
    counted = torch.tensor([most, most - 1]).to(wide)
    assert counted.tolist() == [most, most - 1]


def test_beyond_the_whole_numbers_of_float32_fields_are_exact_all_the_same():
    network = HopfieldNetwork(4)
    heavy = 2.0**25  # 2^25 - 1 is no float32: in float32 the field of the first unit comes out as 0 and not -1
    network.couplings[0] = network.couplings[:, 0] = torch.tensor([0.0, heavy, 1.0, heavy])
    network.patterns = torch.ones(1, 4).expand(2**25, 4)  # as many as such couplings take
    state = torch.tensor([[1.0, 1.0, -1.0, -1.0]])
    assert network.field(state)[0, 0] == -1
    assert network.update(state, 0)[0, 0] == -1
    assert not network.is_stable(state).any()
    assert network._sweep_units(state, None)[0, 0] == -1
    assert (
        network.field(state).dtype
        is network.update(state, 0).dtype
        is network._sweep_units(state, None).dtype
        is state.dtype
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_short_types_recall_bit_for_bit_what_double_recalls(dtype):
    patterns, states = signs(100, 200), signs(30, 200, seed=8)
    short, double = (HopfieldNetwork.from_patterns(patterns.to(kind)) for kind in (dtype, torch.float64))
    for dynamics in ("asynchronous", "synchronous"):
        ours, theirs = short.recall(states, dynamics), double.recall(states, dynamics)
        assert ours.states.double().equal(theirs.states)
        assert ours.exact.equal(theirs.exact)
        assert ours.spurious.equal(theirs.spurious)
        assert ours.sweeps.equal(theirs.sweeps)


def test_one_flip_of_many_units_is_seen():
    units = 2**16
    patterns = signs(2, units)
    flipped = patterns.clone()
    flipped[0, 77] *= -1
    told = {"converged": torch.ones(2).bool(), "cycled": torch.zeros(2).bool(), "sweeps": torch.zeros(2).long()}
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        found = Recall.against(patterns.to(dtype), flipped.to(dtype), **told)
        assert found.exact.tolist() == [False, True]
        assert found.spurious.tolist() == [True, False]
        assert Recall.against(patterns.to(dtype), -flipped.to(dtype), **told).mirror.tolist() == [False, True]


def test_whole_number_patterns_give_a_network_of_the_default_dtype():
    assert HopfieldNetwork.from_patterns(signs(3, 10).long()).weight.dtype == torch.get_default_dtype()


def test_energies_and_fields_keep_the_leading_axes(memory):
    states = signs(2, 5, 70)
    assert memory.energy(states).shape == memory.is_stable(states).shape == (2, 5)
    assert memory.field(states).shape == memory.update(states, 3).shape == memory.crosstalk(states).shape == (2, 5, 70)
    assert memory.energy(states[0, 0]).shape == ()


def test_each_state_is_recalled_as_if_it_were_alone(memory):
    states = signs(9, 70, seed=1)
    together = memory.recall(states)
    for row, state in enumerate(states):
        alone = memory.recall(state[None])
        assert torch.equal(alone.states[0], together.states[row])
        assert alone.sweeps[0] == together.sweeps[row]


def test_the_input_is_never_written_to(memory):
    states = signs(1, 70, seed=2)
    before = states.clone()
    memory.recall(states)
    memory.update(states, 0)
    assert torch.equal(states, before)


def test_a_saved_network_comes_back_with_its_memories(memory):
    fresh = HopfieldNetwork(70, dtype=torch.float64)
    fresh.load_state_dict(memory.state_dict())
    states = signs(5, 70, seed=3)
    assert torch.equal(fresh.recall(states).states, memory.recall(states).states)
    assert torch.equal(fresh.patterns, memory.patterns)
    assert torch.equal(fresh.weight, memory.weight)


def test_casting_the_module_casts_all_of_it(memory):
    memory.float()
    assert {buffer.dtype for buffer in memory.buffers()} == {torch.float32}
    assert memory.recall(signs(2, 70)).states.dtype == torch.float32


def test_a_network_takes_the_dtype_of_what_it_is_given():
    assert HopfieldNetwork(2).weight.dtype == torch.get_default_dtype()
    assert HopfieldNetwork(2, bias=torch.zeros(2).double()).weight.dtype == torch.float64
    assert HopfieldNetwork(2, torch.zeros(2, 2).double(), torch.zeros(2)).bias.dtype == torch.float64
    assert HopfieldNetwork(2, torch.zeros(2, 2).double(), dtype=torch.float32).weight.dtype == torch.float32


def test_the_couplings_are_copies_of_what_was_given():
    weight, bias = torch.zeros(3, 3), torch.zeros(3)
    network = HopfieldNetwork(3, weight, bias)
    weight.fill_(7)
    bias.fill_(7)
    assert network.weight.abs().max() == 0
    assert network.bias.abs().max() == 0


def test_it_is_a_module_that_maps_states_to_states(memory):
    states = signs(2, 70)
    assert torch.equal(torch.nn.Sequential(memory)(states), memory.recall(states).states)
    assert str(memory) == "HopfieldNetwork(units=70, patterns=4)"
    assert list(memory.parameters()) == []


# --- Order ---


def test_a_generator_draws_the_order_of_each_sweep(memory):
    states = signs(6, 70, seed=4)
    found = memory.recall(states, max_sweeps=2, generator=torch.Generator().manual_seed(5))
    same = torch.Generator().manual_seed(5)
    after = states
    for _ in range(2):
        for unit in torch.randperm(70, generator=same).tolist():
            after = memory.update(after, unit)
    assert torch.equal(found.states, after)


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_path():
    overloaded = HopfieldNetwork.from_patterns(signs(40, 70))
    states = signs(20, 70, seed=6)
    first, second, other = (
        overloaded.recall(states, generator=torch.Generator().manual_seed(seed)).states for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("units", [1, 31, 32, 33, 64, 65])
def test_sizes_around_a_block_agree_with_single_updates(units):
    weight = torch.randint(-2, 3, (units, units), generator=torch.Generator().manual_seed(units)).double().triu(1)
    network = HopfieldNetwork(units, weight + weight.T, signs(units, seed=7), dtype=torch.float64)
    after = states = signs(5, units, seed=8)
    for unit in range(units):
        after = network.update(after, unit)
    assert torch.equal(network.recall(states, max_sweeps=1).states, after)


# --- The report ---


def test_a_network_without_memories_reports_none():
    network = HopfieldNetwork(2, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    found = network.recall(torch.tensor([[1, 1], [1, -1]]))
    assert found.memory.tolist() == [-1, -1]
    assert found.overlap.isnan().all()
    assert not (found.exact | found.mirror | found.spurious).any()
    assert found.converged.all()


def test_energies_are_recorded_only_when_asked(memory):
    assert memory.recall(signs(2, 70)).energies is None
    assert memory.recall(signs(2, 70), max_sweeps=1, trace=True).energies.shape == (2, 2)


def test_energies_are_those_at_the_start_and_after_each_sweep_down_to_the_idle_one(memory):
    states = signs(20, 70)
    found = memory.recall(states, trace=True)
    assert torch.equal(found.energies[:, 0], memory.energy(states))
    assert torch.equal(found.energies[:, -1], memory.energy(found.states))
    assert found.energies.shape[1] == int(found.sweeps.max()) + 2
    assert torch.equal(found.energies[:, 1], memory.energy(memory.recall(states, max_sweeps=1).states))


def test_the_report_reads_as_one_line(memory):
    found = memory.recall(torch.cat([memory.patterns, -memory.patterns]))
    assert repr(found) == "Recall(states=8, converged=8, cycled=0, exact=4, mirror=4, spurious=0)"


def test_a_state_that_ran_out_of_sweeps_is_not_called_converged():
    overloaded = HopfieldNetwork.from_patterns(signs(40, 70))
    found = overloaded.recall(signs(50, 70, seed=9), max_sweeps=1)
    assert torch.equal(found.converged, overloaded.is_stable(found.states))
    assert not found.converged.all()


def test_other_memories_may_use_the_report():
    patterns = torch.eye(3) * 2 - 1
    nothing = torch.zeros(3, dtype=torch.bool)
    found = Recall.against(
        patterns, -patterns, converged=~nothing, cycled=nothing, sweeps=torch.zeros(3, dtype=torch.long)
    )
    assert found.mirror.all()
    assert found.memory.tolist() == [0, 1, 2]


# --- The pseudo-inverse rule ---


def test_the_pseudo_inverse_holds_correlated_patterns_where_hebb_does_not():
    shared = signs(60)
    patterns = torch.where(torch.rand(8, 60, generator=torch.Generator().manual_seed(0)) < 0.15, -shared, shared)
    assert HopfieldNetwork.from_patterns(patterns, "pseudo-inverse").is_stable(patterns).all()
    assert not HopfieldNetwork.from_patterns(patterns).is_stable(patterns).all()


def test_a_pattern_stored_twice_does_no_harm_to_the_pseudo_inverse():
    patterns = signs(5, 60)
    once, twice = (
        HopfieldNetwork.from_patterns(p, "pseudo-inverse").weight for p in (patterns, torch.cat([patterns, patterns]))
    )
    torch.testing.assert_close(once, twice)
    assert torch.equal(once, once.T)
    assert once.diagonal().abs().max() == 0


def test_recall_takes_states_with_a_gradient_history_and_returns_none():
    network = HopfieldNetwork.from_patterns(torch.ones(1, 4))
    states = torch.sign(torch.nn.Linear(4, 4)(torch.ones(2, 4)))
    assert not network(states).requires_grad


def test_recall_does_what_plain_loops_do():
    """Too many memories and some biases: unit by unit, and pattern by pattern, recall must say the same."""
    draw = Draw("loops")
    stored, bias = draw.signs(32, 80), draw.integers(-2, 3, 80) / 4
    memory = HopfieldNetwork(80, bias=bias, dtype=torch.float64).store(stored)
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
    assert found.states.equal(after)
    assert found.sweeps.equal(sweeps)
    assert found.converged.equal(memory.is_stable(after))
    assert found.overlap.abs().equal(overlaps.abs().amax(1))
    assert found.overlap.equal(overlaps.gather(1, found.memory[:, None])[:, 0])
    assert found.spurious.equal(memory.is_stable(after) & ~known)
    assert found.spurious.any()
    assert not found.converged.all()
    assert found.energies is None


def test_a_mirror_image_is_told_from_its_memory():
    stored = Draw("mirror").signs(10, 200)
    found = HopfieldNetwork.from_patterns(stored).recall(-stored)
    assert (found.mirror & found.converged & ~found.exact & ~found.spurious).all()
    assert found.memory.tolist() == list(range(10))


def test_rivals_in_lockstep_go_round_and_one_after_the_other_settle():
    rivals = HopfieldNetwork(2, torch.tensor([[0.0, -1.0], [-1.0, 0.0]]))
    found = rivals.recall(torch.ones(1, 2), dynamics="synchronous")
    assert (bool(found.cycled), bool(found.converged), int(found.sweeps), int(found.memory)) == (True, False, 2, -1)
    assert rivals.recall(torch.ones(1, 2)).states.tolist() == [[-1.0, 1.0]]


def ten_digits():
    """The first handwritten picture of each digit in black and white, as signs."""
    images, labels = digits().everything
    return torch.stack([(images[labels == digit][0] > 0.5).flatten().double() * 2 - 1 for digit in range(10)])


def test_the_pseudo_inverse_is_the_projection_on_the_patterns_without_its_diagonal():
    pictures = ten_digits()
    weight = HopfieldNetwork.from_patterns(pictures, "pseudo-inverse").weight
    basis = torch.linalg.qr(pictures.T).Q
    rounding = 64 * torch.finfo(torch.float64).eps * float(torch.linalg.cond(pictures))
    torch.testing.assert_close(weight, (basis @ basis.T).fill_diagonal_(0), rtol=0, atol=rounding)
    assert weight.equal(weight.T)


def test_handwritten_digits_come_back_by_the_pseudo_inverse_and_not_by_hebb():
    draw, pictures = Draw("digits"), ten_digits().repeat(20, 1)
    noisy = torch.where(draw.uniform(*pictures.shape).argsort(1) < 6, -pictures, pictures)
    recalled = {}
    for rule in ("pseudo-inverse", "hebb"):
        found = HopfieldNetwork.from_patterns(ten_digits(), rule).recall(noisy)
        recalled[rule] = float((found.exact & (found.memory == torch.arange(200) % 10)).double().mean())
    assert recalled["pseudo-inverse"] > 0.9
    assert recalled["hebb"] < 0.5
