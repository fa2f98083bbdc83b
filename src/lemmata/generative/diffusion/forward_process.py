r"""The forward process of diffusion: what noise makes of data, and what is known of the step before."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps
from lemmata.marks import system

__all__ = ["Kernel", "diffuse", "posterior"]

Times = Tensor | int


class Kernel(NamedTuple):
    """A normal law of independent entries: its mean, and a variance that broadcasts against it."""

    mean: Tensor
    variance: Tensor


@system("diffuse", title="Forward process of diffusion", kind="function")
def diffuse(
    x: Float[Tensor, "batch ..."], t: Times, noise: Float[Tensor, "batch ..."], steps: DiffusionSteps, since: Times = 0
) -> Float[Tensor, "batch ..."]:
    r"""Data at time t: x of time `since` (0: data) after t - since steps of noise, at once.

    $$ x_t = \sqrt{\bar\alpha_t}\,x_0 + \sqrt{1-\bar\alpha_t}\,\epsilon,\qquad
       x_t = \sqrt{\bar\alpha_t/\bar\alpha_s}\,x_s + \sqrt{1-\bar\alpha_t/\bar\alpha_s}\,\epsilon $$

    `noise` is $\epsilon\sim\mathcal N(0,I)$, drawn by the caller, who may need it as a target.

    Shapes:
        x, noise: (batch, ...), t, since: (batch,) of integers, or one for all    returns: (batch, ...)

    Claims: ddpm.forward, ddpm.energy, ddpm.closed_form
    Source: Sohl-Dickstein et al. 2015; Ho et al. 2020.

    >>> import torch
    >>> steps = DiffusionSteps.from_rates([0.36, 0.5])
    >>> diffuse(torch.ones(1, 1), 1, torch.ones(1, 1), steps)
    tensor([[1.4000]])
    """
    t, since = checked_times("t", t, steps), checked_times("since", since, steps)
    if validate.tensor("noise", noise).shape != x.shape:
        raise ValueError(f"noise must have the shape of x, {tuple(x.shape)}, got {tuple(noise.shape)}")
    added = rate_between(since, t, steps)
    return beside((1 - added).sqrt(), x) * x + beside(added.sqrt(), x) * noise


@system("forward_posterior", title="Posterior of the forward process", kind="function")
def posterior(
    x_t: Float[Tensor, "batch ..."],
    x0: Float[Tensor, "batch ..."],
    t: Times,
    steps: DiffusionSteps,
    to: Times | None = None,
) -> Kernel:
    r"""The law of an earlier state, given data and a later one; of the time t - 1, unless `to` names another.

    $$ q(x_s\mid x_t,x_0)=\mathcal N\Big(\frac{\sqrt{\bar\alpha_s}\,\beta_{t|s}}{1-\bar\alpha_t}x_0
       +\frac{(1-\bar\alpha_s)\sqrt{1-\beta_{t|s}}}{1-\bar\alpha_t}x_t,\;
       \frac{1-\bar\alpha_s}{1-\bar\alpha_t}\beta_{t|s}I\Big),\qquad \beta_{t|s}=1-\frac{\bar\alpha_t}{\bar\alpha_s} $$

    For s = t - 1 these are $\beta_t$ and $\tilde\beta_t$. Where steps are skipped, none of the skipped rates is right.

    Shapes:
        x_t, x0: (batch, ...), t, to: (batch,) of integers, or one for all
        returns: mean (batch, ...), variance broadcasting against it

    Claims: ddpm.posterior, ddpm.mean_eps, ddpm.elbo
    Source: Sohl-Dickstein et al. 2015; Ho et al. 2020.

    >>> import torch
    >>> steps = DiffusionSteps.from_rates([0.5, 0.5])
    >>> posterior(torch.zeros(1, 1), torch.ones(1, 1), 1, steps)  # data are known: so is the step before the first
    Kernel(mean=tensor([[1.]]), variance=tensor(0., dtype=torch.float64))
    """
    t = checked_times("t", t, steps, least=1)
    to = t - 1 if to is None else _earlier_time(checked_times("to", to, steps), t)
    rate, before, now = rate_between(to, t, steps), look_up(steps.noise, to), look_up(steps.noise, t)
    of_data, of_state = look_up(steps.signal, to).sqrt() * rate / now, before * (1 - rate).sqrt() / now
    mean = beside(of_data, x_t) * x0 + beside(of_state, x_t) * x_t
    return Kernel(mean, beside(before / now * rate, x_t))


def checked_times(name: str, t: Times, steps: DiffusionSteps, least: int = 0) -> Times:
    """Times of the chain, one or one for each example; ValueError for those that it does not have."""
    if isinstance(t, int):
        return validate.count(name, t, least=least, most=len(steps))
    if validate.tensor(name, t).is_floating_point() or t.ndim > 1:
        raise TypeError(
            f"{name} must hold one integer for each example, got shape {tuple(t.shape)} of {t.dtype}: use {name}.long()"
        )
    if validate.visible(t) and not least <= int(t.min()) <= int(t.max()) <= len(steps):
        raise ValueError(f"{name} must hold times from {least} to {len(steps)}, got {int(t.min())} to {int(t.max())}")
    return t


def _earlier_time(to: Times, t: Times) -> Times:
    """Times before others; ValueError for those that are not."""
    late = torch.as_tensor(t - to)
    if validate.visible(late) and int(late.min()) < 1:
        raise ValueError(f"to must be before t, got a time that is {-int(late.min())} steps after it")
    return to


def look_up(values: Tensor, t: Times) -> Tensor:
    """The numbers at these times, where the times are."""
    return values[t] if isinstance(t, int) else values.to(t.device)[t]


def rate_between(s: Times, t: Times, steps: DiffusionSteps) -> Tensor:
    r"""$\beta_{t|s}=1-\bar\alpha_t/\bar\alpha_s$: the share of noise in what happens between two times."""
    since_data, of_one = look_up(steps.noise, t), look_up(steps.noise_rates, t)  # known to the last digit
    of_several = 1 - look_up(steps.signal, t) / look_up(steps.signal, s)  # which this loses where there is little noise
    if isinstance(s, int) and isinstance(t, int):
        return since_data if s == 0 else of_one if s == t - 1 else of_several
    s, t = (torch.as_tensor(each, device=of_several.device) for each in (s, t))
    return torch.where(s == 0, since_data, torch.where(s == t - 1, of_one, of_several))


def beside(values: Tensor, x: Tensor) -> Tensor:
    """Numbers of the schedule, one for each example of x, with its dtype and axes; one for all stays a scalar.

    A scalar changes no dtype, and multiplies what is on another device without being moved there.
    """
    return values.to(x).reshape(-1, *[1] * (x.ndim - 1)) if values.ndim else values
