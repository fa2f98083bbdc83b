"""A chain, a network that is smooth, the perfect one where data are a point, and noise from a seed."""

import torch

from lemmata.generative.diffusion.noise_schedule import LinearSchedule

STEPS = LinearSchedule().steps(1000)


def network(x, t):
    return torch.tanh(x * (t.reshape(-1, *[1] * (x.ndim - 1)).to(x) / 1000 + 0.5))


def noise(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def stream(seed=3):
    return torch.Generator().manual_seed(seed)


def known_data(steps, x0):
    """The perfect denoiser where all data are one point."""
    return lambda x, t: (x - steps.signal[t[0]].sqrt() * x0) / steps.noise[t[0]].sqrt()
