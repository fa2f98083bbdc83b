r"""The probability flow: without noise, and with the same marginals; it turns data into noise, and back."""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.diffusion.noise_schedule import LinearSchedule, NoiseSchedule  # noqa: F401 - in the example
from lemmata.generative.diffusion.reverse_time import descending_times  # noqa: F401 - in the example
from lemmata.marks import system

__all__ = ["flow_log_prob", "probability_flow"]

Noise = Callable[[Tensor, Tensor], Tensor]  # noise(x, time): what of x is noise, one time for each of x


@system("probability_flow", title="Probability flow by Heun's method", kind="function")
def probability_flow(
    noise: Noise,
    x: Float[Tensor, "batch ..."],
    schedule: NoiseSchedule,
    times: Float[Tensor, " times"],
    finish: bool = False,
) -> Float[Tensor, "batch ..."]:
    r"""From noise to data along falling times, or from data to noise along rising ones, by steps of second order.

    $$ \frac{dx}{dt} = -\tfrac12\beta_t\big[x + \nabla\log q_t(x)\big] \quad\Longleftrightarrow\quad
       \frac{dx}{d\log\sigma} = s\,(\epsilon(x, t) - s x), \qquad s^2 = 1 - \bar\alpha_t,\quad
       \sigma^2 = \frac{1 - \bar\alpha_t}{\bar\alpha_t} $$

    `noise(x, time)` is $\mathbb E[\epsilon \mid x_t = x]$, such as `DDPM.noise`. On the scale of $\log\sigma$ the
    slope is small at both ends, nothing is divided by a small number, and standard normal data stay exactly where they
    are. With `finish`, what is noise at the last time is taken away at once.

    Shapes:
        x: (batch, ...), times: (times,) from 0 to 1, rising or falling    returns: as x

    Source: Song et al. 2021; Karras et al., Elucidating the design space of diffusion-based generative models (2022).

    >>> schedule = LinearSchedule()
    >>> normal = lambda x, time: (1 - schedule.signal(time))[:, None].sqrt() * x  # of data that are standard normal
    >>> times, x = descending_times(schedule, 20), torch.randn(5, 2).double()
    >>> torch.allclose(probability_flow(normal, x, schedule, times), x)
    True
    """
    noises, sigmas = _scales_at(schedule, times)
    slope = _slope_at(noise, x, times[0], noises[0])
    for k, (before, sigma) in enumerate(pairwise(sigmas), 1):
        step = math.log(sigma / before)
        there = _slope_at(noise, x + step * slope, times[k], noises[k])
        x = x + step / 2 * (slope + there)
        slope = _slope_at(noise, x, times[k], noises[k]) if k + 1 < len(sigmas) else there
    if finish:
        last = noises[-1]
        return (x - last * _noise_at(noise, x, times[-1])) / math.sqrt(1 - last**2)
    return x


@system("flow_log_prob", title="Log-density by the probability flow", kind="function")
def flow_log_prob(
    noise: Noise, x: Float[Tensor, "batch features"], schedule: NoiseSchedule, times: Float[Tensor, " times"]
) -> Float[Tensor, " batch"]:
    r"""The log-density of data under a diffusion model, by the change of volume on the way to noise; for few features.

    $$ \log p(x) = \log\mathcal N(x_{\max}; 0, I) + \int_{\sigma_{\min}}^{\sigma_{\max}}
       \operatorname{tr}\frac{\partial}{\partial x}\big[s\,(\epsilon(x, t) - s x)\big]\,d\log\sigma $$

    The trace is exact, one backward pass a feature. x is taken for data with the little noise of the first time.

    Shapes:
        x: (batch, features), times: (times,) from 0 to 1, rising    returns: (batch,)

    Source: Song et al. 2021.

    >>> schedule = LinearSchedule()
    >>> normal = lambda x, time: (1 - schedule.signal(time))[:, None].sqrt() * x
    >>> times = descending_times(schedule, 20).flip(0)
    >>> round(flow_log_prob(normal, torch.zeros(1, 2).double(), schedule, times).item() + math.log(2 * math.pi), 6)
    0.0
    """
    validate.matrix("x", x, "batch, features")
    noises, sigmas = _scales_at(schedule, times)
    volume = x.new_zeros(len(x))
    slope, trace = _slope_and_trace(noise, x, times[0], noises[0])
    for k, (before, sigma) in enumerate(pairwise(sigmas), 1):
        step = math.log(sigma / before)
        there, trace_there = _slope_and_trace(noise, x + step * slope, times[k], noises[k])
        x, volume = x + step / 2 * (slope + there), volume + step / 2 * (trace + trace_there)
        slope, trace = _slope_and_trace(noise, x, times[k], noises[k])
    return volume - (x.square() + math.log(2 * math.pi)).sum(1) / 2


def _scales_at(schedule: NoiseSchedule, times: Tensor) -> tuple[list[float], list[float]]:
    """At each time how much of the noise is in x, and the same in units of the signal."""
    log_signal = schedule.log_signal(validate.vector("times", times).detach().double().cpu())
    sigma = torch.expm1(-log_signal).sqrt()
    if len(times) < 2 or not bool((sigma.isfinite() & (sigma > 0)).all()):
        raise ValueError(f"times must be two or more above 0 where some signal is left, got {times.tolist()}"[:200])
    return (-torch.expm1(log_signal)).sqrt().tolist(), sigma.tolist()


def _noise_at(noise: Noise, x: Tensor, time: Tensor) -> Tensor:
    return noise(x, time.to(x).expand(len(x)))


def _slope_at(noise: Noise, x: Tensor, time: Tensor, part: float) -> Tensor:
    return part * (_noise_at(noise, x, time) - part * x)


def _slope_and_trace(noise: Noise, x: Tensor, time: Tensor, part: float) -> tuple[Tensor, Tensor]:
    """The slope, and the trace of its Jacobian by x for each example."""
    with torch.enable_grad():
        inputs = x.detach().requires_grad_()
        found = _slope_at(noise, inputs, time, part)
        trace = x.new_zeros(len(x))
        for feature in range(x.shape[1]):
            (row,) = torch.autograd.grad(found[:, feature].sum(), inputs, retain_graph=True)
            trace = trace + row[:, feature]
    return found.detach(), trace
