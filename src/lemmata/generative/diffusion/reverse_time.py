r"""The diffusion as a stochastic differential equation, forwards and backwards, in steps of Euler and Maruyama."""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.diffusion.noise_schedule import LinearSchedule, NoiseSchedule  # noqa: F401 - in the example
from lemmata.marks import system

__all__ = ["descending_times", "forward_sde", "reverse_sde"]

Score = Callable[[Tensor, Tensor], Tensor]  # score(x, time), one time for each of x


def descending_times(
    schedule: NoiseSchedule, steps: int, noisiest: float = -9.0, cleanest: float = 9.0
) -> Float[Tensor, " times"]:
    r"""Times for so many steps from noise to data, at which the log signal-to-noise ratio rises by equal amounts.

    $$ \lambda(u_k) = \lambda_{\min} + \frac kN (\lambda_{\max} - \lambda_{\min}), \qquad
       \lambda(u) = \log\frac{\bar\alpha(u)}{1 - \bar\alpha(u)} $$

    Both ends stay inside (0, 1), where no rate is infinite; a schedule that does not reach so far is taken to its end.

    Shapes:
        returns: (steps + 1,) float64, falling

    >>> times = descending_times(LinearSchedule(), 4)
    >>> [round(float(LinearSchedule().log_snr(time)), 3) for time in (times[0], times[1], times[-1])]
    [-9.0, -4.5, 9.0]
    """
    validate.count("steps", steps)
    edges = torch.tensor([1.0, 1e-6], dtype=torch.float64)
    reached = schedule.log_snr(edges).tolist()
    if not noisiest < cleanest:
        raise ValueError(f"cleanest must be above noisiest, got {cleanest:g} and {noisiest:g}")
    wanted = torch.linspace(max(noisiest, reached[0]), min(cleanest, reached[1]), steps + 1, dtype=torch.float64)
    low, high = torch.zeros_like(wanted), torch.ones_like(wanted)
    for _ in range(60):  # halve the interval until its ends are neighbours
        middle = (low + high) / 2
        noisier = schedule.log_snr(middle) < wanted
        low, high = torch.where(noisier, low, middle), torch.where(noisier, middle, high)
    return (low + high) / 2


@system("forward_sde", title="Forward diffusion by Euler-Maruyama", kind="function")
def forward_sde(
    x: Float[Tensor, "batch ..."],
    schedule: NoiseSchedule,
    times: Float[Tensor, " times"],
    *,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch ..."]:
    r"""Noise, in small steps along rising times: the variance-preserving diffusion.

    $$ dx_t = -\tfrac12\beta_t x_t\,dt + \sqrt{\beta_t}\,dw_t, \qquad
       x' = x - \tfrac12 B x + \sqrt B\,\epsilon, \qquad B = \int_t^{t'}\beta $$

    For a look at paths: one draw of the noise at any time is had at once in closed form.

    Shapes:
        x: (batch, ...), times: (times,) from 0 to 1, rising    returns: as x, at the last time

    Claims: diffusion.sde_forward
    Source: Song et al., Score-based generative modeling through stochastic differential equations (2021).
    Differs: $\beta$ is integrated over each step instead of taken at its beginning.

    >>> forward_sde(torch.randn(5, 2), LinearSchedule(), torch.linspace(0, 1, 200).double()).shape
    torch.Size([5, 2])
    """
    for clock in clock_steps(schedule, times, rising=True):
        x = x - clock / 2 * x + math.sqrt(clock) * noise_like(x, generator)
    return x


@system("reverse_sde", title="Reverse diffusion by Euler-Maruyama", kind="function")
def reverse_sde(
    score: Score,
    x: Float[Tensor, "batch ..."],
    schedule: NoiseSchedule,
    times: Float[Tensor, " times"],
    *,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch ..."]:
    r"""From noise to data, in small steps along falling times: the diffusion run backwards, with fresh noise.

    $$ x_{t-\Delta} = x_t + \big[\tfrac12 x_t + \nabla\log q_t(x_t)\big] B + \sqrt B\,\epsilon, \qquad
       B = \int_{t-\Delta}^t \beta $$

    `score(x, time)` is $\nabla\log q_t$ at one time for each example: exact where the data are known, else a model's,
    such as `DDPM.score`. Start from standard normal x at a time where hardly any signal is left.

    Shapes:
        x: (batch, ...), times: (times,) from 1 to 0, falling    returns: as x, at the last time

    Claims: diffusion.sde_reverse
    Source: Anderson, Reverse-time diffusion equation models (1982); Song et al. 2021.
    Differs: $\beta$ is integrated over each step instead of taken at its beginning.

    >>> schedule = LinearSchedule()
    >>> normal = lambda x, time: -x
    >>> reverse_sde(normal, torch.randn(5, 2), schedule, descending_times(schedule, 100)).shape
    torch.Size([5, 2])
    """
    for now, clock in zip(times, clock_steps(schedule, times, rising=False), strict=False):
        slope = x / 2 + score(x, now.to(x).expand(len(x)))
        x = x + clock * slope + math.sqrt(clock) * noise_like(x, generator)
    return x


def clock_steps(schedule: NoiseSchedule, times: Tensor, rising: bool) -> list[float]:
    """The integral of the rate over each step, above zero: what the clock of the noise says between two times."""
    clock = -schedule.log_signal(validate.vector("times", times).detach().double().cpu())
    steps = [after - before if rising else before - after for before, after in pairwise(clock.tolist())]
    if not all(0 <= step < math.inf for step in steps) or not steps:
        way = "rise from 0 to 1" if rising else "fall from 1 to 0"
        raise ValueError(f"times must {way} and stop where the rate is infinite, got {times.tolist()}"[:200])
    return steps


def noise_like(x: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal numbers as x, from its own kind of device if the generator lives elsewhere."""
    device = x.device if generator is None else generator.device
    return torch.randn(x.shape, generator=generator, dtype=x.dtype, device=device).to(x.device)
