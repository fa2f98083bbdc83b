"""What the claims about quadratic forms do not say: bad input, dtypes, shapes, gradients."""

import pytest
import torch

from lemmata.foundations.linear_algebra.quadratic import complete_square, quadratic_form, rayleigh_quotient

M = torch.tensor([[2.0, 1.0], [1.0, -1.0]])


def test_dtypes_are_kept_and_batches_broadcast():
    for dtype in (torch.float32, torch.float64):
        matrix, x = M.to(dtype), torch.ones(5, 2, dtype=dtype)
        assert quadratic_form(matrix, x).shape == (5,)
        assert rayleigh_quotient(matrix.expand(3, 1, 2, 2), x).shape == (3, 5)
        found = complete_square(matrix.expand(3, 1, 2, 2), x)
        assert found.centre.shape == (3, 5, 2)
        assert found.value.shape == (3, 5)
        assert found.value.dtype is dtype


def test_one_matrix_is_completed_as_one_of_many():
    many = complete_square(torch.stack([M, 2 * M]), torch.ones(2, 2))
    torch.testing.assert_close(complete_square(M, torch.ones(2)).value, many.value[0])
    torch.testing.assert_close(complete_square(2 * M, torch.ones(2)).centre, many.centre[1])


def test_gradients_agree_with_differences():
    half = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, dtype=torch.float64, requires_grad=True)
    for function in (quadratic_form, rayleigh_quotient, complete_square):
        assert torch.autograd.gradcheck(lambda h, b, f=function: f(h + h.mT, b), (half, b))


def test_quotients_of_huge_and_tiny_vectors_are_finite():
    for size in (1e-30, 1e30):
        assert rayleigh_quotient(M, torch.tensor([size, 0.0])) == 2


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: quadratic_form(torch.ones(2, 3), torch.ones(3)), ValueError, r"matrix must be a \(..., n, n\) tensor"),
        (lambda: quadratic_form(M, torch.ones(3)), ValueError, r"x must be a \(..., 2\) tensor to fit matrix"),
        (
            lambda: quadratic_form(M.expand(3, 2, 2), torch.ones(4, 2)),
            ValueError,
            "matrix and x must have leading axes",
        ),
        (lambda: rayleigh_quotient(M, torch.zeros(2)), ValueError, "vector must not be zero"),
        (lambda: rayleigh_quotient(M, torch.tensor(1.0)), ValueError, r"x must be a \(..., 2\) tensor"),
        (lambda: rayleigh_quotient(M.triu(), torch.ones(2)), ValueError, "matrix must be symmetric, but differs"),
        (lambda: complete_square(M.triu(), torch.ones(2)), ValueError, r"use \(matrix \+ matrix.mT\) / 2"),
        (lambda: complete_square(torch.zeros(2, 2), torch.ones(2)), ValueError, "matrix must be invertible"),
        (lambda: complete_square(M, torch.ones(2).double()), TypeError, "linear must have the dtype of matrix"),
        (lambda: complete_square(M * torch.nan, torch.ones(2)), ValueError, "matrix must be finite"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
