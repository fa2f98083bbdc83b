"""Transforms of functions: what linear means, integral operators, and convolution as one of them."""

import itertools
import math
from typing import Any

import sympy
import torch
from scipy.integrate import quad

from lemmata.convolution.claims.fourier import GRID, STEP, alike, gaussian, gaussian_spectrum
from lemmata.convolution.discrete_convolution import convolve
from lemmata.convolution.fourier import fourier_transform
from lemmata.convolution.pooling import pool_nd
from lemmata.convolution.toeplitz import toeplitz_matrix
from lemmata.judge import Figure, Heat, Line, all_of, always, at_most, claim, close, exactly, lie


def _mean_pooling(f):
    return pool_nd(f[None, None], 4, "average")[0, 0]


def _max_pooling(f):
    return pool_nd(f[None, None], 4, "max")[0, 0]


@claim("conv.transform.linear")
@lie("the largest of each window is linear too", pooling=_max_pooling)
@lie("so is a convolution with a constant added", offset=0.5)
def linear_transforms_are_sums_over_impulses(draw, pooling=_mean_pooling, offset=0.0):
    """Convolution, its matrix, the Fourier transform and pooling: sums of signals, and sums over their places."""
    h, t = draw.normal(5), torch.arange(64).double() / 8 - 3
    matrix = toeplitz_matrix(h, 64)
    transforms = [
        lambda f: convolve(f, h) + offset,
        lambda f: matrix @ f,
        lambda f: torch.view_as_real(fourier_transform(f, t)[0]).flatten(),
        pooling,
    ]
    together, apart, places = [], [], []
    for size in (0.0, 1.0, -1e6):
        f, g, (alpha, beta) = draw.normal(64), draw.normal(64), draw.normal(2)
        both, scale = alpha * f + size * beta * g, 1 / (1 + abs(size))
        for T in transforms:
            together.append(T(both) * scale)
            apart.append((alpha * T(f) + size * beta * T(g)) * scale)
            places.append(both @ torch.stack([T(impulse) for impulse in torch.eye(64).double()]) * scale)
    return all_of(
        close(torch.cat(together), torch.cat(apart), ulps=1000),
        close(torch.cat(together), torch.cat(places), ulps=1000),
    )


@claim("conv.integral_operator")
@lie("convolution has the kernel h(u + t)", sign=1.0)
@lie("the Fourier transform in angular frequency", angle=1.0)
def kernels_of_integral_operators(draw, sign=-1.0, angle=2 * math.pi):
    """Kernels as matrices on a grid, applied to shifted Gaussians: against closed forms and the shipped transforms."""
    (a, b), (v, w) = draw.uniform(2, low=0.5, high=1.0), draw.uniform(2, low=0.4, high=0.6)
    f, h = gaussian(GRID, a, v), gaussian(GRID, b, w)
    spectrum, u = fourier_transform(f, GRID)
    waves = torch.exp(-1j * angle * u[:, None] * GRID)  # (u, t)
    slides = gaussian(GRID[:, None] + sign * GRID, b, w)
    both = convolve(f, h) * STEP
    places = 2 * GRID[0] + STEP * torch.arange(len(both)).double()
    heat = Heat(slides[100:300:4, 100:300:4], GRID[100:300:4], GRID[100:300:4], "weight of f(t)")
    return all_of(
        alike(waves @ f.to(waves) * STEP, gaussian_spectrum(u, a, v)),
        alike(spectrum, gaussian_spectrum(u, a, v)),
        close(slides @ f * STEP, gaussian(GRID, a + b, torch.hypot(v, w)), ulps=1000),
        close(both, gaussian(places, a + b, torch.hypot(v, w)), ulps=1000),
    ).showing(Figure("The kernel of a convolution", "t", "u", [heat]))


def _same_function(f):
    return f


def _squared_function(f):
    return f**2


def _given_kernel(H, at_u):
    return H


def _of_the_signal(H, at_u):
    return H * at_u  # as attention weighs by what it finds at u


def _root_kernel(u, t):
    return abs(u - t) ** -0.5  # infinite at u, and integrable


def _jump_kernel(u, t):
    return math.copysign(1.0 + t, t - u)


def _fading_kernel(u, t):
    return math.exp(-abs(t - u))


def _wave_kernel(u, t):
    return math.cos(2 * math.pi * u * t)


