"""Gradients of the divergence by a Cholesky factor that is given: those of the formula, and none above the diagonal."""

import torch

from lemmata.foundations import Gaussian, gaussian_kl


def laws():
    torch.manual_seed(0)
    factors = [torch.randn(2, 3, 3).double().tril() for _ in range(2)]
    for factor in factors:
        factor.diagonal(dim1=-2, dim2=-1).abs_().add_(0.5)
    return [leaf.requires_grad_() for leaf in (torch.randn(2, 3).double(), torch.randn(2, 3).double(), *factors)]


def formula(mean_p, mean_q, factor_p, factor_q):
    """The divergence as it is printed; what stands above the diagonal of a factor is not part of it."""
    p, q = (factor.tril() @ factor.tril().mT for factor in (factor_p, factor_q))
    away = (mean_q - mean_p)[..., None]
    inverse = torch.linalg.inv(q)
    trace = (inverse @ p).diagonal(dim1=-2, dim2=-1).sum(-1)
    return (torch.logdet(q) - torch.logdet(p) - 3 + trace + (away.mT @ inverse @ away)[..., 0, 0]) / 2


def divergence(mean_p, mean_q, factor_p, factor_q):
    return gaussian_kl(Gaussian.from_cholesky(mean_p, factor_p), Gaussian.from_cholesky(mean_q, factor_q))


def test_the_gradient_by_a_factor_is_that_of_the_formula_and_zero_above_the_diagonal():
    leaves, weights = laws(), torch.tensor([1.0, -2.0]).double()
    torch.testing.assert_close(divergence(*leaves), formula(*leaves))
    ours, theirs = (torch.autograd.grad((f(*leaves) * weights).sum(), leaves) for f in (divergence, formula))
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-12)
    for factor in ours[2:]:
        assert not factor.triu(1).any()


def test_so_is_the_second_one():
    leaves = laws()
    ours, theirs = (
        torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
        for first in (torch.autograd.grad(f(*leaves).sum(), leaves, create_graph=True) for f in (divergence, formula))
    )
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-9, atol=1e-10)
