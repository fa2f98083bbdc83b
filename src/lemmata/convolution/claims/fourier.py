"""The Fourier transform by quadrature, on grids and on closed forms: inverse, linearity, duality, and the delta."""

import math

import numpy
import torch

from lemmata.convolution.discrete_convolution import convolve
from lemmata.convolution.fourier import fourier_transform, inverse_fourier_transform
from lemmata.judge import Figure, Line, all_of, at_most, claim, close, exactly, lie, slope_is

# Gaussians about centres within 1 of zero, and their transforms, fade below 1e-16 inside it, at widths 0.4 to 1.0:
# sums over it are integrals up to rounding. It is not centred at zero. A spectrum known on it gives a function that
# repeats after 16, so that a Gaussian found again from its spectrum must have faded at 8: at widths up to 0.75.
GRID = (torch.arange(400, dtype=torch.float64) - 190) / 16
STEP = 1 / 16


def turn(turns):
    r"""A complex number of length one, turned so many times: $e^{2\pi i\,\mathrm{turns}}$."""
    return torch.polar(torch.ones_like(turns), 2 * math.pi * turns)


def gaussian(t, centre, width):
    """A density whose transform is known: `gaussian_spectrum`."""
    return torch.exp(-((t - centre) ** 2) / (2 * width**2)) / (width * math.sqrt(2 * math.pi))


def gaussian_spectrum(u, centre, width):
    return turn(-u * centre) * torch.exp(-2 * (math.pi * width * u) ** 2)


def alike(found, expected, ulps=1000):
    """Equal up to rounding, real and imaginary parts apart: numbers that a reader can read."""
    parts = (torch.view_as_real(side.to(torch.complex128)) for side in (found, expected))
    return close(*parts, ulps=ulps)


@claim("conv.fourier.definition")
@lie("the inverse has the same sign in the exponent", sign=-1.0)
@lie("angular frequency without a prefactor", angle=1.0)
@lie("the inverse divides by 2π", prefactor=1 / (2 * math.pi))
@lie("the discrete inverse without 1/n", power=0.0)
def transform_and_inverse(draw, sign=1.0, angle=2 * math.pi, prefactor=1.0, power=-1.0):
    """Shifted Gaussians in one and two dimensions against their closed forms, both ways; signals on a circle."""
    t, centre, width = GRID, *draw.uniform(2, low=0.5, high=1.0)
    f = gaussian(t, centre, width)
    F, u = fourier_transform(f, t)
    spectrum = gaussian_spectrum(u, centre, width)
    integrals = torch.exp(-1j * angle * u[:, None] * t) @ f.to(F) * STEP
    back = prefactor * torch.exp(1j * sign * angle * t[:, None] * u) @ spectrum * (u[1] - u[0])
    g = draw.normal(3, 8, 9)
    x, y = torch.arange(8).double() / 2 + 5, torch.arange(9).double() / 3 - 1
    plane, v, w = fourier_transform(g, x, y)
    waves = turn(-(v[:, None, None, None] * x[:, None] + w[:, None, None] * y))  # (v, w, x, y)
    signal = draw.normal(12).to(F)
    circle = turn(torch.outer(torch.arange(12), torch.arange(12)).double() / 12)  # (12, 12)
    return all_of(
        alike(F, spectrum),
        alike(integrals, spectrum),
        alike(back, f),
        alike(plane, torch.einsum("vwxy,bxy->bvw", waves, g.to(F)) / 6),
        alike(inverse_fourier_transform(plane, v, w, start=(5, -1))[0], g),
        alike(12.0**power * circle @ torch.fft.fft(signal), signal),
    )


def _weighted_sum(f, g, alpha, beta):
    return alpha * f + beta * g


def _weighted_product(f, g, alpha, beta):
    return alpha * f * beta * g


def _same_transform(F):
    return F


@claim("conv.fourier.linearity")
@lie("products transform to products", joined=_weighted_product)
@lie("magnitudes add up", read=torch.abs)
@lie("scalars are conjugated", scalar=torch.conj)
def transforms_add_up(draw, joined=_weighted_sum, read=_same_transform, scalar=_same_transform):
    """Complex signals and scalars, in one dimension and in two, with scalars from nothing to a million."""
    x, y = torch.arange(7).double() / 2 + 5, torch.arange(128).double() / 3 - 1
    together, apart = [], []
    for size in (0.0, 1.0, 1e6):
        f, g = torch.complex(draw.normal(2, 7, 128), draw.normal(2, 7, 128))
        alpha, beta = torch.complex(draw.normal(2), draw.normal(2)) * torch.tensor([1.0, size], dtype=torch.float64)
        for grids in ((y,), (x, y)):
            scale = 1 / (1 + size)
            F, G, both = (fourier_transform(h, *grids)[0] for h in (f, g, joined(f, g, alpha, beta)))
            together.append(scale * read(both))
            apart.append(scale * joined(read(F), read(G), scalar(alpha), scalar(beta)))
    return alike(torch.stack(together), torch.stack(apart))


