"""Samples: spectra that repeat, what can be had back, and what a Gaussian makes of it."""

import math

import numpy
import torch

from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie
from lemmata.vision.sampling import gaussian_reconstruct, periodic_reconstruct, sampled_spectrum, sinc_reconstruct


def error_between(frequency, n, phase):
    """How far a wave of so many periods in n samples is off where there are none, if it is reconstructed from them."""
    wave = lambda x: torch.cos(2 * math.pi * frequency * x / n + phase)  # noqa: E731 - a formula
    x = torch.arange(n, dtype=torch.float64)
    return (periodic_reconstruct(wave(x), x + 0.5) - wave(x + 0.5)).abs().max()


@claim("vision.sampling")
@lie("replicas are spaced by the step", power=1.0)
@lie("without the factor by which samples are denser", density=0.0)
@lie("sinc recovers waves of up to 0.8 of the sampling rate", edge=0.8)
def the_spectrum_repeats(draw, power=-1.0, density=-1.0, edge=0.5):
    """A sampled Gaussian against its replicas; waves on either side of half the rate, and one in a band above it."""
    step, width = draw.uniform(1, low=0.4, high=0.6)[0], draw.uniform(1, low=0.6, high=0.8)[0]
    x = (torch.arange(61) - 30) * step
    u = draw.uniform(50, low=-3.0, high=3.0)
    replicas = u - torch.arange(-20, 21)[:, None] * step**power  # (41, 50)
    transform = width * math.sqrt(2 * math.pi) * torch.exp(-2 * (math.pi * width * replicas) ** 2)
    samples = torch.exp(-((x / width) ** 2) / 2)
    n, turn = 101, draw.uniform(1, high=6.28)[0]
    low = [k for k in range(n) if k < edge * n]
    t = torch.arange(10, dtype=torch.float64)
    return all_of(
        close(sampled_spectrum(samples, x, u).real, step**density * transform.sum(0), within=1e-8),
        # 0.7 of the rate has the samples of 0.3 of it, turned the other way.
        close(torch.cos(2 * math.pi * 0.7 * t + turn), torch.cos(2 * math.pi * 0.3 * t - turn), ulps=256),
        at_most(torch.stack([error_between(k, n, turn) for k in low]), 1e-9),
        at_least(torch.stack([error_between(k, n, turn) for k in range(n) if k not in low]), 0.1),
        # Replicas of a band from 0.6 to 0.9 of the rate do not meet, and yet the low-pass returns another signal.
        at_least(torch.stack([error_between(k, n, turn) for k in range(61, 91)]), 0.1),
    )


@claim("vision.sinc")
@lie("without pi, and zero at the integers", scale=1.0)
@lie(
    "waves of 0.7 of the sampling rate come back, too",
    frequency=0.7,
    regime="all below half the rate come back",
    loose="as do slower ones",
)
def sinc_is_the_transform_of_a_box(draw, scale=math.pi, frequency=0.2, reconstruct=sinc_reconstruct):
    """One sample against the formula and an integral; waves between samples, periodic and among 2,000 of them."""
    x = torch.cat([torch.arange(-5, 6).double(), draw.uniform(40, low=-5, high=5)])
    one = reconstruct(torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64), x)
    # Where sin is small beside x, the quotient of a rounded zero and x is no zero.
    formula = torch.where(x == 0, 1.0, torch.sin(scale * x) / (scale * x).where(x != 0, 1.0))
    nodes, weights = (torch.from_numpy(part) for part in numpy.polynomial.legendre.leggauss(40))
    integral = torch.cos(math.pi * nodes * x[:, None]) @ weights / 2  # over |u| < 1/2
    n = int(draw.choice([30, 31]))
    a, b = draw.normal(2, (n - 1) // 2 + 1)

    def signal(t):
        turns = 2 * math.pi * t[:, None] * torch.arange(len(a)) / n  # (points, waves)
        return turns.cos() @ a + turns.sin() @ b

    places, between = torch.arange(n).double(), draw.uniform(20, high=float(n))
    many = torch.arange(-1000, 1000).double()
    wave = lambda t: torch.cos(2 * math.pi * frequency * t + 1)  # noqa: E731
    return all_of(
        close(one, formula, scale=1.0),
        close(one, integral, scale=1.0),
        close(periodic_reconstruct(signal(places), between), signal(between), ulps=4096, scale=float(n)),
        close(reconstruct(wave(many), many, between), wave(between), within=1e-3),
    )


def step_overshoot(reconstruct, *more):
    """By how much of its height a sampled step is exceeded next to it."""
    x = torch.arange(-60, 60, dtype=torch.float64)
    near = torch.linspace(-8, 8, 321, dtype=torch.float64)
    return reconstruct((x >= 0).double(), x, near, *more).max() - 1


@claim("vision.gaussian_reconstruction")
@lie("the spectrum is multiplied by a Gaussian half as steep", rate=1.0)
@lie("the curve passes through the samples", through=True)
@lie("without the factor by which samples are apart", density=0.0)
def samples_become_gaussians(draw, rate=2.0, through=False, density=1.0, reconstruct=gaussian_reconstruct):
    """Both routes for one set of samples; errors by the width, beside the sinc; a step."""
    step, sigma = draw.uniform(1, low=0.4, high=0.8)[0], draw.uniform(1, low=0.6, high=1.0)[0]
    x, samples = (torch.arange(40) - 20) * step, draw.normal(40)
    at, u = draw.uniform(30, low=-8.0, high=8.0), torch.linspace(-4, 4, 4001, dtype=torch.float64)
    spectrum = sampled_spectrum(samples, x, u) * step**density * torch.exp(-rate * (math.pi * sigma * u) ** 2)
    back = sampled_spectrum(spectrum.real, u, -at) + 1j * sampled_spectrum(spectrum.imag, u, -at)
    wave = lambda t: torch.cos(2 * math.pi * 0.15 * t)  # noqa: E731
    n, inside = torch.arange(-200, 201).double(), draw.uniform(60, low=-20.0, high=20.0)
    widths = torch.linspace(0.1, 1.5, 29, dtype=torch.float64)
    errors = torch.stack([(reconstruct(wave(n), n, inside, float(w)) - wave(inside)).abs().max() for w in widths])
    best = int(errors.argmin())
    sinc = (sinc_reconstruct(wave(n), n, inside) - wave(inside)).abs().max()
    met = (reconstruct(wave(n), n, n[180:220], 0.6) - wave(n[180:220])).abs().max() < 1e-3
    return all_of(
        close(reconstruct(samples, x, at, float(sigma)), (back * (u[1] - u[0])).real, within=1e-6),
        exactly(bool(met), through),
        always([0 < best < 28, bool(errors[0] > 3 * errors[best]), bool(errors[-1] > 3 * errors[best])]),
        at_least(errors, 1.5 * sinc),
        at_most(step_overshoot(reconstruct, 0.6), 0.01),
        at_least(step_overshoot(sinc_reconstruct), 0.05),
    )
