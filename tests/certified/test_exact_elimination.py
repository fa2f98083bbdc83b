"""What the claim about ranks does not say: bad input, dtypes, sizes."""

import pytest
import torch

from lemmata.certified.exact_elimination import exact_rank

DTYPES = [
    torch.int8,
    torch.int64,
    torch.uint8,
    torch.uint64,
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_real_dtype_is_exact(dtype):
    matrix = torch.tensor([[2, 1], [4, 2]], dtype=dtype)
    assert exact_rank(matrix) == 1


def test_booleans_are_zeros_and_ones():
    assert exact_rank(torch.tensor([[True, False], [True, True]])) == 2


def test_ranks_are_those_of_the_numbers_as_they_are_stored():
    assert exact_rank(torch.tensor([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], dtype=torch.float64)) == 2
    assert exact_rank(torch.tensor([[0.5, 0.25], [2.0, 1.0]])) == 1


def test_ranks_of_extreme_numbers_are_exact():
    assert exact_rank(torch.diag(torch.full((3,), 5e-324, dtype=torch.float64))) == 3
    assert exact_rank(torch.tensor([[1e308, 5e-324], [1e308, 0.0]], dtype=torch.float64)) == 2
    for last, rank in ((0, 1), (1, 2)):
        assert exact_rank(torch.tensor([[2**63 - 1, 2**63 - 2], [2**63 - 1, 2**63 - 2 - last]])) == rank
    assert exact_rank(torch.full((1, 1), -128, dtype=torch.int8)) == 1
    assert exact_rank(torch.zeros(1, 1)) == 0


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
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
