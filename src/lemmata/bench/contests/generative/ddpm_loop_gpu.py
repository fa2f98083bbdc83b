"""Sampling from a diffusion model on a GPU: what one graph of kernels saves of a loop that starts each by itself.

All use the same network and walk the same times by DDIM without fresh noise, from the same start; the loop of diffusers
is its scheduler as its documentation shows it. Where kernels are done sooner than the next is started, a graph pays; of
many images at once it cannot. Elsewhere than on a GPU the sizes are small, which only serves to try the entry.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.generative.diffusion.captured_denoiser import captured
from lemmata.generative.diffusion.ddim import ddim_sampling
from lemmata.generative.diffusion.ddpm_networks import ImageDDPM
from lemmata.generative.diffusion.sampling_times import spaced_times

IMAGES = {"sixteen": 16, "thousand": 1000}  # on a GPU
ELSEWHERE, SIDE, STEPS, CHAIN = 2, {"cuda": 28, "cpu": 8}, {"cuda": 50, "cpu": 3}, 1000
NETWORK = {"cuda": {"widths": (48, 96, 192), "blocks": 2}, "cpu": {"widths": (16,), "blocks": 1}}


@dataclass
class Sampling:
    """A network, the noise to begin with, and the times to visit."""

    model: ImageDDPM
    x: Tensor
    walk: list[int]


@entry(
    "ddpm_loop_gpu",
    title="Sampling from a diffusion model on a GPU",
    measures="50 steps of DDIM with a U-Net of 8.7 million weights",
    cases={
        "sixteen": "on a GPU 16 images of 28 x 28; else 2 of 8 x 8, a small network, 3 steps",
        "thousand": "on a GPU 1,000 images of 28 x 28; else 2 of 8 x 8, a small network, 3 steps",
    },
    targets={"diffusers": 0.5, "torch, 1,000 images": 1.05},
)
def noise(case: str, device: str) -> Sampling:
    """A network as it is before it learns, but for its last convolution, which would answer with zeros alone."""
    kind = torch.device(device).type
    known = kind if kind in NETWORK else "cpu"
    side, count = SIDE[known], IMAGES[case] if kind == "cuda" else ELSEWHERE
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ImageDDPM(1, side, side, noise_schedule="linear", **NETWORK[known])  # type: ignore[arg-type]
        torch.nn.init.normal_(model.denoiser.head.weight, std=0.01)  # type: ignore[union-attr]
        x = torch.randn(count, 1, side, side)
    walk = spaced_times(CHAIN, STEPS[known])
    return Sampling(model.eval().requires_grad_(False).to(device), x.to(device), walk)


@ours("lemmata")
def by_graph(task: Sampling) -> Callable[[], Tensor]:
    """As `DDPM.sample` does: the kernels are recorded anew in each call, which is part of the time."""

    def run() -> Tensor:
        with torch.no_grad():
            return ddim_sampling(captured(task.model, task.x, len(task.walk)), task.x, task.model.steps, task.walk)

    return run


@peer("torch, 1,000 images", cases="thousand")
def by_starting_kernels_of_many(task: Sampling) -> Callable[[], Tensor]:
    """The same loop without a graph."""
    return lambda: ddim_sampling(task.model, task.x, task.model.steps, task.walk)


@peer("torch, 16 images", cases="sixteen")
def by_starting_kernels(task: Sampling) -> Callable[[], Tensor]:
    """The same loop without a graph."""
    return by_starting_kernels_of_many(task)


@peer("diffusers", needs="diffusers", cases="sixteen")
def by_diffusers(task: Sampling) -> Callable[[], Tensor]:
    """The same network under the scheduler of diffusers, at the same times, which it counts from 0."""
    from diffusers.schedulers.scheduling_ddim import DDIMScheduler

    rates = task.model.steps.noise_rates[1:].float().numpy()
    scheduler = DDIMScheduler(CHAIN, trained_betas=rates, clip_sample=False, set_alpha_to_one=True)
    scheduler.set_timesteps(len(task.walk) - 1)
    times = [t - 1 for t in task.walk[:-1]]
    scheduler.timesteps = torch.tensor(times)

    def run() -> Tensor:
        x = task.x
        with torch.no_grad():
            for t in times:
                answer = task.model(x, torch.full((len(x),), t + 1, device=x.device))
                x = scheduler.step(answer, t, x, eta=0.0, return_dict=False)[0]
        return x

    return run


@limit("the network's passes, all recorded before the clock runs")
def passes_alone(task: Sampling) -> Callable[[], Tensor]:
    """As many passes at one time, without the sampler's own sums."""
    with torch.no_grad():
        model = captured(task.model, task.x, len(task.walk))
    t = torch.full((len(task.x),), CHAIN, device=task.x.device)

    def run() -> Tensor:
        with torch.no_grad():
            for _ in task.walk[1:]:
                answer = model(task.x, t)
        return answer

    return run


@agreement(within=0.05)
def in_numbers(found: Tensor) -> dict[str, float]:
    """The spread of what is sampled."""
    return {"standard deviation": float(found.double().std())}
