"""What the claims about ranks, minors and general position do not say: bad input, dtypes, sizes."""

from fractions import Fraction

import pytest
import torch

from lemmata.foundations.exact_elimination import exact_determinant, exact_rank
from lemmata.foundations.general_position import dependent_subset
from lemmata.foundations.minors import definiteness_by_minors, leading_minors, principal_minors


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float32, torch.float64, torch.bfloat16])
def test_every_real_dtype_is_exact(dtype):
    matrix = torch.tensor([[2, 1], [4, 2]], dtype=dtype)
    assert exact_rank(matrix) == 1
    assert exact_determinant(matrix) == 0
    assert leading_minors(matrix) == [2, 0]
    assert dependent_subset(matrix) == (0, 1)


def test_booleans_are_zeros_and_ones():
    assert exact_rank(torch.tensor([[True, False], [True, True]])) == 2


def test_ranks_are_those_of_the_numbers_as_they_are_stored():
    assert exact_rank(torch.tensor([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], dtype=torch.float64)) == 2
    assert exact_rank(torch.tensor([[0.5, 0.25], [2.0, 1.0]])) == 1


def test_determinants_of_extreme_numbers_are_exact():
    tiny = torch.diag(torch.full((3,), 5e-324, dtype=torch.float64))
    assert exact_determinant(tiny) == Fraction(1, 2**1074) ** 3
    assert exact_determinant(torch.full((1, 1), 1e308, dtype=torch.float64)) == int(1e308)


def test_the_hilbert_matrix_is_definite_though_floats_doubt_it():
    size = 12  # and 5,354,228,880 is a multiple of every number up to 23
    whole = torch.tensor([[5354228880 // (i + j + 1) for j in range(size)] for i in range(size)])
    assert definiteness_by_minors(whole) == "positive definite"


def test_there_is_a_minor_for_every_subset():
    minors = principal_minors(torch.eye(4, dtype=torch.int64))
    assert len(minors) == 15
    assert set(minors.values()) == {1}


def test_more_points_than_dimensions_can_be_in_general_position():
    points = torch.tensor([[1, t, t**2] for t in range(8)])  # on the moment curve
    assert dependent_subset(points) is None
    assert dependent_subset(points[:, 1:], affine=True) is None
    assert dependent_subset(torch.zeros(3, 2)) == (0,)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: exact_rank(torch.ones(3)), ValueError, r"matrix must be a \(rows, columns\) tensor, got shape \(3,\)"),
        (lambda: exact_rank([[1.0]]), TypeError, "matrix must be a tensor, got list"),
        (lambda: exact_rank(torch.zeros(0, 2)), ValueError, "matrix must not be empty"),
        (lambda: exact_rank(torch.zeros(0, 2, dtype=torch.int64)), ValueError, "matrix must not be empty"),
        (lambda: exact_rank(torch.full((2, 2), torch.nan)), ValueError, "matrix must be finite, found 4 NaN values"),
        (lambda: exact_rank(torch.ones(2, 2, dtype=torch.complex64)), TypeError, "matrix must be real"),
        (lambda: exact_determinant(torch.ones(2, 3)), ValueError, r"matrix must be square, got shape \(2, 3\)"),
        (lambda: leading_minors(torch.ones(2, 3)), ValueError, r"matrix must be an \(n, n\) tensor"),
        (lambda: leading_minors([[1.0]]), TypeError, "matrix must be a tensor, got list"),
        (lambda: principal_minors(torch.eye(13)), ValueError, "matrix must have 1 to 12 rows, got 13"),
        (lambda: definiteness_by_minors(torch.zeros(0, 0)), ValueError, "matrix must have 1 to 12 rows, got 0"),
        (lambda: definiteness_by_minors(torch.ones(2, 2).triu()), ValueError, "symmetric to the last bit"),
        (lambda: dependent_subset(torch.ones(3)), ValueError, r"points must be a \(points, features\) tensor"),
        (lambda: dependent_subset(torch.ones(0, 3)), ValueError, "that is not empty"),
        (lambda: dependent_subset(torch.ones(2, 3), affine=1), TypeError, "affine must be True or False, got 1"),
        (lambda: dependent_subset(torch.rand(40, 9)), ValueError, "points must be fewer: 40 of them have more than"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
