"""Exponential associative memory: bad input, dtypes, and sizes at which a plain exponential overflows."""

import math

import pytest
import torch

from lemmata.connectionism.exponential_memory import ExponentialMemory
from lemmata.judge import Draw


def signs(*shape, seed=0):
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def test_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match=r"patterns must hold only -1 and \+1, got values {0, 1}"):
        ExponentialMemory(torch.eye(3))
    with pytest.raises(ValueError, match="patterns must be a \\(patterns, units\\) tensor, got shape \\(3,\\)"):
        ExponentialMemory(torch.ones(3))
    with pytest.raises(ValueError, match="states must have 8 units on its last axis, got shape \\(9,\\)"):
        ExponentialMemory(signs(4, 8)).energy(torch.ones(9))
    with pytest.raises(ValueError, match="states must be finite, found 16 NaN values"):
        ExponentialMemory(signs(4, 8)).recall(torch.full((2, 8), torch.nan))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("units", [8, 800])
def test_nothing_overflows_in_any_dtype(dtype, units):
    memory = ExponentialMemory(signs(50, units).to(dtype))
    states = memory.patterns[:2].clone()
    states[:, :2] *= -1
    found = memory.recall(states, trace=True)
    assert found.energies.isfinite().all()
    assert memory.field(states).isfinite().all()
    assert found.converged.all()
    assert units == 8 or found.exact.all()


def test_a_state_far_from_every_pattern_still_has_a_field():
    memory = ExponentialMemory(torch.ones(1, 1000))
    assert (memory.field(-torch.ones(1000)) > 0).all()
    assert memory.recall(-torch.ones(1, 1000)).exact.all()


def test_patterns_one_flip_apart_are_a_tie_that_ends():
    pair = signs(1, 300).repeat(2, 1)
    pair[0, 7], pair[1, 7] = 1, -1
    found = ExponentialMemory(pair).recall(pair)
    assert found.converged.all()
    assert found.states.equal(pair[[0, 0]].float())  # ties go to +1


def test_a_field_below_the_grid_is_a_tie():
    """One pattern at a distance of 20 flips weighs e^-40 of the nearest, less than 2^-48: its field is not seen."""
    near = torch.ones(1, 40)
    far = torch.where(torch.arange(40) < 20, -near, near)
    assert ExponentialMemory(torch.cat([near, far])).field(near).equal(ExponentialMemory(near).field(near))
    assert math.exp(-40) < 2.0**-48


def test_state_dict_seed_and_repr():
    memory, other = ExponentialMemory(signs(500, 12)), ExponentialMemory(signs(500, 12, seed=9))
    other.load_state_dict(memory.state_dict())
    states = signs(20, 12, seed=4)
    first, again = (m.recall(states, generator=torch.Generator().manual_seed(1)).states for m in (memory, other))
    assert first.equal(again)
    assert memory.is_stable(memory.local_minima()).all()
    assert repr(memory) == "ExponentialMemory(patterns=500, units=12)"


def test_the_field_is_the_gain_in_units_of_the_states_own_sum():
    draw = Draw("gain")
    memory, states = ExponentialMemory(draw.signs(30, 8)), draw.signs(50, 8)
    for unit in range(8):
        flipped = states.clone()
        flipped[:, unit] *= -1
        gain = states[:, unit] * (1 - torch.exp(memory.energy(states) - memory.energy(flipped)))
        torch.testing.assert_close(memory.field(states)[:, unit], gain, rtol=1e-12, atol=1e-12)


def test_patterns_come_back_where_exponentials_overflow():
    draw = Draw("large")
    patterns = draw.signs(100, 800)
    memory = ExponentialMemory(patterns)
    noisy = torch.where(draw.uniform(4, 800).argsort(1) < 160, -patterns[:4], patterns[:4])
    found = memory.recall(noisy, trace=True)
    assert found.states.equal(patterns[:4])
    assert memory.is_stable(patterns).all()
    assert (found.energies.diff(dim=1) <= 1e-9).all()
    assert ExponentialMemory(patterns[:1]).energy(patterns[:1]).item() == pytest.approx(-800.0, rel=1e-14)


def test_of_two_patterns_one_flip_apart_the_one_with_plus_is_recalled():
    draw = Draw("ties")
    pairs, where = draw.signs(20, 80).repeat(2, 1), draw.integers(0, 80, 20)
    pairs[torch.arange(40), where.repeat(2)] = torch.tensor([1.0, -1.0]).double().repeat_interleave(20)
    memory = ExponentialMemory(pairs)
    found = memory.recall(pairs, max_sweeps=3)
    assert found.converged.all()
    assert found.states.equal(pairs[:20].repeat(2, 1))
    assert memory.is_stable(pairs[:20]).all()
