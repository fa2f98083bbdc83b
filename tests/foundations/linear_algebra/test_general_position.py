"""What the claim about general position does not say: the smallest subset, the other chapter, bad input, dtypes."""

import itertools

import pytest
import torch

from lemmata.connectionism.cover import in_general_position
from lemmata.foundations.linear_algebra.exact_elimination import exact_rank
from lemmata.foundations.linear_algebra.general_position import dependent_subset

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


def test_more_points_than_dimensions_can_be_in_general_position():
    points = torch.tensor([[1, t, t**2] for t in range(8)])  # on the moment curve
    assert dependent_subset(points) is None
    assert dependent_subset(points[:, 1:], affine=True) is None
    assert dependent_subset(torch.zeros(3, 2)) == (0,)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float32, torch.float64, torch.bfloat16])
def test_every_real_dtype_is_exact(dtype):
    assert dependent_subset(torch.tensor([[2, 1], [4, 2]], dtype=dtype)) == (0, 1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dependent_subset(torch.ones(3)), ValueError, r"points must be a \(points, features\) tensor"),
        (lambda: dependent_subset(torch.ones(0, 3)), ValueError, "that is not empty"),
        (lambda: dependent_subset(torch.ones(2, 3), affine=1), TypeError, "affine must be True or False, got 1"),
        (lambda: dependent_subset(torch.rand(40, 9)), ValueError, "points must be fewer: 40 of them have more than"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
