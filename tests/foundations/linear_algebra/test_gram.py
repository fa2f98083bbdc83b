"""What the claim about kernels does not say: entry by entry, bad input, dtypes, gradients."""

import pytest
import torch

from lemmata.foundations.linear_algebra.gram import gram_matrix, linear_kernel, polynomial_kernel, rbf_kernel

X = torch.tensor([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]])
FEW = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_kernels_are_their_formulas_between_two_sets_of_points():
    inner, squares = FEW @ FEW[:2].T, torch.cdist(FEW, FEW[:2]) ** 2
    torch.testing.assert_close(linear_kernel(FEW, FEW[:2]), inner)
    torch.testing.assert_close(polynomial_kernel(FEW, FEW[:2]), (inner + 1) ** 2)
    torch.testing.assert_close(polynomial_kernel(FEW, FEW[:2], degree=3, offset=0.5), (inner + 0.5) ** 3)
    torch.testing.assert_close(rbf_kernel(FEW, FEW[:2]), torch.exp(-squares))
    torch.testing.assert_close(rbf_kernel(FEW, FEW[:2], gamma=3.0), torch.exp(-3 * squares))


def test_a_gram_matrix_is_symmetric_to_the_last_bit():
    lopsided = gram_matrix(lambda x, y: x[:, :1] * y[:, 1:].mT, FEW)
    torch.testing.assert_close(lopsided, (FEW[:, :1] * FEW[:, 1] + FEW[:, 1:] * FEW[:, 0]) / 2)
    assert lopsided.equal(lopsided.mT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept_and_batches_answered(dtype):
    assert gram_matrix(rbf_kernel, X.to(dtype)).dtype is dtype
    assert gram_matrix(linear_kernel, torch.ones(4, 5, 3, dtype=dtype)).shape == (4, 5, 5)


def test_gradients_agree_with_differences():
    x = FEW[:4].clone().requires_grad_()
    for kernel in (linear_kernel, polynomial_kernel, rbf_kernel):
        assert torch.autograd.gradcheck(lambda x, k=kernel: gram_matrix(k, x), x)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
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
