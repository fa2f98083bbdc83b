"""What the claim about triangular factors does not say: singular matrices, bad input, dtypes, gradients."""

import pytest
import torch

from lemmata.foundations.linear_algebra.cholesky import psd_factor


def test_factors_of_singular_matrices_are_the_plainest():
    flat, whole = torch.diag(torch.tensor([0.0, 1.0])), torch.ones(2, 2)
    torch.testing.assert_close(psd_factor(flat), flat)
    torch.testing.assert_close(psd_factor(whole), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))


def test_no_entry_of_the_diagonal_is_negative():
    thin = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    factor = psd_factor(thin @ thin.mT)
    assert (factor.diagonal(dim1=-2, dim2=-1) >= 0).all()
    assert factor.equal(factor.tril())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_factor_of_a_singular_matrix_does_not_turn_on_the_last_bit(dtype):
    # Cholesky's algorithm breaks down at the second pivot, 0, or takes the root of a last bit for it: 3e-4 in float32.
    unit = torch.finfo(dtype).eps
    expected = torch.tensor([[2.0, 0.0], [1.0, 0.0]], dtype=dtype)
    for moved in (-1.0, 0.0, 1.0):
        matrix = torch.tensor([[4.0, 2.0], [2.0, 1.0 + moved * unit]], dtype=dtype)
        torch.testing.assert_close(psd_factor(matrix), expected, rtol=0.0, atol=8 * unit)


def test_small_rows_of_a_singular_matrix_keep_their_digits():
    matrix = torch.block_diag(torch.ones(2, 2), torch.full((2, 2), 1e-12), torch.full((1, 1), 1e-30))
    factor = psd_factor(matrix)
    torch.testing.assert_close(factor @ factor.mT, matrix, rtol=1e-5, atol=0.0)
    tiny = torch.diag(torch.tensor([1.0, 1e-30]))
    assert psd_factor(tiny).equal(torch.linalg.cholesky(tiny))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept_and_batches_answered(dtype):
    assert psd_factor(torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=dtype)).dtype is dtype
    assert psd_factor(torch.ones(4, 5, 3, 3, dtype=dtype)).shape == (4, 5, 3, 3)


def test_parity_with_torch_and_gradients():
    factor = torch.randn(7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert psd_factor(factor @ factor.mT).equal(torch.linalg.cholesky(factor @ factor.mT))
    identity = torch.eye(3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: psd_factor(a @ a.mT + identity), factor[:3, :3].requires_grad_())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: psd_factor(-torch.eye(2)),
            ValueError,
            "matrix must be positive semidefinite, but has the eigenvalue -1",
        ),
        (lambda: psd_factor(torch.ones(2, 2).triu()), ValueError, "matrix must be symmetric"),
        (
            lambda: psd_factor(torch.tensor([[1e-38, 1e30], [1e30, 1.0]])),
            ValueError,
            r"matrix must be positive semidefinite, but has the eigenvalue -1e\+30",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
