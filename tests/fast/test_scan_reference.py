"""The scans as they are read: exactly how many compositions they take, and how large their error comes to be."""

import math

import pytest
import torch

from lemmata.fast.scan_reference import compose_steps, scan_by_doubling, scan_by_halving, scan_by_steps


def work(prefixes, length):
    """How many single pairs are composed."""
    sizes = []

    def counting(later, earlier):
        sizes.append(later[0].shape[1])
        return compose_steps(later, earlier)

    prefixes((torch.ones(1, length, 1), torch.ones(1, length, 1)), counting)
    return sum(sizes)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 13, 32, 33, 64, 66])
def test_every_round_of_doubling_leaves_alone_the_prefixes_that_are_whole(length):
    rounds = math.ceil(math.log2(length))
    assert work(scan_by_doubling, length) == length * rounds - (2**rounds - 1)


def test_halving_composes_no_fewer_pairs_than_a_loop_and_as_few_for_two():
    assert work(scan_by_halving, 2) == 1
    assert all(work(scan_by_halving, length) >= length - 1 for length in range(1, 67))


def test_a_sum_that_is_always_rounded_down_comes_to_nearly_half_of_the_bound():
    time, unit = 1025, 2.0**-24
    a, b, z0 = torch.ones(1, time, 1), torch.full((1, time, 1), 0.98 * unit), torch.ones(1, 1)
    exact = scan_by_steps(a.double(), b.double(), z0.double())[0, -1, 0]
    error = float(exact - scan_by_steps(a, b, z0)[0, -1, 0].double())
    share = 2 * time * unit
    assert 0.45 <= error / (share / (1 - share) * float(exact)) <= 1
