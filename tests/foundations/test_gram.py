"""Kernels, entry by entry; bad input and gradients are in test_definiteness."""

import torch

from lemmata.foundations.gram import gram_matrix, linear_kernel, polynomial_kernel, rbf_kernel

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
