r"""DDIM: sampling in few steps, by a chain that shares the marginals of the diffusion but not its steps."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.diffusion.ancestral import Denoiser, finite_samples
from lemmata.generative.diffusion.forward_process import rate_between
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps
from lemmata.generative.diffusion.sampling_times import walked_times
from lemmata.generative.diffusion.targets import Estimate, estimate
from lemmata.marks import system

__all__ = ["ddim_inversion", "ddim_sampling"]


@system("ddim_sampling", title="DDIM sampling", kind="function")
@torch.no_grad()
def ddim_sampling(
    model: Denoiser,
    x: Float[Tensor, "batch ..."],
    steps: DiffusionSteps,
    times: Sequence[int] | None = None,
    *,
    eta: float = 0.0,
    target: str = "noise",
    bounds: tuple[float, float] | None = None,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch ..."]:
    r"""From noise to data along a list of times, with as much fresh noise as `eta` says: none at 0.

    $$ x_s=\sqrt{\bar\alpha_s}\,\hat x_0+\sqrt{1-\bar\alpha_s-\sigma^2}\,\hat\epsilon+\sigma z,\qquad
       \sigma^2=\eta^2\,\frac{1-\bar\alpha_s}{1-\bar\alpha_t}\Big(1-\frac{\bar\alpha_t}{\bar\alpha_s}\Big) $$

    `x` is the state at the first of `times`, which fall at every step and are walked as given; without them all times
    are visited. `model(x, t)` answers with the `target`, t as `batch` integers from 1 to T. With eta = 1 this is
    ancestral sampling with the small variance.

    Shapes:
        x: (batch, ...)    returns: (batch, ...), at the last of the times

    Source: Song, Meng and Ermon 2021.

    >>> from lemmata.generative.diffusion.noise_schedule import LinearSchedule
    >>> from lemmata.generative.diffusion.sampling_times import spaced_times
    >>> steps, x = LinearSchedule().steps(1000), torch.randn(3, 2)
    >>> ddim_sampling(lambda x, t: x, x, steps, spaced_times(1000, 20)).shape
    torch.Size([3, 2])
    """
    validate.floating("x", x)
    validate.fraction("eta", eta, most=1)
    walk = walked_times(times, len(steps))
    for t, to in pairwise(walk):
        found = _ask_model(model, x, t, steps, target, bounds)
        signal, noise = steps.signal[to], steps.noise[to]
        fresh = eta**2 * noise / steps.noise[t] * rate_between(to, t, steps)
        x = signal.sqrt() * found.data + (noise - fresh).sqrt() * found.noise
        if eta and to:
            x = x + fresh.sqrt() * torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
    return finite_samples(x)


@system("ddim_inversion", title="DDIM inversion", kind="function")
@torch.no_grad()
def ddim_inversion(
    model: Denoiser,
    x: Float[Tensor, "batch ..."],
    steps: DiffusionSteps,
    times: Sequence[int] | None = None,
    *,
    rounds: int = 1,
    target: str = "noise",
) -> Float[Tensor, "batch ..."]:
    r"""From data to the noise that DDIM without fresh noise makes these data of, along the same list of times.

    $$ x_t=\sqrt{\bar\alpha_t}\,\frac{x_s-\sqrt{1-\bar\alpha_s}\,\epsilon(x_t,t)}{\sqrt{\bar\alpha_s}}
       +\sqrt{1-\bar\alpha_t}\,\epsilon(x_t,t) $$

    Each step solves this equation for $x_t$ by so many `rounds` of inserting the last guess, at first $x_s$. One round
    is the usual inversion, wrong by the square of a step; with more the way back leads to the same data.

    Shapes:
        x: (batch, ...), at the last of the times    returns: (batch, ...), at the first of them

    Source: Song, Meng and Ermon 2021; Pan et al. 2023 (rounds).

    >>> from lemmata.generative.diffusion.noise_schedule import LinearSchedule
    >>> steps, x = LinearSchedule().steps(50), torch.tensor([[0.3]])
    >>> back = ddim_sampling(lambda x, t: x / 2, ddim_inversion(lambda x, t: x / 2, x, steps, rounds=20), steps)
    >>> torch.testing.assert_close(back, x)
    """
    validate.floating("x", x)
    validate.count("rounds", rounds)
    walk = walked_times(times, len(steps))[::-1]
    for s, t in pairwise(walk):
        guess = x
        for _ in range(rounds):
            noise = _ask_model(model, guess, t, steps, target).noise
            data = (x - steps.noise[s].sqrt() * noise) / steps.signal[s].sqrt()
            guess = steps.signal[t].sqrt() * data + steps.noise[t].sqrt() * noise
        x = guess
    return finite_samples(x)


def _ask_model(
    model: Denoiser,
    x: Tensor,
    t: int,
    steps: DiffusionSteps,
    target: str,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """What a denoiser finds in the states of one time."""
    return estimate(model(x, torch.full((len(x),), t, device=x.device)), x, t, steps, target, bounds)
