r"""Ancestral sampling: the reverse chain of a diffusion model, one normal law after the other."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.diffusion.forward_process import Kernel, beside, checked_times, posterior, rate_between
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps
from lemmata.generative.diffusion.sampling_times import walked_times
from lemmata.generative.diffusion.targets import estimate
from lemmata.marks import system

__all__ = ["VARIANCES", "ancestral_sampling", "reverse_kernel"]

VARIANCES = ("small", "large", "learned")
Denoiser = Callable[[Tensor, Tensor], Tensor]


@system("reverse_kernel", title="Reverse kernel of a diffusion model", kind="function")
def reverse_kernel(
    model: Denoiser,
    x: Float[Tensor, "batch ..."],
    t: int,
    steps: DiffusionSteps,
    to: int | None = None,
    *,
    target: str = "noise",
    variance: str = "small",
    bounds: tuple[float, float] | None = None,
) -> Kernel:
    r"""The law of the state at an earlier time that a denoiser makes of a state: of time t - 1, or of `to`.

    $$ p_\theta(x_s\mid x_t)=\mathcal N\big(m(x_t,\hat x_0(x_t,t),t),\sigma_t^2I\big),\qquad
       \sigma_t^2\in\Big[\frac{1-\bar\alpha_s}{1-\bar\alpha_t}\beta_{t|s},\ \beta_{t|s}\Big] $$

    the posterior of the forward process with the data that the denoiser estimates, `model(x, t)`, t as `batch` integers
    from 1 to T. `variance` "small" and "large" are the ends of that interval. With "learned", the model gives twice the
    channels, and the second half, from -1 to 1, says where between the ends the variance's logarithm is.

    Shapes:
        x: (batch, ...)    returns: mean (batch, ...), variance broadcasting against it

    Claims: ddpm.reverse_model, ddpm.sigma_choice, ddpm.mean_eps, diffusion.chain
    Source: Ho et al. 2020; Nichol and Dhariwal 2021 (learned variance).

    >>> steps = DiffusionSteps.from_rates([0.5, 0.5])
    >>> reverse_kernel(lambda x, t: torch.zeros_like(x), torch.ones(1, 1), 2, steps, variance="large")
    Kernel(mean=tensor([[1.4142]]), variance=tensor(0.5000, dtype=torch.float64))
    """
    validate.one_of("variance", variance, VARIANCES)
    checked_times("t", t, steps, least=1)
    to = t - 1 if to is None else validate.count("to", to, least=0, most=t - 1)
    answer, place = model(x, torch.full((len(x),), t, device=x.device)), None
    if variance == "learned":
        if answer.shape[1] != 2 * x.shape[1]:
            raise ValueError(f"model must give {2 * x.shape[1]} channels for a learned variance, got {answer.shape[1]}")
        answer, place = answer.chunk(2, dim=1)
    data = estimate(answer, x, t, steps, target, bounds).data
    mean, smallest = posterior(x, data, t, steps, to)
    if variance == "small":
        return Kernel(mean, smallest)
    largest = beside(rate_between(to, t, steps), x)
    if place is None:
        return Kernel(mean, largest)
    if to == 0:  # data are the mean: there is no interval to be in
        return Kernel(mean, torch.zeros_like(mean))
    return Kernel(mean, smallest * (largest / smallest) ** ((place + 1) / 2))


@system("ancestral_sampling", title="Ancestral sampling of a diffusion model", kind="function")
@torch.no_grad()
def ancestral_sampling(
    model: Denoiser,
    x: Float[Tensor, "batch ..."],
    steps: DiffusionSteps,
    times: Sequence[int] | None = None,
    *,
    target: str = "noise",
    variance: str = "small",
    bounds: tuple[float, float] | None = None,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch ..."]:
    r"""From noise to data: every state is drawn from its law given the one before, the data are a mean.

    $$ x_{t-1}=\frac1{\sqrt{\alpha_t}}\Big(x_t-\frac{1-\alpha_t}{\sqrt{1-\bar\alpha_t}}\,\epsilon_\theta(x_t,t)\Big)
       +\sigma_tz,\qquad z\sim\mathcal N(0,I)\ \text{if}\ t>1\ \text{else}\ 0 $$

    `x` is the state at the first of `times`, noise from $\mathcal N(0,I)$ at T. Without a list all times are visited,
    T to 0; with one, exactly these, and each step is that of the kernel between its two times. Other arguments are
    those of `reverse_kernel`.

    Shapes:
        x: (batch, ...)    returns: (batch, ...), at the last of the times

    Claims: ddpm.sampling
    Source: Ho et al. 2020.  Differs: a list that ends above 0 gives a state that is still noisy.

    >>> from lemmata.generative.diffusion.noise_schedule import LinearSchedule
    >>> steps, x = LinearSchedule().steps(100), torch.randn(3, 2)
    >>> ancestral_sampling(lambda x, t: x, x, steps, times=[100, 50, 25, 0]).shape
    torch.Size([3, 2])
    """
    validate.floating("x", x)
    walk = walked_times(times, len(steps))
    for t, to in pairwise(walk):
        mean, spread = reverse_kernel(model, x, t, steps, to, target=target, variance=variance, bounds=bounds)
        if to == 0:
            x = mean
            break
        z = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        x = mean + spread.sqrt() * z
    return finite_samples(x)


def finite_samples(x: Tensor) -> Tensor:
    """Samples as they are; ValueError where a network that diverged, or too small a dtype, made them no numbers."""
    if not bool(x.isfinite().all()):
        raise ValueError("model must answer with finite numbers, but samples are not: use float32, or check its fit")
    return x
