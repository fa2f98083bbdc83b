r"""Noise schedules: laws in continuous time, and the steps that any number of them is cut into."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["CosineSchedule", "DiffusionSteps", "LinearSchedule", "NoiseSchedule"]

CLASSICAL_STEPS = 1000  # for which the rates of the linear schedule were chosen


@system("diffusion_steps", title="Noising steps of a diffusion model", kind="function")
@dataclass(frozen=True, eq=False)
class DiffusionSteps:
    r"""The numbers of T noising steps, in float64, **indexed by the time t itself**: 0 is data, 1, ..., T are noisy.

    $$ \alpha_t = 1-\beta_t,\qquad \bar\alpha_t=\prod_{s\le t}\alpha_s,\qquad
       \tilde\beta_t=\frac{1-\bar\alpha_{t-1}}{1-\bar\alpha_t}\,\beta_t,\qquad \beta_0=0,\ \bar\alpha_0=1 $$

    `noise_rates` are $\beta_t$, `kept` $\alpha_t$, `signal` $\bar\alpha_t$, `noise` $1-\bar\alpha_t$,
    `posterior_variance` $\tilde\beta_t$. Made by a schedule or by `from_rates`; `len` is T. These are constants: no
    module's state, so that neither an average of weights nor half precision ever touches them.

    Shapes:
        noise_rates, kept, signal, noise, posterior_variance: (T + 1,)

    Claims: ddpm.closed_form, ddpm.schedule, ddpm.sigma_choice
    Source: Ho et al. 2020.  Differs: diffusers counts its times from 0, one less than here.

    >>> steps = DiffusionSteps.from_rates([0.5, 0.5])
    >>> steps.signal.tolist(), len(steps)
    ([1.0, 0.5, 0.25], 2)
    """

    noise_rates: Float[Tensor, "times"]
    kept: Float[Tensor, "times"]
    signal: Float[Tensor, "times"]
    noise: Float[Tensor, "times"]
    posterior_variance: Float[Tensor, "times"]

    @classmethod
    def from_rates(cls, noise_rates: "Tensor | list[float]") -> "DiffusionSteps":
        r"""The steps with these $\beta_1,\dots,\beta_T$, each above 0 and below 1."""
        if not isinstance(noise_rates, Tensor):
            noise_rates = torch.tensor(noise_rates, dtype=torch.float64)
        rates = validate.vector("noise_rates", noise_rates).double()  # (T,)
        wrong = ((rates <= 0) | (rates >= 1)).nonzero().flatten().tolist()
        if wrong:
            raise ValueError(f"noise_rates must be > 0 and < 1, got {float(rates[wrong[0]]):g} at t = {wrong[0] + 1}")
        data = rates.new_zeros(1)
        noise = -torch.expm1(torch.log1p(-rates).cumsum(0))  # not 1 - signal, which cancels where little is noise
        noise, rates = torch.cat([data, noise]), torch.cat([data, rates])  # (T + 1,): none at t = 0
        variance = torch.cat([data, noise[:-1] / noise[1:] * rates[1:]])
        return cls(rates, 1 - rates, (1 - rates).cumprod(0), noise, variance)

    def __len__(self) -> int:
        return len(self.noise_rates) - 1

    def to(self, device: torch.device | str) -> "DiffusionSteps":
        """The same numbers on another device, for times that live there."""
        moved = (self.noise_rates, self.kept, self.signal, self.noise, self.posterior_variance)
        return DiffusionSteps(*(each.to(device) for each in moved))


class NoiseSchedule(ABC):
    r"""How much of the data is left at each time from 0 (data) to 1 (noise), whatever the number of steps.

    $$ \bar\alpha(u)=e^{-\int_0^u\beta},\qquad
       \beta_t=1-\frac{\bar\alpha(t/T)}{\bar\alpha((t-1)/T)},\qquad
       \log\mathrm{SNR}(u)=\log\frac{\bar\alpha(u)}{1-\bar\alpha(u)} $$

    so that T steps of any T end in the same noise. A schedule gives `log_signal` and `rate`.

    Shapes:
        u: any, from 0 to 1    returns: as u
    """

    @abstractmethod
    def log_signal(self, u: Tensor) -> Tensor:
        r"""$\log\bar\alpha(u)$, zero at u = 0 and falling."""

    @abstractmethod
    def rate(self, u: Tensor) -> Tensor:
        r"""$\beta(u)=-\frac{d}{du}\log\bar\alpha(u)$, the rate of the stochastic differential equation on [0, 1]."""

    def signal(self, u: Tensor) -> Tensor:
        r"""$\bar\alpha(u)$."""
        return self.log_signal(u).exp()

    def log_snr(self, u: Tensor) -> Tensor:
        r"""$\log\bar\alpha(u)-\log(1-\bar\alpha(u))$: infinite at u = 0."""
        kept = self.log_signal(u)
        return kept - torch.log(-torch.expm1(kept))

    def steps(self, T: int) -> DiffusionSteps:
        """T steps of equal length in u."""
        u = torch.arange(validate.count("T", T) + 1, dtype=torch.float64) / T
        rates = -torch.expm1(self.log_signal(u).diff())
        return DiffusionSteps.from_rates(rates.clamp(max=1 - torch.finfo(torch.float64).eps))  # of one or two steps


@system("linear_schedule", title="Linear noise schedule", kind="function")
@dataclass(frozen=True)
class LinearSchedule(NoiseSchedule):
    r"""Rates that grow in equal steps, classically from 0.0001 to 0.02 in a thousand; of one height if both are equal.

    $$ \beta_t = \beta_1 + (t-1)\frac{\beta_{1000}-\beta_1}{999},\qquad
       \bar\alpha(u)=\prod_{t\le1000u}(1-\beta_t) $$

    The product is continued between its factors as factorials are, by Stirling's formula. `first` and `last` are those
    of a thousand steps, whatever T: `steps(1000)` has exactly these rates, fewer steps have larger ones.

    Claims: ddpm.schedule
    Source: Ho et al. 2020.

    >>> [f"{float(LinearSchedule().steps(T).signal[-1]):.2e}" for T in (1000, 100, 10)]
    ['4.04e-05', '4.04e-05', '4.04e-05']
    """

    first: float = 1e-4
    last: float = 0.02

    def __post_init__(self) -> None:
        validate.number("first", self.first, above=0, below=1)
        validate.number("last", self.last, least=self.first, most=0.5)  # up to which the continuation is exact

    def log_signal(self, u: Tensor) -> Tensor:
        # The factors 1 - first, ..., an arithmetic sequence, multiply to slope^n Gamma(x + 1/2) / Gamma(x - n + 1/2);
        # log Gamma(x + 1/2) = x log x - x - 1/(24 x) + const, exact to rounding for factors so close to each other.
        n, start, now = CLASSICAL_STEPS * u, 1 - self.first + self.slope / 2, self._kept_at(u)
        bend = self.slope * n / start
        straight = torch.where(bend == 0, 1.0, bend)  # no slope, or no time: -log(1 - bend) / bend is 1
        curve = torch.where(bend == 0, 1.0, -torch.log1p(-straight * (bend != 0)) / straight)
        return n * (curve - 1 + now.log()) + self.slope * (1 / now - 1 / start) / 24

    def rate(self, u: Tensor) -> Tensor:
        now = self._kept_at(u)
        return -CLASSICAL_STEPS * (now.log() + (self.slope / now).square() / 24)

    def steps(self, T: int) -> DiffusionSteps:
        """T steps of equal length in u; a thousand of them have the classical rates to the last bit."""
        if T != CLASSICAL_STEPS:
            return super().steps(T)
        return DiffusionSteps.from_rates(torch.linspace(self.first, self.last, T, dtype=torch.float64))

    @property
    def slope(self) -> float:
        """By how much the rate grows from one of a thousand steps to the next."""
        return (self.last - self.first) / (CLASSICAL_STEPS - 1)

    def _kept_at(self, u: Tensor) -> Tensor:
        """What a step keeps, half a step after u."""
        return 1 - self.first - self.slope * (CLASSICAL_STEPS * u - 0.5)


@system("cosine_schedule", title="Cosine noise schedule", kind="function")
@dataclass(frozen=True)
class CosineSchedule(NoiseSchedule):
    r"""The signal falls as a squared cosine: little noise at first, and no long stretch of nothing but noise.

    $$ \bar\alpha(u)=\frac{\cos^2\theta(u)}{\cos^2\theta(0)},\qquad \theta(u)=\frac\pi2\,\frac{u+s}{1+s} $$

    `offset` is $s$, which keeps the first step from being too small. Nothing is left at u = 1, where the rate is
    infinite: no step may have more than `largest`.

    Claims: ddpm.schedule
    Source: Nichol and Dhariwal 2021.

    >>> CosineSchedule().steps(1000).noise_rates[[1, -1]].tolist()  # doctest: +ELLIPSIS
    [4.12842...e-05, 0.999]
    """

    offset: float = 0.008
    largest: float = 0.999

    def __post_init__(self) -> None:
        validate.positive("offset", self.offset)
        validate.number("largest", self.largest, above=0, below=1)

    def log_signal(self, u: Tensor) -> Tensor:
        # Through sines of the differences, since both cosines are nearly 1 at first: cos a / cos b - 1 loses the rest.
        start, gone = self._angle_at(torch.zeros_like(u)), self._angle_at(u) - self._angle_at(torch.zeros_like(u))
        return 2 * torch.log((gone.cos() - start.tan() * gone.sin()).clamp(min=torch.finfo(u.dtype).tiny))

    def rate(self, u: Tensor) -> Tensor:
        return math.pi / (1 + self.offset) * self._angle_at(u).tan()

    def steps(self, T: int) -> DiffusionSteps:
        """T steps of equal length in u, none with a rate above `largest`."""
        u = torch.arange(validate.count("T", T) + 1, dtype=torch.float64) / T
        return DiffusionSteps.from_rates((-torch.expm1(self.log_signal(u).diff())).clamp(max=self.largest))

    def _angle_at(self, u: Tensor) -> Tensor:
        return math.pi / 2 * (u + self.offset) / (1 + self.offset)
