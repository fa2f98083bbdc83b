"""The loop of a sampler around one and the same network: ancestral sampling and DDIM, ours beside diffusers'.

Nearly all of the time is the network's, whose calls alone are the limit; what is measured is what the loop adds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.generative.diffusion.ancestral import ancestral_sampling
from lemmata.generative.diffusion.ddim import ddim_sampling
from lemmata.generative.diffusion.denoiser_unet import DenoiserUNet
from lemmata.generative.diffusion.noise_schedule import LinearSchedule
from lemmata.generative.diffusion.sampling_times import spaced_times

STEPS = 1000  # of the chain; DDIM makes 50 of them
SKIPPING = 50


class Sampling(NamedTuple):
    """A network asked with times from 1 to 1,000, where it starts, and whether steps are skipped."""

    network: Callable[[Tensor, Tensor], Tensor]
    start: Tensor
    skips: bool

    def stream(self) -> torch.Generator:
        """The draws of a run, the same for everybody."""
        return torch.Generator(self.start.device).manual_seed(1)


@entry(
    "ddpm_loop",
    title="Samplers of a diffusion model around the same network",
    measures="samples from noise, by a small U-Net in float32",
    cases={
        "ddim": "50 of 1,000 steps without fresh noise, 16 images of 16 x 16 pixels",
        "ancestral": "100 steps of a chain with noise in each, 16 images of 16 x 16 pixels",
    },
    targets={"diffusers": 1.02},
)
def small_network(case: str, device: str) -> Sampling:
    """Random weights: only the time counts, and that all samples are the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        denoiser = DenoiserUNet(channels=1, widths=(32, 64)).to(device).eval()
        start = torch.randn(16, 1, 16, 16).to(device)
    return Sampling(lambda x, t: denoiser(x, t / STEPS), start, case == "ddim")


def _walked_times(task: Sampling) -> list[int]:
    return spaced_times(STEPS, SKIPPING) if task.skips else list(range(100, -1, -1))


@ours("lemmata")
def by_ours(task: Sampling) -> Callable[[], Tensor]:
    """As they come."""
    steps, times = LinearSchedule().steps(STEPS), _walked_times(task)
    if task.skips:
        return lambda: ddim_sampling(task.network, task.start, steps, times)
    return lambda: ancestral_sampling(task.network, task.start, steps, times, generator=task.stream())


@peer("diffusers", needs="diffusers")
def by_diffusers(task: Sampling) -> Callable[[], Tensor]:
    """Its scheduler in the loop of its own examples."""
    scheduler = _their_scheduler(task.skips)
    scheduler.set_timesteps(SKIPPING if task.skips else STEPS)
    times = scheduler.timesteps[-len(_walked_times(task)) + 1 :]

    @torch.no_grad()
    def sample() -> Tensor:
        x, more = task.start, {} if task.skips else {"generator": task.stream()}
        for t in times:
            x = scheduler.step(task.network(x, (t + 1).expand(len(x)).to(x.device)), t, x, **more).prev_sample
        return x

    return sample


def _their_scheduler(skips: bool) -> Any:
    """Any, for its steps are said to take the time as an int, and are given tensors in its own examples."""
    from diffusers.schedulers.scheduling_ddim import DDIMScheduler
    from diffusers.schedulers.scheduling_ddpm import DDPMScheduler

    if skips:
        return DDIMScheduler(STEPS, clip_sample=False, timestep_spacing="trailing")
    return DDPMScheduler(STEPS, clip_sample=False)


@limit("the calls of the network alone")
def network_alone(task: Sampling) -> Callable[[], None]:
    """As many as there are steps, always from the same place."""
    times = [torch.full((len(task.start),), t, device=task.start.device) for t in _walked_times(task)[:-1]]

    @torch.no_grad()
    def ask() -> None:
        for t in times:
            task.network(task.start, t)

    return ask


@agreement(within=1e-2)
def in_numbers(x: Tensor) -> dict[str, float]:
    """Mean and spread of all pixels, and one of them."""
    return {"spread": float(x.std()), "pixel": float(x[0, 0, 8, 8])}
