"""What the claim about general position does not say: the smallest subset, the other chapter, bad input, dtypes."""

import itertools

import pytest
import torch

from lemmata.certified.exact_elimination import exact_rank
from lemmata.connectionism.cover import in_general_position
from lemmata.foundations.linear_algebra.general_position import _proved_independent, dependent_subset

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


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8, torch.float32, torch.float64, torch.bfloat16])
def test_every_real_dtype_is_exact(dtype):
    assert dependent_subset(torch.tensor([[2, 1], [4, 2]], dtype=dtype)) == (0, 1)
    assert dependent_subset(torch.tensor([[2, 1], [4, 3]], dtype=dtype), affine=True) is None


def test_nearly_equal_points_are_told_apart():
    double = {"dtype": torch.float64}
    for points in ([[1e8], [1e8 + 1]], [[1e13], [1e13 + 1], [1e13 + 2]], [[1e15], [1e15 + 1]], [[1e-20], [0.0]]):
        assert dependent_subset(torch.tensor(points, **double), affine=True) is None
    assert dependent_subset(torch.tensor([[2**53 + 1], [2**53]]), affine=True) is None  # no float holds both
    assert dependent_subset(torch.tensor([[1e13, 1.0], [1e13 + 1, 1.0]], **double)) is None
    for scale in (5e-324, 1e-300, 1e300):
        line = scale * torch.tensor([[1.0, 1.0], [2.0, 2.0], [1.0, 3.0]], **double)
        assert dependent_subset(line) == (0, 1)
        assert dependent_subset(line[1:]) is None


def test_floats_prove_most_and_never_what_is_false():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(-2, 3, (40, 3), generator=generator).double()
    subsets = torch.tensor(list(itertools.combinations(range(40), 3)))[:2000]
    proved = _proved_independent(rows, subsets)
    independent = torch.tensor([exact_rank(rows[subset]) == 3 for subset in subsets])
    assert proved.equal(independent)  # integers this small are never near a tie
    # Three times the first but for the last bits, which only fractions can tell.
    nearly = torch.tensor([[0.1, 0.7], [0.3, 2.1]], dtype=torch.float64)
    assert not _proved_independent(nearly, torch.tensor([[0, 1]])).any()
    assert dependent_subset(nearly) is None


def test_many_points_are_quickly_seen_to_be_in_general_position():
    points = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    assert dependent_subset(points) is None  # 34,220 subsets
    whole = (100 * points).round()
    whole[50] = whole[10] - 2 * whole[30]
    assert dependent_subset(whole) == (10, 30, 50)


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
