"""What the claim about permutation matrices does not say: bad input, dtypes, batches."""

import pytest
import torch

from lemmata.foundations.permutation import (
    invert_permutation,
    is_doubly_stochastic,
    is_permutation_matrix,
    permutation_matrix,
    permutation_of_matrix,
    relabel_graph,
    two_line_notation,
)

CYCLE = torch.tensor([1, 2, 0])


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64, torch.bool])
def test_matrices_come_in_the_dtype_asked_for(dtype):
    matrix = permutation_matrix(CYCLE, dtype=dtype)
    assert matrix.dtype is dtype
    if dtype is not torch.bool:
        assert is_permutation_matrix(matrix)
        assert is_doubly_stochastic(matrix)
        assert permutation_of_matrix(matrix).equal(CYCLE)


def test_batches_are_answered():
    batch = CYCLE.expand(4, 5, 3)
    assert permutation_matrix(batch).shape == (4, 5, 3, 3)
    assert invert_permutation(batch).shape == (4, 5, 3)
    assert is_permutation_matrix(permutation_matrix(batch)).shape == (4, 5)
    assert relabel_graph(torch.ones(7, 3, 3), CYCLE).shape == (7, 3, 3)
    assert permutation_matrix(torch.tensor([0])).tolist() == [[1.0]]


def test_two_lines_keep_their_columns():
    lines = two_line_notation(torch.arange(11).flip(0)).split("\n")
    assert [len(line) for line in lines] == [32, 32]
    assert lines[1].split()[0] == "11"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: permutation_matrix([0, 1]), TypeError, "permutation must be a tensor, got list"),
        (
            lambda: permutation_matrix(torch.tensor([0.0, 1.0])),
            TypeError,
            "permutation must hold integers, got torch.float32",
        ),
        (lambda: permutation_matrix(torch.tensor(0)), ValueError, r"permutation must be a \(..., n\) tensor"),
        (lambda: permutation_matrix(torch.tensor([1, 2])), ValueError, r"each of 0, ..., 1 once, got \[1, 2\]"),
        (lambda: invert_permutation(torch.tensor([0, 0])), ValueError, r"each of 0, ..., 1 once, got \[0, 0\]"),
        (lambda: permutation_of_matrix(torch.ones(2, 2)), ValueError, "matrix must be a permutation matrix"),
        (lambda: is_permutation_matrix(torch.ones(2, 3)), ValueError, r"matrix must be a \(..., n, n\) tensor"),
        (lambda: is_doubly_stochastic([[1.0]]), TypeError, "matrix must be a tensor, got list"),
        (lambda: relabel_graph(torch.ones(2, 2), CYCLE), ValueError, "one index for each of the 2 nodes"),
        (lambda: relabel_graph(torch.ones(2), CYCLE), ValueError, r"adjacency must be a \(..., n, n\) tensor"),
        (lambda: two_line_notation(CYCLE[None]), ValueError, r"permutation must be one permutation \(n,\)"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
