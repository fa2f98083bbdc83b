"""Triangular factors of singular matrices; the rest is in the claim and in test_definiteness."""

import torch

from lemmata.foundations.cholesky import psd_factor


def test_factors_of_singular_matrices_are_the_plainest():
    flat, whole = torch.diag(torch.tensor([0.0, 1.0])), torch.ones(2, 2)
    torch.testing.assert_close(psd_factor(flat), flat)
    torch.testing.assert_close(psd_factor(whole), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))


def test_no_entry_of_the_diagonal_is_negative():
    thin = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    factor = psd_factor(thin @ thin.mT)
    assert (factor.diagonal(dim1=-2, dim2=-1) >= 0).all()
    assert factor.equal(factor.tril())
