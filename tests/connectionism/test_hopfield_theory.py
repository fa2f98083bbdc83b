"""The theory of the Hopfield network beyond its claims: bad input, known values, limits, batches."""

import math

import pytest
import torch

from lemmata.connectionism import hopfield_theory as theory
from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.judge import Draw


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.crosstalk(torch.zeros(2, 3)), r"patterns must hold only -1 and \+1, got values \{0\}"),
        (lambda: theory.crosstalk(torch.ones(3)), r"patterns must be a \(\.\.\., patterns, units\) tensor"),
        (lambda: theory.crosstalk(torch.ones(0, 3)), r"patterns must not be empty, got shape \(0, 3\)"),
        (lambda: theory.crosstalk(torch.ones(2, 3), first=3), "first must be <= 2, got 3"),
        (lambda: theory.crosstalk(torch.ones(2, 3), first=0), "first must be >= 1, got 0"),
        (lambda: theory.crosstalk_variance(0, 3), "units must be >= 1, got 0"),
        (lambda: theory.flip_probability(1, 3), "units must be >= 2, got 1"),
        (lambda: theory.flip_probability(10, 0), "patterns must be >= 1, got 0"),
        (lambda: theory.error_probability(0.0), "load must be > 0, got 0.0"),
        (lambda: theory.error_probability(math.nan), "load must be finite, got nan"),
        (lambda: theory.error_free_capacity(1), "units must be >= 2, got 1"),
        (lambda: theory.retrieval_overlap(-0.1), "load must be > 0, got -0.1"),
    ],
)
def test_bad_input_is_refused_with_its_value(unchecked, call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_whole_numbers_are_asked_for_where_patterns_are_counted(unchecked):
    with pytest.raises(TypeError, match="patterns must be an integer, got float"):
        theory.flip_probability(10, 2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"patterns must be floating point, got torch\.int64: use patterns\.double\(\)"):
        theory.crosstalk(torch.ones(2, 3, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_batch_of_networks_is_a_stack_of_single_ones(dtype):
    patterns = (torch.randint(0, 2, (4, 3, 5, 16), generator=torch.Generator().manual_seed(0)) * 2 - 1).to(dtype)
    noise = theory.crosstalk(patterns)
    assert noise.dtype == dtype
    assert torch.equal(noise[2, 1], theory.crosstalk(patterns[2, 1]))
    assert torch.equal(noise[..., :2, :], theory.crosstalk(patterns, first=2))


def test_a_single_pattern_has_no_crosstalk_and_never_flips():
    assert theory.crosstalk(torch.ones(1, 8)).abs().max() == 0
    assert theory.crosstalk_variance(8, 1) == 0
    assert theory.flip_probability(8, 1) == 0


def test_the_flip_probability_of_two_patterns_of_three_units_is_counted_by_hand():
    # Two signs: their sum is -2 with probability 1/4, which is a tie, and ties harm half of the bits.
    assert theory.flip_probability(3, 2) == 1 / 8


def test_huge_networks_are_computed_too():
    assert theory.flip_probability(10**7, 10**6) == pytest.approx(theory.error_probability(0.1), rel=1e-5)


def test_the_critical_load_is_that_of_the_literature():
    assert theory.critical_load() == pytest.approx(0.137905566, abs=1e-9)


def test_the_overlap_falls_with_the_load_and_vanishes_beyond_the_critical_one():
    loads = [1e-12, 1e-6, 1e-3, 0.05, 0.1, 0.13, 0.1379]
    overlaps = [theory.retrieval_overlap(load) for load in loads]
    assert overlaps == sorted(overlaps, reverse=True)
    assert overlaps[0] == 1.0
    assert overlaps[-1] > 0.967
    assert theory.retrieval_overlap(0.14) == theory.retrieval_overlap(10.0) == 0.0


def iterated(load):
    """The three mean-field equations, each inserted into the next until nothing moves."""
    overlap, noise = 1.0, 1.0
    for _ in range(10_000):
        before, width = overlap, math.sqrt(2 * load * noise)
        response = 2 / math.sqrt(math.pi) / width * math.exp(-((overlap / width) ** 2))
        overlap, noise = math.erf(overlap / width), (1 - response) ** -2
        if abs(overlap - before) < 1e-13:
            break
    return overlap


@pytest.mark.parametrize("load", [0.02, 0.06, 0.1, 0.12, 0.13])
def test_the_overlap_solves_the_mean_field_equations(load):
    # The iteration stops when a step is below 1e-13 and gains a factor of 1.6 or more with each step.
    assert theory.retrieval_overlap(load) == pytest.approx(iterated(load), abs=1e-12, rel=0)


def test_the_crosstalk_of_the_first_patterns_and_of_a_network_is_the_same():
    patterns = Draw("crosstalk").signs(5, 64)
    whole = theory.crosstalk(patterns)
    assert theory.crosstalk(patterns, first=2).equal(whole[:2])
    assert HopfieldNetwork.from_patterns(patterns).crosstalk(patterns).equal(whole)
