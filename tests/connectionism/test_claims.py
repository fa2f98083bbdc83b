"""What the checks of this chapter must notice beyond their own lies: faults that a weaker check let pass."""

import math

import pytest
import torch

from lemmata.connectionism.claims import hopfield, hopfield_capacity, hopfield_crosstalk, version_space
from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.connectionism.hopfield_theory import crosstalk
from lemmata.connectionism.version_space import VersionSpace
from lemmata.judge import Draw


def holds(claim, **changed):
    return claim(Draw(claim.id), **changed).holds


def test_a_uniform_law_of_the_same_variance_is_no_gaussian():
    generator = torch.Generator().manual_seed(1)

    def uniform(patterns):
        """Odd numbers up to 25 or 23, over 32: on the same grid, and 0.76 * 225 + 0.24 * 575 / 3 is 217 = 7 * 31."""
        if patterns.shape[-1] < 32:  # where all networks are tried, the cross-talk is what it is
            return crosstalk(patterns)
        wide, narrow = (2 * torch.randint(-m, m, patterns.shape, generator=generator) + 1 for m in (13, 12))
        return torch.where(torch.rand(patterns.shape, generator=generator) < 0.76, wide, narrow).double() / 32

    assert not holds(hopfield_crosstalk.crosstalk_is_a_centred_gaussian, noise=uniform)


class LeavesOneOut(HopfieldNetwork):
    """The last unit is never updated, and none is missed."""

    def _sweep_units(self, states, generator):
        for unit in range(self.units - 1):
            states = self.update(states, unit)
        return states

    def is_stable(self, patterns):
        return (torch.where(self.field(patterns) >= 0, 1.0, -1.0) == patterns)[..., :-1].all(-1)


def test_a_local_minimum_is_one_by_its_energy_and_not_by_what_the_network_says():
    assert not holds(hopfield.asynchronous_updates_descend_and_stop, network=LeavesOneOut)


@pytest.mark.parametrize("factor", [1.96, 2.04])
def test_the_capacity_is_what_the_law_of_the_errors_says_and_not_what_its_formula_says(monkeypatch, factor):
    monkeypatch.setattr(hopfield_capacity, "error_free_capacity", lambda n: n / (factor * math.log(n)))
    assert not holds(hopfield_capacity.capacity_without_error_is_n_over_two_log_n, factor=factor)


class ForgetsTheFirst(VersionSpace):
    """Whether a unit is right on the first point is not asked."""

    def contains(self, weight, bias=0.0):
        right = self.y * (weight @ self.x.T + torch.as_tensor(bias)[:, None]) > 0
        return right[:, 1:].all(dim=1)


def test_what_is_left_of_the_version_space_was_right_before():
    assert not holds(version_space.more_data_leave_no_unit_that_was_not_there_before, space=ForgetsTheFirst)


class Closed(VersionSpace):
    """Units with points on their boundary belong as well, all but the unit of zeros."""

    def contains(self, weight, bias=0.0):
        bias = torch.as_tensor(bias, dtype=weight.dtype)
        right = (self.y * (weight @ self.x.T + bias[..., None]) >= 0).all(dim=-1)
        return right & ((weight != 0).any(dim=-1) | (bias != 0))


class HasNoMembers(VersionSpace):
    """What is empty from the start is never larger with more data."""

    def contains(self, weight, bias=0.0):
        return torch.zeros(weight.shape[:-1], dtype=torch.bool)

    def fraction(self):
        return 0.25


@pytest.mark.parametrize("seed", range(3))
def test_a_version_space_with_part_of_its_boundary_is_not_open(seed):
    claim = version_space.the_version_space_is_an_open_convex_cone
    assert not claim(Draw(claim.id, seed), space=Closed).holds


def test_a_version_space_keeps_the_units_that_are_right():
    assert not holds(version_space.more_data_leave_no_unit_that_was_not_there_before, space=HasNoMembers)
