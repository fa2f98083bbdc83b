"""What the claim about minors does not say: values without rounding, bad input, dtypes, sizes."""

from fractions import Fraction

import pytest
import torch

from lemmata.foundations.linear_algebra.exact_elimination import exact_determinant
from lemmata.foundations.linear_algebra.minors import definiteness_by_minors, leading_minors, principal_minors

MIXED = torch.tensor([[0.0, 0.5, 2.0], [1.5, -1.0, 0.25], [3.0, 0.0, 1.0]])


def test_the_last_leading_minor_is_the_determinant():
    # By the first column: -3/2 (1/2) + 3 (1/2 1/4 + 2) = 45/8.
    assert leading_minors(MIXED) == [0, Fraction(-3, 4), Fraction(45, 8)]
    assert exact_determinant(MIXED) == Fraction(45, 8)
    minors = principal_minors(MIXED)
    assert minors[0, 2] == -6
    assert minors[1, 2] == -1


def test_minors_agree_with_determinants_up_to_rounding():
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randint(-3, 4, (20, 4, 4), generator=generator)
    found = torch.tensor([float(leading_minors(matrix)[-1]) for matrix in matrices], dtype=torch.float64)
    torch.testing.assert_close(found, torch.linalg.det(matrices.double()), rtol=0.0, atol=1e-11)


def test_numbers_are_taken_as_they_are_stored():
    assert definiteness_by_minors(torch.tensor([[1.0, 0.1], [0.1, 0.01]])) == "indefinite"  # 0.1 squared exceeds 0.01


def test_the_hilbert_matrix_is_definite_though_floats_doubt_it():
    size = 12  # and 5,354,228,880 is a multiple of every number up to 23
    whole = torch.tensor([[5354228880 // (i + j + 1) for j in range(size)] for i in range(size)])
    assert definiteness_by_minors(whole) == "positive definite"


def test_there_is_a_minor_for_every_subset():
    minors = principal_minors(torch.eye(4, dtype=torch.int64))
    assert len(minors) == 15
    assert set(minors.values()) == {1}


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float32, torch.float64, torch.bfloat16])
def test_every_real_dtype_is_exact(dtype):
    assert leading_minors(torch.tensor([[2, 1], [4, 2]], dtype=dtype)) == [2, 0]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: leading_minors(torch.ones(2, 3)), ValueError, r"matrix must be an \(n, n\) tensor"),
        (lambda: leading_minors([[1.0]]), TypeError, "matrix must be a tensor, got list"),
        (lambda: principal_minors(torch.eye(13)), ValueError, "matrix must have 1 to 12 rows, got 13"),
        (lambda: definiteness_by_minors(torch.zeros(0, 0)), ValueError, "matrix must have 1 to 12 rows, got 0"),
        (lambda: definiteness_by_minors(torch.ones(2, 2).triu()), ValueError, "symmetric to the last bit"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
