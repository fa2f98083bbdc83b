"""What the claims about definite matrices, factors and kernels do not say: bad input, dtypes, shapes, gradients."""

import math

import pytest
import torch

from lemmata.foundations.cholesky import psd_factor
from lemmata.foundations.definiteness import certify_definiteness, power_of_two
from lemmata.foundations.gram import gram_matrix, linear_kernel, polynomial_kernel, rbf_kernel

X = torch.tensor([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept_and_bounds_are_double(dtype):
    matrix = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=dtype)
    answer = certify_definiteness(matrix)
    assert answer.curvature.dtype is dtype
    assert {answer.floor.dtype, answer.ceiling.dtype, answer.witness.dtype} == {torch.float64}
    for value in (psd_factor(matrix), gram_matrix(rbf_kernel, X.to(dtype))):
        assert value.dtype is dtype


def test_batches_of_any_shape_are_answered():
    answer = certify_definiteness(torch.eye(3).expand(4, 5, 3, 3))
    assert answer.floor.shape == answer.semidefinite.shape == (4, 5)
    assert answer.witness.shape == (4, 5, 3)
    assert psd_factor(torch.ones(4, 5, 3, 3)).shape == (4, 5, 3, 3)
    assert gram_matrix(linear_kernel, torch.ones(4, 5, 3)).shape == (4, 5, 5)


def test_a_matrix_that_is_symmetric_but_for_rounding_is_taken():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 20, 20, generator=generator)
    product = a @ b @ b.mT @ a.mT
    assert not product.equal(product.mT)
    assert certify_definiteness(product).semidefinite


def test_a_singular_matrix_is_semidefinite_and_not_definite():
    for matrix in (torch.ones(3, 3), torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 0.0]))):
        answer = certify_definiteness(matrix)
        assert answer.semidefinite
        assert not answer.definite


def test_tolerance_zero_counts_every_proved_violation():
    matrix = torch.diag(torch.tensor([1.0, -1e-12], dtype=torch.float64))
    assert not certify_definiteness(matrix, tolerance=0).semidefinite
    assert certify_definiteness(matrix, tolerance=1e-11).semidefinite


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


def test_large_matrices_are_bounded_tightly():
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(120, 150, generator=generator, dtype=torch.float64)
    answer = certify_definiteness(factor @ factor.mT)
    assert answer.definite
    assert answer.ceiling - answer.floor < 1e-8


def test_gradients_agree_with_differences():
    half = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    # The witness is held fixed: the first derivative is that of the eigenvalue.
    value = certify_definiteness(half + half.mT).curvature
    (found,) = torch.autograd.grad(value, half)
    (expected,) = torch.autograd.grad(torch.linalg.eigvalsh(half + half.mT)[0], half)
    torch.testing.assert_close(found, expected)
    definite = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    identity = torch.eye(3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: psd_factor(a @ a.mT + identity), definite)
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    for kernel in (linear_kernel, polynomial_kernel, rbf_kernel):
        assert torch.autograd.gradcheck(lambda x, k=kernel: gram_matrix(k, x), x)


def test_parity_with_torch():
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(7, 7, generator=generator, dtype=torch.float64)
    matrix = factor @ factor.mT
    assert psd_factor(matrix).equal(torch.linalg.cholesky(matrix))
    torch.testing.assert_close(certify_definiteness(matrix).curvature, torch.linalg.eigvalsh(matrix)[0])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: certify_definiteness(torch.ones(2, 2).triu()), ValueError, "matrix must be symmetric, but differs"),
        (lambda: certify_definiteness(torch.ones(2, 3)), ValueError, r"matrix must be a \(..., n, n\) tensor"),
        (lambda: certify_definiteness(torch.ones(2)), ValueError, r"matrix must be a \(..., n, n\) tensor"),
        (lambda: certify_definiteness(torch.eye(2).long()), TypeError, "matrix must be floating point"),
        (lambda: certify_definiteness(torch.eye(2) * math.nan), ValueError, "matrix must be finite"),
        (lambda: certify_definiteness(torch.eye(2), tolerance=-1.0), ValueError, "tolerance must be >= 0, got -1.0"),
        (lambda: certify_definiteness(torch.eye(2), tolerance="0"), TypeError, "tolerance must be a number"),
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
        (lambda: rbf_kernel(X, X, gamma=0.0), ValueError, "gamma must be > 0, got 0.0"),
        (lambda: rbf_kernel(X, X[0]), ValueError, r"y must be a \(..., points, features\) tensor"),
        (lambda: linear_kernel(X, torch.ones(2, 3)), ValueError, r"y must be a \(..., 2\) tensor to fit x"),
        (lambda: polynomial_kernel(X, X, degree=0), ValueError, "degree must be >= 1, got 0"),
        (lambda: polynomial_kernel(X, X, offset=-1.0), ValueError, "offset must be >= 0, got -1.0"),
        (lambda: gram_matrix(linear_kernel, X[0]), ValueError, r"x must be a \(..., points, features\) tensor"),
        (
            lambda: gram_matrix(lambda x, y: x, X),
            ValueError,
            r"kernel must return \(3, 3\) values here, got shape \(3, 2\)",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_unit_of_a_matrix_is_set_by_its_largest_entry_whatever_the_sign():
    batch = torch.tensor([[[-9.0, 1.0]], [[0.5, 3.0]], [[0.25, -0.25]]])
    assert power_of_two(batch).tolist() == [power_of_two(matrix).item() for matrix in batch] == [8.0, 2.0, 0.25]
