"""The subset that is named: no smaller one would do, and the chapter on connectionism agrees that there is one."""

import itertools

import pytest
import torch

from lemmata.connectionism.cover import in_general_position
from lemmata.foundations.exact_elimination import exact_rank
from lemmata.foundations.general_position import dependent_subset

SETS = [
    torch.tensor([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]]),
    torch.tensor([[0, 0, 1], [1, 1, 0], [2, 2, -1], [3, 0, 0], [0, 5, 1]]),  # three of them on a line
    torch.tensor([[0, 0, 1], [1, 0, 1], [0, 1, 1], [2, 3, 1]]),  # in a plane, no three on a line
    torch.tensor([[1, 2, 3], [0, 1, 4], [-2, -4, -6]]),
    torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, 4]]),
    torch.zeros(1, 3),
]


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("points", SETS, ids=range(len(SETS)))
def test_the_named_subset_is_dependent_and_the_smallest(points, affine):
    found = dependent_subset(points, affine=affine)
    assert in_general_position(points.double(), bias=affine) == (found is None)
    if found is not None:
        rows = torch.cat([points, torch.ones(len(points), 1)], dim=1) if affine else points
        assert exact_rank(rows[list(found)]) == len(found) - 1
        for rest in itertools.combinations(found, len(found) - 1):
            assert not rest or exact_rank(rows[list(rest)]) == len(rest)


def test_scales_and_last_digits_decide_nothing():
    line = torch.tensor([[0, 0, 1], [1, 1, 0], [2, 2, -1]]).double()
    assert dependent_subset(2.0**-500 * line) == dependent_subset(line)
    nearly = torch.tensor([[1.0, 0.0], [1.0, 1e-9]])
    assert dependent_subset(nearly) is None
