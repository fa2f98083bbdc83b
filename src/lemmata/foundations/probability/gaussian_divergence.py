r"""The Kullback-Leibler divergence between Gaussians, whatever form their covariances are stored in."""

from typing import Any

import numpy
import torch
from torch import Tensor

from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.foundations.probability.gaussian_distribution import GaussianDistribution
from lemmata.marks import system

__all__ = ["gaussian_kl"]


@system("gaussian_kl", title="Divergence between Gaussians", kind="function")
def gaussian_kl(p: GaussianDistribution, q: GaussianDistribution) -> Tensor:
    r"""The divergence of Gaussian distributions in closed form; full, diagonal and low-rank covariances may be mixed.

    $$ D_{KL}(p\|q) = \tfrac12\Big[\log\frac{|\Sigma_q|}{|\Sigma_p|} - d + \mathrm{tr}(\Sigma_q^{-1}\Sigma_p)
       + (\mu_q-\mu_p)^\top\Sigma_q^{-1}(\mu_q-\mu_p)\Big] $$

    Batches broadcast. Two full Gaussians share one triangular solve between the value and all four gradients.

    Shapes:
        p, q: batches of distributions with the same number of features    returns: (...)

    Claims: gaussian.kl, gaussian.kl_diagonal

    >>> standard = Gaussian(torch.zeros(2), torch.eye(2))
    >>> gaussian_kl(Gaussian(torch.ones(2), torch.eye(2)), standard)
    tensor(1.)
    """
    if p.dimension != q.dimension:
        raise ValueError(f"p and q must have the same number of features, got {p.dimension} and {q.dimension}")
    if p.mean.dtype != q.mean.dtype:
        raise TypeError(f"p and q must have the same dtype, got {p.mean.dtype} and {q.mean.dtype}")
    if isinstance(p, Gaussian) and isinstance(q, Gaussian):
        return _full_divergence(p, q)
    factor, diagonal = p.parts()
    trace = 0.0 if factor is None else q.squared_lengths(factor).sum(-1)
    if diagonal is not None:
        trace = trace + (q.inverse_diagonal() * diagonal).sum(-1)
    return (q.logdet - p.logdet - p.dimension + trace + q.mahalanobis(p.mean)) / 2


def _full_divergence(p: Gaussian, q: Gaussian) -> Tensor:
    """Batches are made equal before, so that autograd sums what was broadcast."""
    batch = numpy.broadcast_shapes(p.batch_shape, q.batch_shape)
    means = (law.mean.expand(*batch, -1) for law in (p, q))
    factors = (law.cholesky.expand(*batch, -1, -1) for law in (p, q))
    return _CholeskyDivergence.apply(*means, *factors)  # type: ignore[no-any-return]


class _CholeskyDivergence(torch.autograd.Function):
    r"""With $M = L_q^{-1}L_p$ and $v = L_q^{-1}(\mu_p - \mu_q)$ the divergence is
    $\log|L_q| - \log|L_p| + \frac12(\|M\|^2 + \|v\|^2 - d)$; its gradients need only $L_q^{-\top}M$ and $L_q^{-\top}v$.
    """

    @staticmethod
    def forward(ctx: Any, mean_p: Tensor, mean_q: Tensor, factor_p: Tensor, factor_q: Tensor) -> Tensor:
        whitened = _whiten_pair(mean_p, mean_q, factor_p, factor_q)
        ctx.save_for_backward(mean_p, mean_q, factor_p, factor_q, whitened)
        logdets = (_factor_diagonal(factor_q).log() - _factor_diagonal(factor_p).log()).sum(-1)
        length = torch.linalg.vector_norm(whitened, dim=(-2, -1))  # square().sum() would make a large copy
        return logdets + (length.square() - mean_p.shape[-1]) / 2

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        mean_p, mean_q, factor_p, factor_q, whitened = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: then this must depend on the inputs visibly
            factor_p = factor_p.tril()  # and not on what stands above the diagonal, where no solve with q looks
            whitened = _whiten_pair(mean_p, mean_q, factor_p, factor_q)
        grad = grad_outputs[0][..., None]
        back = torch.linalg.solve_triangular(factor_q.mT, whitened * grad[..., None], upper=True)
        # In place, because for large batches it is the copies that take the time.
        to_p, to_q = back[..., :-1].tril(), (back @ whitened.mT).tril_().neg_()
        _factor_diagonal(to_p).sub_(grad / _factor_diagonal(factor_p))
        _factor_diagonal(to_q).add_(grad / _factor_diagonal(factor_q))
        return back[..., -1], -back[..., -1], to_p, to_q


def _whiten_pair(mean_p: Tensor, mean_q: Tensor, factor_p: Tensor, factor_q: Tensor) -> Tensor:
    """M and v side by side: (..., features, features + 1)."""
    columns = torch.cat([factor_p.mT, (mean_p - mean_q)[..., None, :]], -2).mT  # column-major, as the solver likes it
    return torch.linalg.solve_triangular(factor_q, columns, upper=False)


def _factor_diagonal(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1)
