r"""The evidence lower bound of a diffusion model: a sum of divergences, one for each step of the chain."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.diffusion.ancestral import VARIANCES, Denoiser, reverse_kernel
from lemmata.generative.diffusion.forward_process import diffuse, posterior
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps
from lemmata.marks import system

__all__ = ["DiffusionBound", "diffusion_elbo", "noise_error_weights"]


class DiffusionBound(NamedTuple):
    """The terms of the bound in nats, one of each for every example; the bound is `elbo`."""

    reconstruction: Float[Tensor, " batch"]
    """Log-likelihood of the data given the least noisy state."""
    denoising: Float[Tensor, "batch steps"]
    """Divergences of the steps from time t to t - 1, for t = 2, ..., T."""
    prior: Float[Tensor, " batch"]
    """Divergence of the noisiest state from pure noise."""

    @property
    def elbo(self) -> Float[Tensor, " batch"]:
        """The lower bound of the log-likelihood of each example."""
        return self.reconstruction - self.denoising.sum(1) - self.prior

    def bits_per_dimension(self, dimensions: int) -> Float[Tensor, " batch"]:
        """The bound as a length of code: negative, in bits, for each of so many numbers in an example."""
        return -self.elbo / (validate.count("dimensions", dimensions) * math.log(2))


@system("diffusion_elbo", title="Evidence lower bound of a diffusion model", kind="function")
def diffusion_elbo(
    model: Denoiser,
    x0: Float[Tensor, "batch ..."],
    steps: DiffusionSteps,
    *,
    target: str = "noise",
    variance: str = "small",
    bounds: tuple[float, float] | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
) -> DiffusionBound:
    r"""All terms of the bound of each example, every time asked once, with one draw of its noise.

    $$ \ln p_\theta(x_0)\ge\mathbb E_q\big[\ln p_\theta(x_0|x_1)\big]
       -\sum_{t=2}^T\mathbb E_q D_{KL}\big(q(x_{t-1}|x_t,x_0)\,\|\,p_\theta(x_{t-1}|x_t)\big)
       -D_{KL}\big(q(x_T|x_0)\,\|\,\mathcal N(0,I)\big) $$

    Divergences are exact for the state that is drawn; the mean over several calls is the bound. The law of the data
    given $x_1$ has the variance $\beta_1$ (that of a learned variance is not asked, it would be an interval of length
    0). Data are continuous, or with `levels`, such as 256, pixels of so many grey values spread evenly from -1 to 1,
    whose probability is the mass of the normal law nearest to them.

    Shapes:
        x0: (batch, ...)    returns: DiffusionBound, of (batch,), (batch, T - 1) and (batch,)

    Claims: ddpm.elbo, ddpm.simplified_kl
    Source: Sohl-Dickstein et al. 2015; Ho et al. 2020.

    >>> from lemmata.generative.diffusion.noise_schedule import LinearSchedule
    >>> found = diffusion_elbo(lambda x, t: x, torch.randn(4, 2), LinearSchedule().steps(10))
    >>> found.elbo.shape, found.denoising.shape
    (torch.Size([4]), torch.Size([4, 9]))
    """
    validate.one_of("variance", variance, VARIANCES)
    validate.floating("x0", x0)
    if levels is not None:
        validate.count("levels", levels, least=2)
    divergences, reconstruction = [], x0.new_zeros(len(x0))
    for t in range(1, len(steps) + 1):
        noise = torch.randn(x0.shape, generator=generator, dtype=x0.dtype, device=x0.device)
        x_t = diffuse(x0, t, noise, steps)
        found = reverse_kernel(model, x_t, t, steps, target=target, variance=variance, bounds=bounds)
        if t == 1:
            reconstruction = _log_likelihood(x0, found.mean, float(steps.noise_rates[1]), levels)
        else:
            wanted = posterior(x_t, x0, t, steps)
            ratio = wanted.variance / found.variance
            each = ((wanted.mean - found.mean).square() / found.variance + ratio - 1 - ratio.log()) / 2
            divergences.append(each.flatten(1).sum(1))
    signal = float(steps.signal[-1])  # ln(1 - signal) by log1p: so little is left that it would be lost beside 1
    apart = (signal * (x0.square() - 1) - math.log1p(-signal)) / 2
    denoising = torch.stack(divergences, dim=1) if divergences else x0.new_zeros(len(x0), 0)
    return DiffusionBound(reconstruction, denoising, apart.flatten(1).sum(1))


@system("noise_error_weights", title="Weights of the noise error in the bound", kind="function")
def noise_error_weights(steps: DiffusionSteps, variance: str = "small") -> Float[Tensor, "times"]:
    r"""The weight of the squared error of the noise in each divergence of the bound, indexed by the time t.

    $$ \rho_t=\frac{\beta_t^2}{2\sigma_t^2\,\alpha_t(1-\bar\alpha_t)} $$

    `variance` "small" or "large" says $\sigma_t^2$. There is no divergence at t = 0, nor at t = 1, where the bound has
    a likelihood: both are 0. A loss without weights has 1 everywhere instead.

    Shapes:
        returns: (T + 1,)

    Claims: ddpm.eps_weight
    Source: Ho et al. 2020.

    >>> noise_error_weights(DiffusionSteps.from_rates([0.5, 0.5, 0.5]), "large").tolist()  # doctest: +ELLIPSIS
    [0.0, 0.0, 0.666..., 0.571...]
    """
    validate.one_of("variance", variance, VARIANCES[:2])
    sigma2 = (steps.posterior_variance if variance == "small" else steps.noise_rates)[2:]
    weights = torch.zeros_like(steps.noise_rates)
    weights[2:] = steps.noise_rates[2:].square() / (2 * sigma2 * steps.kept[2:] * steps.noise[2:])
    return weights


def _log_likelihood(x0: Tensor, mean: Tensor, variance: float, levels: int | None) -> Tensor:
    """Of each example under a normal law of independent entries: its density, or the mass of its pixels' bins."""
    if levels is None:
        each = -((x0 - mean).square() / variance + math.log(2 * math.pi * variance)) / 2
        return each.flatten(1).sum(1)
    half, gap = 1 / (levels - 1), (x0 - mean).double()
    above, below = (gap + half) / variance**0.5, (gap - half) / variance**0.5
    above, below = above.where(x0 < 1 - half, math.inf), below.where(x0 > half - 1, -math.inf)
    # Of a bin in the upper tail the mass is that of its mirror image: two numbers near 1 have no difference left.
    mirrored = below > 0
    above, below = above.where(~mirrored, -below), below.where(~mirrored, -above)
    upper, lower = torch.special.log_ndtr(above), torch.special.log_ndtr(below)
    each = upper + torch.log1p(-torch.exp(lower - upper))
    return each.flatten(1).sum(1).to(x0)
