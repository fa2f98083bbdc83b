"""The divergence between batches of Gaussians, with its gradient, against torch.distributions.

Both begin with means and Cholesky factors and end with the gradients of the summed divergence with respect to all
four. Neither checks its arguments twice: torch.distributions is told not to validate them at all.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl

PAIRS, FEATURES = 1024, 64


class Pairs(NamedTuple):
    """Means and Cholesky factors of both laws of each pair."""

    mean_p: Tensor
    mean_q: Tensor
    factor_p: Tensor
    factor_q: Tensor


Answer = tuple[Tensor, tuple[Tensor, ...]]


@entry(
    "gaussian_kl",
    title="Divergence between Gaussians, with its gradient",
    measures="the divergence of every pair, and the gradients of their sum",
    cases={"pairs": "1,024 pairs in 64 dimensions, float32, full covariances by their Cholesky factors"},
    targets={"torch.distributions": 1.0},
)
def pairs_of_laws(case: str, device: str) -> Pairs:
    """Well-conditioned factors: a small lower triangle beside a diagonal near 1."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(2, PAIRS, FEATURES, generator=generator)
    factors = 0.1 * torch.randn(2, PAIRS, FEATURES, FEATURES, generator=generator).tril(-1)
    factors += torch.diag_embed(0.5 + torch.rand(2, PAIRS, FEATURES, generator=generator))
    return Pairs(*(part.to(device).requires_grad_() for part in (*means, *factors)))


@ours("lemmata")
def in_closed_form(pairs: Pairs) -> Callable[[], Answer]:
    """One triangular solve shared by the value and all four gradients."""

    def run() -> Answer:
        p = Gaussian.from_cholesky(pairs.mean_p, pairs.factor_p)
        found = gaussian_kl(p, Gaussian.from_cholesky(pairs.mean_q, pairs.factor_q))
        return found, torch.autograd.grad(found.sum(), pairs)

    return run


@peer("torch.distributions")
def by_distributions(pairs: Pairs) -> Callable[[], Answer]:
    """What one writes with torch alone."""

    def run() -> Answer:
        p = MultivariateNormal(pairs.mean_p, scale_tril=pairs.factor_p, validate_args=False)
        q = MultivariateNormal(pairs.mean_q, scale_tril=pairs.factor_q, validate_args=False)
        found = kl_divergence(p, q)
        return found, torch.autograd.grad(found.sum(), pairs)

    return run


@limit("two triangular solves, one for the value and one for the gradients")
def solves_alone(pairs: Pairs) -> Callable[[], None]:
    """No way around them: the value needs L_q^-1 L_p, the gradients its product with the transposed inverse."""
    p, q = pairs.factor_p.detach(), pairs.factor_q.detach()

    def solve() -> None:
        whitened = torch.linalg.solve_triangular(q, p, upper=False)
        torch.linalg.solve_triangular(q.mT, whitened, upper=True)

    return solve


@agreement(within=1e-3)
def in_numbers(answer: Answer) -> dict[str, float]:
    """The sum of the divergences, and the size of each gradient where the factors are triangular."""
    found, gradients = answer
    sizes = {f"gradient {k}": float((g.tril() if g.ndim == 3 else g).double().norm()) for k, g in enumerate(gradients)}
    return {"sum": float(found.detach().double().sum()), **sizes}
