"""Exponential associative memory: bad input, dtypes, and sizes at which a plain exponential overflows."""

import pytest
import torch

from lemmata.connectionism.exponential_memory import ExponentialMemory


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


def test_state_dict_seed_and_repr():
    memory, other = ExponentialMemory(signs(500, 12)), ExponentialMemory(signs(500, 12, seed=9))
    other.load_state_dict(memory.state_dict())
    states = signs(20, 12, seed=4)
    first, again = (m.recall(states, generator=torch.Generator().manual_seed(1)).states for m in (memory, other))
    assert first.equal(again)
    assert memory.is_stable(memory.local_minima()).all()
    assert repr(memory) == "ExponentialMemory(patterns=500, units=12)"