@claim("conv.fourier.duality")
@lie("nothing is turned around", sign=1.0)
@lie("the discrete transform twice, without n", power=0.0)
def twice_is_a_reflection(draw, sign=-1.0, power=1.0):
    """Shifted Gaussians transformed twice, and their closed form once; signals on circles of all sizes up to 17."""
    centre, width = draw.uniform(1, low=0.5, high=1.0), draw.uniform(1, low=0.4, high=0.75)
    F, u = fourier_transform(gaussian(GRID, centre, width), GRID)
    twice, s = fourier_transform(F, u)
    once, v = fourier_transform(gaussian_spectrum(GRID, centre, width), GRID)
    back, reflected = [], []
    for n in range(1, 18):
        f = torch.complex(draw.normal(n), draw.normal(n))
        back.append(torch.fft.fft(torch.fft.fft(f)))
        reflected.append(n**power * f[(sign * torch.arange(n)).round().long() % n])
    return all_of(
        alike(twice, gaussian(sign * s, centre, width)),
        alike(once, gaussian(sign * v, centre, width)),
        alike(torch.cat(back), torch.cat(reflected)),
    )


@claim("conv.fourier.dirac")
@lie("∫ f(x) δ(2x) dx is f(0)", power=0.0)
@lie("the peaks keep their height", scaling=0.0)
@lie("the error falls like σ", order=1.0)
def narrow_peaks_sift(draw, scaling=-1.0, order=2.0, power=-1.0):
    """Peaks down to 1/512 wide, on a grid eight times finer, against an exponential; an impulse among whole numbers."""
    x, f, at = torch.arange(-8000, 8001).double() / 4000, torch.exp, float(draw.uniform(1, low=-0.5, high=0.5))
    sigmas = 2.0 ** -torch.arange(4, 10).double()  # the narrowest last
    peak = (2 * math.pi) ** -0.5 * sigmas[:, None] ** scaling * torch.exp(-(((x - at) / sigmas[:, None]) ** 2) / 2)
    errors = ((peak * f(x)).sum(-1) / 4000 - f(torch.tensor(at, dtype=torch.float64))).abs()
    factors = torch.tensor([-3.0, 0.5, 2.0]).double()
    narrow = sigmas[-1]
    scaled = gaussian(factors[:, None] * x, 0.0, narrow)
    signal, impulse = draw.integers(-9, 10, 6), torch.tensor([0, 0, 1, 0])
    near = slice(6000, 10001, 10)
    drawn = [Line(x[near], peak[i][near], f"σ = 1/{2 ** (4 + i)}") for i in range(3)]
    return all_of(
        # f'' is at most 4 where a peak has any mass; a peak for δ(x / 2) is twice as wide
        close(errors[-1], 0.0, within=2 * narrow**2),
        close(peak.sum(-1) / 4000, 1.0, ulps=1000),
        slope_is(sigmas, errors, order, within=0.02),
        close((scaled * f(x)).sum(-1) / 4000, factors.abs() ** power, within=16 * narrow**2),
        exactly(convolve(impulse, signal)[2:8], signal),
    ).showing(Figure("Peaks of the same area", "x", "height", drawn))


@claim("conv.fourier.dirac_transform")
@lie("the phase turns the other way", sign=1.0)
@lie("with the factor 1/√(2π) of another convention", factor=(2 * math.pi) ** -0.5)
@lie("the wave's integral is L sinc(2Lu)", length=1.0)
def impulses_have_all_frequencies(draw, sign=-1.0, factor=1.0, length=2.0):
    """Impulses at every place of a grid, narrow peaks, and the waves' integral over ever longer stretches."""
    impulses, u = fourier_transform(torch.eye(64).double(), t := torch.arange(-20, 44).double())
    sigmas = torch.tensor([0.2, 0.1, 0.05]).double()[:, None]
    peaks, v = fourier_transform(gaussian(x := torch.arange(-256, 256).double() / 64, 1.0, sigmas), x)
    low = (v.abs() > 0.1) & (v.abs() < 1)
    away = (peaks - factor * turn(sign * v))[:, low].abs()
    nodes, weights = (torch.from_numpy(part) for part in numpy.polynomial.legendre.leggauss(64))
    L = torch.tensor([1.0, 2.0, 3.0]).double()[:, None]
    w = torch.linspace(-2, 2, 41).double()
    waves = (L[..., None] * weights * turn(-L[..., None] * nodes * w[:, None])).sum(-1)  # (L, w)
    beyond = torch.erfc(math.sqrt(2) * math.pi * 0.4 * L[:, 0])  # what frequencies above L add to this Gaussian
    towards = (gaussian(GRID, 0.3, 0.4) * length * L * torch.sinc(2 * L * GRID)).sum(-1) * STEP
    return all_of(
        alike(impulses, factor * turn(sign * t[:, None] * u)),
        at_most(away, 2 * (math.pi * sigmas * v[low]) ** 2),
        alike(waves, length * L * torch.sinc(2 * L * w), ulps=10_000),
        close(towards, gaussian(torch.zeros(3).double(), 0.3, 0.4), within=1e-12 + beyond),
    )
