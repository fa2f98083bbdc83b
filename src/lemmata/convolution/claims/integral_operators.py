"""Transforms of functions: what linear means, integral operators, and convolution as one of them."""

import math

import sympy
import torch

from lemmata.convolution.claims.fourier import GRID, STEP, alike, gaussian, gaussian_spectrum
from lemmata.convolution.discrete_convolution import convolve
from lemmata.convolution.fourier import fourier_transform
from lemmata.convolution.toeplitz import toeplitz_matrix
from lemmata.judge import Figure, Heat, Line, all_of, at_most, claim, close, exactly, lie, symbolic


def _mean(f):
    return torch.nn.functional.avg_pool1d(f[None, None], 4)[0, 0]


def _max(f):
    return torch.nn.functional.max_pool1d(f[None, None], 4)[0, 0]


@claim("conv.transform.linear")
@lie("the largest of each window is linear too", pooling=_max)
@lie("so is a convolution with a constant added", offset=0.5)
def linear_transforms_are_sums_over_impulses(draw, pooling=_mean, offset=0.0):
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
    places = 2 * GRID[0] + STEP * torch.arange(len(both))
    heat = Heat(slides[100:300:4, 100:300:4], GRID[100:300:4], GRID[100:300:4], "weight of f(t)")
    return all_of(
        alike(waves @ f.to(waves) * STEP, gaussian_spectrum(u, a, v)),
        alike(spectrum, gaussian_spectrum(u, a, v)),
        close(slides @ f * STEP, gaussian(GRID, a + b, torch.hypot(v, w)), ulps=1000),
        close(both, gaussian(places, a + b, torch.hypot(v, w)), ulps=1000),
    ).showing(Figure("The kernel of a convolution", "t", "u", [heat]))


def _itself(f):
    return f


def _square(f):
    return f**2


def _given(H, at_u):
    return H


def _of_the_signal(H, at_u):
    return H * at_u  # as attention weighs by what it finds at u


@claim("conv.integral_linear")
@lie("the signal may enter squared", read=_square)
@lie("the kernel may depend on the signal", kernel=_of_the_signal)
def integral_transforms_are_linear(draw, read=_itself, kernel=_given):
    """Lines with any coefficients, between any limits, as symbols; 100 random kernels on 40 places."""
    u, t, low, high, alpha, beta, p, q, r = sympy.symbols("u t t_1 t_2 alpha beta p q r", real=True)
    f, g, H = p + t, q, u + r * t

    def transform(f):
        return sympy.integrate(sympy.expand(kernel(H, f.subs(t, u)) * read(f)), (t, low, high))

    kernels, signals, scalars = draw.normal(100, 40, 40), draw.normal(2, 100, 40, 1), draw.normal(2, 100, 1, 1)
    scalars = scalars * 10.0 ** draw.integers(-6, 7, 2, 100, 1, 1)

    def discrete(f):
        return (kernel(kernels, f) @ read(f)) / 40

    one, other = scalars * torch.stack([discrete(signal) for signal in signals])
    size = scalars.abs().sum(0)
    return all_of(
        symbolic(
            sympy.expand(transform(alpha * f + beta * g)), sympy.expand(alpha * transform(f) + beta * transform(g))
        ),
        close(discrete((scalars * signals).sum(0)) / size, (one + other) / size, ulps=1000),
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
    places = 2 * GRID[0] + STEP * torch.arange(2 * len(GRID) - 1)
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