EVERYWHERE = (-math.inf, math.inf)
KERNELS = [
    (_root_kernel, (0.0, 1.0)),
    (_jump_kernel, (-1.0, 2.0)),
    (_fading_kernel, (0.0, math.inf)),
    (_wave_kernel, EVERYWHERE),
]


@claim("conv.integral_linear")
@lie("the signal may enter squared", read=_squared_function)
@lie("the kernel may depend on the signal", kernel=_of_the_signal)
def integral_transforms_are_linear(draw, read=_same_function, kernel=_given_kernel):
    """Any kernel and functions, as symbols; integrals one by one, of poles, jumps and waves; the Fourier transform."""
    u, t, low, high, alpha, beta = sympy.symbols("u t t_1 t_2 alpha beta", real=True)
    H, f, g = (sympy.Function(name) for name in "Hfg")

    def transform(f):
        found = sympy.Integral(kernel(H(u, t), f(u)) * read(f(t)), (t, low, high))
        return sympy.factor_terms(found.expand())  # integrals of sums and of multiples are taken apart

    def quadrature(f, H, at, ends):
        words: dict[str, Any] = {"epsabs": 1e-12, "epsrel": 1e-12, "limit": 400}
        words |= {"points": [at]} if math.isfinite(ends[1]) else {}
        return quad(lambda t: kernel(H(at, t), f(at)) * read(f(t)), *ends, **words)[0]

    one, other = draw.uniform(2, low=1.0, high=2.0).tolist()
    first, second = (lambda t: math.exp(-((t - 0.6) ** 2))), (lambda t: -math.exp(-2 * (t + 0.4) ** 2))
    found, sums = [], []
    for (H_of, ends), at in itertools.product(KERNELS, (0.2, 0.72)):
        found.append(quadrature(lambda t: one * first(t) + other * second(t), H_of, at, ends))
        sums.append(one * quadrature(first, H_of, at, ends) + other * quadrature(second, H_of, at, ends))
    mixed = one * torch.exp(-((GRID - 0.6) ** 2)) - other * torch.exp(-2 * (GRID + 0.4) ** 2)
    spectrum = fourier_transform(mixed, GRID)[0][[205, 218]]  # frequencies are 1/25 apart, zero stands at 200
    left = transform(lambda t: alpha * f(t) + beta * g(t)) - alpha * transform(f) - beta * transform(g)
    return all_of(
        always([sympy.expand(left) == 0], detail="any kernel and functions, as symbols"),
        close(found, sums, within=1e-9),
        close(spectrum.real, sums[-2:], within=1e-9),
    )


@claim("conv.definition")
@lie("the kernel is not turned around", sign=1.0)
@lie("half of what the two hold, at most", factor=0.5)
def convolution_of_functions(draw, sign=-1.0, factor=1.0):
    """Both integrals on Gaussians, whose variances add up; boxes in whole numbers; and how much there is in all."""
    (a, b), (v, w) = draw.uniform(2, low=0.5, high=1.0), draw.uniform(2, low=0.4, high=0.6)
    expected = gaussian(GRID, a + b, torch.hypot(v, w))
    kernels = gaussian(GRID[:, None] + sign * GRID, b, w)  # (u, t)
    one = kernels @ gaussian(GRID, a, v) * STEP
    other = gaussian(GRID[:, None] + sign * GRID, a, v) @ gaussian(GRID, b, w) * STEP
    places = 2 * GRID[0] + STEP * torch.arange(2 * len(GRID) - 1).double()
    sampled = convolve(gaussian(GRID, a, v), gaussian(GRID, b, w)) * STEP
    triangle = [*range(1, 50), 50, *range(49, 0, -1)]
    signals = torch.cat([draw.normal(20, 2, 30), draw.uniform(1, 2, 30)])  # the last two nowhere negative
    held = torch.stack([convolve(f, h).abs().sum() for f, h in signals])
    near, two = slice(126, 255), 222  # from -4 to 4, and the place of u = 2
    drawn = {"f": gaussian(GRID, a, v), "h moved to u = 2": kernels[two], "f * h": one}
    lines = [Line(GRID[near], line[near], name) for name, line in drawn.items()]
    return all_of(
        close(one, expected, ulps=1000),
        close(other, expected, ulps=1000),
        close(sampled, gaussian(places, a + b, torch.hypot(v, w)), ulps=1000),
        exactly(convolve(torch.ones(50).long(), torch.ones(50).long()), triangle),
        at_most(held, factor * signals.abs().sum(-1).prod(-1), attained=True),
    ).showing(Figure("The signal, the kernel at one place, and their convolution", "t", marks=lines))
