r"""What a denoiser may be asked for, noise, data or velocity, and how each gives the others."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.diffusion.forward_process import Times, beside, checked_times, look_up
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps
from lemmata.marks import system

__all__ = ["TARGETS", "Estimate", "estimate", "training_target"]

TARGETS = ("noise", "data", "velocity")


class Estimate(NamedTuple):
    """What a state is taken to consist of: data and noise, which make up the state again."""

    data: Tensor
    noise: Tensor


@system("denoising_target", title="Target of a denoiser", kind="function")
def training_target(
    x0: Float[Tensor, "batch ..."],
    noise: Float[Tensor, "batch ..."],
    t: Times,
    steps: DiffusionSteps,
    target: str = "noise",
) -> Float[Tensor, "batch ..."]:
    r"""What a denoiser of this target should say of `diffuse(x0, t, noise, steps)`.

    $$ \epsilon,\qquad x_0,\qquad v=\sqrt{\bar\alpha_t}\,\epsilon-\sqrt{1-\bar\alpha_t}\,x_0 $$

    Noise is hard to tell where there is little of it, data where there is little left; velocity is neither.

    Shapes:
        x0, noise: (batch, ...), t: (batch,) of integers, or one for all    returns: (batch, ...)

    Source: Ho et al. 2020; Salimans and Ho 2022 (velocity).

    >>> import torch
    >>> steps = DiffusionSteps.from_rates([0.36, 0.5])
    >>> training_target(torch.ones(1, 1), torch.ones(1, 1), 1, steps, "velocity")
    tensor([[0.2000]])
    """
    if validate.one_of("target", target, TARGETS) != "velocity":
        return noise if target == "noise" else x0
    signal, spread = _signal_and_noise(t, steps, x0)
    return signal * noise - spread * x0


@system("denoising_estimate", title="Data and noise from a denoiser's answer", kind="function")
def estimate(
    answer: Float[Tensor, "batch ..."],
    x_t: Float[Tensor, "batch ..."],
    t: Times,
    steps: DiffusionSteps,
    target: str = "noise",
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    r"""The data and the noise that a denoiser finds in a state, whichever of them it was asked for.

    $$ x_0=\frac{x_t-\sqrt{1-\bar\alpha_t}\,\epsilon}{\sqrt{\bar\alpha_t}},\qquad
       \epsilon=\frac{x_t-\sqrt{\bar\alpha_t}\,x_0}{\sqrt{1-\bar\alpha_t}},\qquad
       \begin{aligned}x_0&=\sqrt{\bar\alpha_t}\,x_t-\sqrt{1-\bar\alpha_t}\,v\\
       \epsilon&=\sqrt{1-\bar\alpha_t}\,x_t+\sqrt{\bar\alpha_t}\,v\end{aligned} $$

    `bounds` are those of the data, such as (-1, 1): an estimate beyond them is clipped, and the noise follows it.

    Shapes:
        answer, x_t: (batch, ...), t: (batch,) of integers from 1, or one for all    returns: two of (batch, ...)

    Claims: ddpm.x0_from_xt, ddpm.mean_eps
    Source: Ho et al. 2020; Salimans and Ho 2022 (velocity).

    >>> import torch
    >>> steps = DiffusionSteps.from_rates([0.36, 0.5])
    >>> estimate(torch.ones(1, 1), torch.tensor([[1.4]]), 1, steps)
    Estimate(data=tensor([[1.0000]]), noise=tensor([[1.]]))
    """
    validate.one_of("target", target, TARGETS)
    if answer.shape != x_t.shape:
        raise ValueError(f"answer must have the shape of x_t, {tuple(x_t.shape)}, got {tuple(answer.shape)}")
    signal, spread = _signal_and_noise(checked_times("t", t, steps, least=1), steps, x_t)
    if target == "velocity":
        found = Estimate(signal * x_t - spread * answer, spread * x_t + signal * answer)
    elif target == "data":
        found = Estimate(answer, (x_t - signal * answer) / spread)
    else:
        found = Estimate((x_t - spread * answer) / signal, answer)
    if bounds is None:
        return found
    data = found.data.clamp(*bounds)
    return Estimate(data, (x_t - signal * data) / spread)


def _signal_and_noise(t: Times, steps: DiffusionSteps, like: Tensor) -> tuple[Tensor, Tensor]:
    """The roots of signal and noise at these times."""
    return beside(look_up(steps.signal, t).sqrt(), like), beside(look_up(steps.noise, t).sqrt(), like)
