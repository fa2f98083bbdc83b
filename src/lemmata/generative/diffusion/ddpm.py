r"""Denoising diffusion: a denoiser, a noise schedule, the loss that joins them, and the samplers that use both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lemmata import validate
from lemmata.generative.diffusion.ancestral import ancestral_sampling, finite_samples
from lemmata.generative.diffusion.captured_denoiser import captured
from lemmata.generative.diffusion.chain_bound import diffusion_elbo
from lemmata.generative.diffusion.ddim import ddim_sampling
from lemmata.generative.diffusion.denoiser_mlp import DenoiserMLP  # noqa: F401 - in the example
from lemmata.generative.diffusion.flow_ode import flow_log_prob, probability_flow
from lemmata.generative.diffusion.forward_process import diffuse
from lemmata.generative.diffusion.noise_schedule import CosineSchedule, LinearSchedule, NoiseSchedule
from lemmata.generative.diffusion.reverse_time import descending_times, noise_like
from lemmata.generative.diffusion.sampling_times import spaced_times
from lemmata.generative.diffusion.targets import TARGETS, training_target
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.train.evaluation_mode import evaluating

__all__ = ["DDPM", "DDPMConfig"]

SCHEDULES: dict[str, NoiseSchedule] = {"linear": LinearSchedule(), "cosine": CosineSchedule()}
SAMPLERS = ("ancestral", "ddim", "ode")
EXACT_TRACE = 64  # features of which the log-density takes a backward pass each


@dataclass(frozen=True)
class DDPMConfig:
    """What can be chosen of a diffusion model beside its denoiser."""

    noising_steps: int = 1000
    """Noising steps of the chain that is learnt."""
    noise_schedule: str = "cosine"
    """How fast the signal falls: linear or cosine."""
    target: str = "noise"
    """What the denoiser is asked for: noise, data or velocity."""

    def __post_init__(self) -> None:
        validate.count("noising_steps", self.noising_steps)
        validate.one_of("noise_schedule", self.noise_schedule, tuple(SCHEDULES))
        validate.one_of("target", self.target, TARGETS)


@system(
    "ddpm",
    title="Denoising diffusion model",
    kind="module",
    example="DDPM(DenoiserMLP(3, widths=(8,)), shape=(3,))(torch.randn(5, 3), torch.randint(1, 1001, (5,)))",
)
class DDPM(nn.Module):
    r"""Data from noise, by a network that tells what of a noisy example is noise.

    $$ L = \mathbb E_{t, x_0, \epsilon} \tfrac1d \big\|\epsilon
       - \epsilon_\theta(\sqrt{\bar\alpha_t} x_0 + \sqrt{1 - \bar\alpha_t}\,\epsilon,\, t)\big\|^2 $$

    `denoiser(x, time)` is any module that answers with the shape of x, such as `DenoiserMLP` and `DenoiserUNet`; the
    time is t / T, one for each example. `shape` is that of one example, `bounds` the interval of its values if it has
    one, to which estimates of the data are clipped while sampling. A call gives the denoiser's answer at times 1 to T.
    Data should have about unit variance, since at T they are taken for standard normal.

    The schedule is no state: an average of weights (`PolyakAverage(ddpm.parameters(), ema_decay=0.999)`) and lower
    precision leave it alone. The state of a sampler is float32 or finer, whatever the weights are.

    Shapes:
        x: (batch, *shape), t: (batch,) of integers from 1 to T    returns: (batch, *shape)

    Claims: ddpm.simple_loss, ddpm.training, ddpm.system, diffusion.score_model
    Source: Ho, Jain and Abbeel, Denoising diffusion probabilistic models (2020).
    Differs: the loss is a mean over features, so that a learning rate does for images of any size. The cosine schedule
        of Nichol and Dhariwal (2021) is the usual one.

    >>> ddpm = DDPM(DenoiserMLP(features=2), shape=(2,), noising_steps=100)
    >>> ddpm.loss(torch.randn(8, 2)).shape, ddpm.sample(5, sampler="ddim", steps=10).shape
    (torch.Size([]), torch.Size([5, 2]))
    """

    denoiser: Any  # a module, with members of its own

    def __init__(
        self,
        denoiser: nn.Module,
        shape: Sequence[int],
        noising_steps: int = DDPMConfig.noising_steps,
        noise_schedule: str = DDPMConfig.noise_schedule,
        target: str = DDPMConfig.target,
        bounds: tuple[float, float] | None = None,
        schedule: NoiseSchedule | None = None,
    ) -> None:
        super().__init__()
        chosen = config_of(DDPMConfig, locals())
        self.denoiser, self.shape = validate.module("denoiser", denoiser), tuple(shape)
        self.schedule = SCHEDULES[chosen.noise_schedule] if schedule is None else schedule  # one's own, in its stead
        self.target, self.bounds = chosen.target, bounds
        with torch.device("cpu"):  # numbers are looked at, wherever the network is built
            self.steps = self.schedule.steps(chosen.noising_steps)  # neither parameters nor buffers

    def forward(self, x: Float[Tensor, "batch ..."], t: Int[Tensor, " batch"]) -> Float[Tensor, "batch ..."]:
        self._check_examples(x)
        if validate.tensor("t", t).ndim != 1 or t.shape[0] != x.shape[0]:
            raise ValueError(f"t must hold one time for each of {x.shape[0]} examples, got shape {tuple(t.shape)}")
        if t.is_floating_point():
            raise TypeError(f"t must hold integers from 1 to {len(self.steps)}, got {t.dtype}: use t.long()")
        return self._denoiser_answer(x, t.double() / len(self.steps))

    def _denoiser_answer(self, x: Tensor, time: Tensor) -> Tensor:
        """The denoiser's answer in the numbers of x, whatever its own are."""
        given = x.to(next(self.parameters(), x).dtype)
        found = self.denoiser(given, time.to(given))
        if found.shape != x.shape:
            shapes = f"{tuple(x.shape)}, got {tuple(found.shape)}"
            raise ValueError(f"denoiser must answer with the shape of its input, {shapes}")
        return found.to(x.dtype)

    # --- Learning ---

    def losses(
        self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None
    ) -> Float[Tensor, " batch"]:
        """The squared error of each example at a time and with noise of its own, mean over its features."""
        self._check_examples(x)
        if self.steps.signal.device != x.device:
            self.steps = self.steps.to(x.device)
        place = x.device if generator is None else generator.device
        t = torch.randint(1, len(self.steps) + 1, (len(x),), generator=generator, device=place).to(x.device)  # (batch,)
        noise = noise_like(x, generator)
        wanted = training_target(x, noise, t, self.steps, self.target)
        found = self(diffuse(x, t, noise, self.steps), t)  # (batch, *shape)
        return (found - wanted).square().flatten(1).mean(1)

    def loss(self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """The mean squared error of the denoiser, at a random time for each example: to be lowered by gradients."""
        return self.losses(x, generator=generator).mean()

    # --- What is learnt, at times from 0 to 1 ---

    def noise(self, x: Float[Tensor, "batch ..."], time: Float[Tensor, " batch"]) -> Float[Tensor, "batch ..."]:
        r"""What of x is noise, $\mathbb E[\epsilon \mid x_t = x]$, at a time from 0 to 1 for each example."""
        answer = self._denoiser_answer(x, time)
        if self.target == "noise":
            return answer
        signal, spread = self._amplitudes_at(x, time)
        if self.target == "data":
            return (x - signal * answer) / spread
        return spread * x + signal * answer

    def score(self, x: Float[Tensor, "batch ..."], time: Float[Tensor, " batch"]) -> Float[Tensor, "batch ..."]:
        r"""The gradient of the log-density of noisy data, $-\epsilon_\theta(x, t) / \sqrt{1 - \bar\alpha_t}$."""
        return -self.noise(x, time) / self._amplitudes_at(x, time)[1]

    def _amplitudes_at(self, x: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """The roots of signal and noise, with as many axes as x."""
        log_signal = self.schedule.log_signal(time.double()).reshape(-1, *[1] * (x.ndim - 1))
        return (log_signal / 2).exp().to(x), (-torch.expm1(log_signal)).sqrt().to(x)

    # --- Use ---

    def sample(
        self,
        n: int,
        *,
        generator: torch.Generator | None = None,
        sampler: str = "ancestral",
        steps: int | None = None,
        eta: float = 0.0,
    ) -> Float[Tensor, "n ..."]:
        """n new examples, by the whole chain or so many steps of it: ancestral, ddim with its `eta`, or ode (Heun)."""
        validate.one_of("sampler", sampler, SAMPLERS)
        count = len(self.steps) if steps is None else steps
        weight = next(self.parameters(), torch.zeros(()))
        empty = weight.new_empty(
            validate.count("n", n), *self.shape, dtype=torch.promote_types(weight.dtype, torch.float32)
        )
        x = noise_like(empty, generator)  # (n, *shape)
        if sampler == "ode":
            with evaluating(self):
                return finite_samples(
                    probability_flow(self.noise, x, self.schedule, self.flow_times(count), finish=True)
                )
        walk = spaced_times(len(self.steps), count)
        choices: dict[str, Any] = {"target": self.target, "bounds": self.bounds, "generator": generator}
        with evaluating(self):
            model = captured(self, x, len(walk))
            if sampler == "ddim":
                return ddim_sampling(model, x, self.steps, walk, eta=eta, **choices)
            return ancestral_sampling(model, x, self.steps, walk, **choices)

    def flow_times(self, steps: int) -> Float[Tensor, " times"]:
        """Times of the probability flow from noise to data, none of them outside those that are learnt."""
        cleanest = float(self.schedule.log_snr(torch.tensor(1 / len(self.steps), dtype=torch.float64)))
        return descending_times(self.schedule, steps, cleanest=cleanest)

    def encode(self, x: Float[Tensor, "batch ..."], steps: int = 50) -> Float[Tensor, "batch ..."]:
        """The noise from which the probability flow makes each example; about standard normal."""
        self._check_examples(x)
        with evaluating(self):
            return probability_flow(self.noise, x, self.schedule, self.flow_times(steps).flip(0))

    def decode(self, z: Float[Tensor, "batch ..."], steps: int = 50) -> Float[Tensor, "batch ..."]:
        """The example that the probability flow makes of noise."""
        self._check_examples(z, "z")
        with evaluating(self):
            return probability_flow(self.noise, z, self.schedule, self.flow_times(steps))

    def log_prob(self, x: Float[Tensor, "batch ..."], steps: int = 100) -> Float[Tensor, " batch"]:
        """The log-density of each example by the probability flow, in nats; for few features."""
        self._check_examples(x)
        if x[0].numel() > EXACT_TRACE:
            raise ValueError(
                f"log_prob takes a pass for each feature, at most {EXACT_TRACE}, got {x[0].numel()}: use elbo"
            )
        with evaluating(self):
            return flow_log_prob(self.noise, x, self.schedule, self.flow_times(steps).flip(0))

    def elbo(
        self,
        x: Float[Tensor, "batch ..."],
        *,
        samples: int = 1,
        levels: int | None = None,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " batch"]:
        """A lower bound of the log-density of each example, in nats: all terms, with so many draws of their noise.

        With `levels` of grey values spread evenly from -1 to 1, of its log-probability.
        """
        self._check_examples(x)
        with evaluating(self):
            drawn = [
                diffusion_elbo(self, x, self.steps, target=self.target, levels=levels, generator=generator).elbo
                for _ in range(validate.count("samples", samples))
            ]
        return torch.stack(drawn).mean(0)  # (batch,)

    def _check_examples(self, x: Tensor, name: str = "x") -> None:
        if not validate.tensor(name, x).is_floating_point():
            raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}: use {name}.float()")
        if tuple(x.shape[1:]) != self.shape:
            raise ValueError(f"{name} must be (batch, {', '.join(map(str, self.shape))}), got {tuple(x.shape)}")

    def extra_repr(self) -> str:
        return f"shape={self.shape}, noising_steps={len(self.steps)}, schedule={self.schedule}, target={self.target}"
