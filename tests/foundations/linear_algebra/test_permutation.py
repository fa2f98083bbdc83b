"""What the claim about permutation matrices does not say: bad input, dtypes, batches."""

import itertools

import pytest
import torch

from lemmata.foundations.linear_algebra.permutation import (
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


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_matrices_and_permutations_lead_to_one_another(n):
    permutations = torch.tensor(list(itertools.permutations(range(n))))
    matrices = permutation_matrix(permutations)
    assert permutation_of_matrix(matrices).equal(permutations)
    assert len({tuple(matrix.flatten().tolist()) for matrix in matrices}) == len(permutations)
    inverse = invert_permutation(permutations)
    assert permutation_matrix(inverse).equal(matrices.mT)
    assert permutations.gather(1, inverse).equal(torch.arange(n).expand_as(permutations))
    # The product of two matrices is the matrix of one permutation after the other.
    assert permutation_of_matrix(matrices[-1] @ matrices).equal(permutations[:, permutations[-1]])
    assert invert_permutation(permutations.reshape(1, -1, n)).equal(inverse[None])


EVERY = torch.tensor(list(itertools.product((0, 1), repeat=9))).reshape(-1, 3, 3)
BALANCED = torch.tensor([[1, 1, -1], [0, 0, 1], [0, 0, 1]])  # all sums are 1, and but for one entry so is the rest
OTHERS = torch.stack([torch.eye(2), torch.tensor([[2.0, -1.0], [-1.0, 2.0]]), torch.tensor([[1.0, 1.0], [0, 0]])])


@pytest.mark.parametrize("recognised", [is_permutation_matrix, is_doubly_stochastic])
def test_rows_columns_and_signs_are_all_looked_at(recognised):
    assert int(recognised(EVERY).sum()) == 6
    assert recognised(EVERY.reshape(2, 256, 3, 3)).flatten().equal(recognised(EVERY))
    assert recognised(OTHERS).tolist() == [True, False, False]
    assert not recognised(BALANCED)


def test_mixtures_are_doubly_stochastic_up_to_rounding():
    generator = torch.Generator().manual_seed(0)
    # Twenty of them: the sums of a single one may round to 1 by luck.
    weights = torch.rand(20, 10, generator=generator, dtype=torch.float64)
    order = torch.stack([torch.randperm(40, generator=generator) for _ in range(200)]).reshape(20, 10, 40)
    shares = weights / weights.sum(-1, keepdim=True)
    assert is_doubly_stochastic((shares[..., None, None] * permutation_matrix(order, torch.float64)).sum(1)).all()
    moved = torch.full((3, 3), 1 / 3, dtype=torch.float64)
    moved[0, 0] += 1e-9
    assert not is_doubly_stochastic(moved)


def test_the_default_dtype_is_that_of_torch():
    assert permutation_matrix(CYCLE).dtype is torch.get_default_dtype()


def test_two_lines_are_the_places_and_where_they_go():
    assert two_line_notation(torch.tensor([2, 0, 1])) == "1 2 3\n3 1 2"


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
