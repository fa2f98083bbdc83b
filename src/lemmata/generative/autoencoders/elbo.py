r"""The evidence lower bound: its two terms, exact where they can be, and the tighter bound of many samples."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.information.discrete import kl_divergence
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian
from lemmata.marks import system

__all__ = [
    "ELBO", "discrete_elbo", "importance_weighted_bound", "linear_gaussian_elbo", "linear_gaussian_gap",
    "reparameterize", "standard_normal_kl",
]  # fmt: skip


class ELBO(NamedTuple):
    r"""Both terms of the bound, one number for each example.

    >>> ELBO(torch.tensor([-3.0]), torch.tensor([0.5])).value
    tensor([-3.5000])
    """

    reconstruction: Tensor
    r"""$\mathbb E_q[\log p(x|z)]$, summed over all values of an example."""
    kl: Tensor
    r"""$D_{KL}(q(z|x)\|p(z))$, summed over all latents."""

    @property
    def value(self) -> Tensor:
        r"""The bound: $\mathbb E_q[\log p(x|z)] - D_{KL}(q(z|x)\|p(z)) \le \log p(x)$."""
        return self.reconstruction - self.kl


# --- Gaussian posteriors: a mean, and standard deviations or a triangular factor ---


@system("reparameterize", title="Reparameterisation trick", kind="function")
def reparameterize(mean: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    r"""A draw of $\mathcal N(\mu, \Sigma)$ as a differentiable function of $\mu$ and of a square root of $\Sigma$.

    $$ z = \mu + L\epsilon, \qquad \epsilon\sim\mathcal N(0, I), \qquad LL^\top = \Sigma $$

    Any square root serves. One with an axis less is a diagonal: standard deviations.

    Shapes:
        mean: (..., latents), scale: (..., latents) or (..., latents, latents), noise: (samples, ..., latents)
        returns: (samples, ..., latents)

    Claims: vae.reparam, vae.gradient_mean, vae.gradient_cov
    Source: Kingma and Welling 2014; Rezende, Mohamed and Wierstra 2014.

    >>> reparameterize(torch.ones(2), torch.tensor([0.5, 2.0]), torch.tensor([[1.0, -1.0], [0.0, 0.0]]))
    tensor([[ 1.5000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    if _is_factor(mean, scale):
        return mean + torch.einsum("...ij, ...j -> ...i", scale, noise)
    return mean + scale * noise


@system("standard_normal_kl", title="Divergence from the standard normal", kind="function")
def standard_normal_kl(mean: Tensor, scale: Tensor) -> Tensor:
    r"""How far a Gaussian is from $\mathcal N(0, I)$, in nats, summed over the latents.

    $$ D_{KL}(\mathcal N(\mu,\Sigma)\|\mathcal N(0,I)) = \tfrac12(\|\mu\|^2 + \mathrm{tr}\,\Sigma - \log|\Sigma| - m),
       \qquad \Sigma = LL^\top $$

    Shapes:
        mean: (..., latents), scale: standard deviations (..., latents), or a triangular $L$ (..., latents, latents);
        their leading axes broadcast    returns: (...)

    Claims: vae.kl_gaussian
    Differs: `gaussian_kl` has two Gaussians of any kind; this has no checks of values, for the inside of a model.

    >>> standard_normal_kl(torch.tensor([1.0, 0.0]), torch.ones(2))
    tensor(0.5000)
    """
    full = _is_factor(mean, scale)
    own = scale.diagonal(dim1=-2, dim2=-1) if full else scale  # (..., latents)
    spread = scale.square().sum(-1) if full else scale.square()  # (..., latents), of trace Σ
    return ((mean.square() + spread - 1) / 2 - own.abs().log()).sum(-1)


def _is_factor(mean: Tensor, scale: Tensor) -> bool:
    latents = mean.shape[-1] if mean.ndim else 0
    if scale.ndim == mean.ndim + 1 and scale.shape[-2:] == (latents, latents):
        return True
    if scale.ndim != mean.ndim or not mean.ndim or scale.shape[-1] != latents:
        wanted = f"(..., {latents}) or (..., {latents}, {latents})"
        raise ValueError(f"scale must be {wanted} to fit mean, got shape {tuple(scale.shape)}")
    return False


# --- The bound where it is exact ---


@system("discrete_elbo", title="ELBO of a discrete latent", kind="function")
def discrete_elbo(
    log_likelihood: Float[Tensor, "... states"], prior: Float[Tensor, "... states"], q: Float[Tensor, "... states"]
) -> ELBO:
    r"""The bound for a latent with finitely many states, such as the component of a mixture, by enumeration.

    $$ \mathcal L(q) = \sum_k q_k \log p(x|k) - \sum_k q_k \log\frac{q_k}{p_k} $$

    States that q leaves out count nothing. A latent on the line is covered by a fine grid: prior and q are then
    densities times its step.

    Shapes:
        log_likelihood, prior, q: (..., states), which broadcast    returns: two terms (...)

    Claims: vae.elbo, vae.elbo_gap
    Source: Neal and Hinton 1998.

    >>> half = torch.tensor([0.5, 0.5])
    >>> discrete_elbo(torch.tensor([0.1, 0.3]).log(), half, torch.tensor([0.25, 0.75])).value.exp()
    tensor(0.2000)
    """
    validate.last_axis("q", q, validate.tensor("log_likelihood", log_likelihood).shape[-1], "state")
    known = torch.where(q > 0, log_likelihood, 0.0)  # 0 times minus infinity is nothing
    return ELBO((q * known).sum(-1), kl_divergence(q, prior))


@system("linear_gaussian_elbo", title="ELBO of a linear model", kind="function")
def linear_gaussian_elbo(
    x: Float[Tensor, "... features"],
    mean: Float[Tensor, "... latents"],
    scale: Tensor,
    weight: Float[Tensor, "features latents"],
    bias: Float[Tensor, " features"],
    variance: float | Tensor,
) -> ELBO:
    r"""The bound of factor analysis for any Gaussian q, in closed form: nothing is sampled.

    $$ \mathbb E_q[\log p(x|z)] = \log\mathcal N(x; W\mu + b, V) - \tfrac12\mathrm{tr}(V^{-1}WLL^\top W^\top) $$

    Shapes:
        x: (..., features), mean: (..., latents), scale: standard deviations (..., latents) or a triangular factor
        (..., latents, latents), whose leading axes broadcast, variance: a number or (features,)
        returns: two terms (...)

    Claims: vae.elbo, vae.elbo_gap, vae.gaussian_encoder
    Source: Lucas, Tucker, Grosse and Norouzi 2019.

    >>> x, weight = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0], [0.0]])
    >>> best = torch.tensor([[1.0]]), torch.tensor([[0.5]]).sqrt()
    >>> linear_gaussian_elbo(x, *best, weight, torch.zeros(2), 1.0).value  # of N(0, diag(2, 1)): the bound is attained
    tensor([-3.1845])
    """
    validate.last_axis("x", x, len(weight))
    validate.last_axis("mean", mean, weight.shape[1], "latent")
    v = torch.as_tensor(variance, dtype=x.dtype, device=x.device).expand(len(weight))  # (features,)
    full = _is_factor(mean, scale)
    spread = (weight @ scale).square().sum(-1) if full else scale.square() @ weight.square().mT  # (..., features)
    away = (x - mean @ weight.mT - bias).square() + spread
    reconstruction = -(away / v + (2 * math.pi * v).log()).sum(-1) / 2
    return ELBO(reconstruction, standard_normal_kl(mean, scale))


@system("linear_gaussian_gap", title="Gap of the ELBO of a linear model", kind="function")
def linear_gaussian_gap(
    x: Float[Tensor, "... features"],
    mean: Float[Tensor, "... latents"],
    scale: Tensor,
    weight: Float[Tensor, "features latents"],
    bias: Float[Tensor, " features"],
    variance: float | Tensor,
) -> Tensor:
    r"""What the bound misses of the evidence, which for a linear model is known: never negative but for rounding.

    $$ \log p(x) - \mathcal L(q)(x) = D_{KL}(q(z|x)\|p(z|x)), \qquad p(x) = \mathcal N(x; b, WW^\top + V) $$

    Shapes:
        as `linear_gaussian_elbo`    returns: (...)

    Claims: vae.elbo_gap, vae.gaussian_encoder

    >>> x, weight = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0], [0.0]])
    >>> linear_gaussian_gap(x, torch.tensor([[1.0]]), torch.tensor([[1.0]]), weight, torch.zeros(2), 1.0)
    tensor([0.1534])
    """
    v = torch.as_tensor(variance, dtype=x.dtype, device=x.device).expand(len(weight))
    evidence = LowRankGaussian(bias, weight, v.contiguous()).log_density(x)
    return evidence - linear_gaussian_elbo(x, mean, scale, weight, bias, variance).value


# --- Many samples ---


@system("importance_weighted_bound", title="Importance-weighted bound", kind="function")
def importance_weighted_bound(log_weights: Tensor, dim: int = 0) -> Tensor:
    r"""A bound on the evidence from k draws of q, which rises with k towards the evidence itself (IWAE).

    $$ \log\frac1k\sum_{i=1}^k w_i \le \log p(x) \text{ in expectation}, \qquad w_i = \frac{p(x, z_i)}{q(z_i|x)} $$

    With k = 1 it is a sample of the ELBO. `dim` is the axis of the draws, never that of the examples.

    Shapes:
        log_weights: (samples, ...)    returns: (...)

    Claims: vae.marginal, vae.system
    Source: Burda, Grosse and Salakhutdinov 2016.

    >>> importance_weighted_bound(torch.tensor([[1.0, 0.0], [3.0, 0.0]]).log())
    tensor([0.6931,   -inf])
    """
    validate.tensor("log_weights", log_weights)
    if not log_weights.ndim or not log_weights.shape[dim]:
        raise ValueError(f"log_weights must hold at least one draw along axis {dim}, got {tuple(log_weights.shape)}")
    return log_weights.logsumexp(dim) - math.log(log_weights.shape[dim])
