"""Kernels that differentiate, on images whose derivatives are known."""

import math

import torch

from lemmata.judge import all_of, at_most, claim, close, exactly, lie, slope_is
from lemmata.vision.gradient_kernels import (
    difference_kernel,
    image_gradient,
    laplacian_kernel,
    prewitt_kernel,
    sobel_kernel,
)
from lemmata.vision.image_filter import filter_image
from lemmata.vision.restoration import transfer_function


def ramp(along_x, along_y, size=9):
    """An image that rises by so much to the right and so much downwards, as integers."""
    places = torch.arange(size, dtype=torch.float64)
    return along_x * places + along_y * places[:, None]


def interior(image):
    return image[1:-1, 1:-1]


@claim("vision.kernel_laplacian")
@lie("the centre -5, which is not zero on constants", centre=-5.0)
@lie("the error falls like the step itself", order=1.0)
def the_sum_of_second_differences(draw, centre=-4.0, order=2.0, kernel=laplacian_kernel):
    """Integer images against their neighbours, a quadratic, and a Gaussian on finer and finer grids."""
    image, places = draw.integers(-50, 50, 12, 13).double(), torch.arange(-6, 7).double()
    response = interior(filter_image(image, kernel(dtype=torch.float64)))
    beside = image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:]
    bowl = places**2 + places[:, None] ** 2
    affine = ramp(*draw.integers(-9, 10, 2).double())
    steps, errors = 0.5 ** torch.arange(3, 8, dtype=torch.float64), []
    x, y = draw.uniform(2, low=0.2, high=0.4)
    for step in steps:
        near = torch.arange(-2, 3) * step
        g = torch.exp(-((x + near) ** 2 + (y + near[:, None]) ** 2) / 2)
        exact = (x**2 + y**2 - 2) * torch.exp(-(x**2 + y**2) / 2)
        errors.append((filter_image(g, kernel(dtype=torch.float64))[2, 2] / step**2 - exact).abs())
    return all_of(
        exactly(response, beside + centre * interior(image)),
        exactly(interior(filter_image(bowl, kernel(dtype=torch.float64))), torch.full((11, 11), 4.0).double()),
        exactly(interior(filter_image(affine, kernel(dtype=torch.float64))).abs().max(), 0.0),
        exactly(kernel(8).sum(), 0.0),
        slope_is(steps, torch.stack(errors), order, within=0.03),
    )


@claim("vision.kernel_prewitt")
@lie("a ramp gives eight times its slope, as Sobel's kernel", gain=8.0)
@lie("the kernel is turned first, as a convolution does", sign=-1.0)
@lie("the kernel has rank two", rank=2)
def a_difference_over_three_rows(draw, gain=6.0, sign=1.0, rank=1, kernel=prewitt_kernel):
    """Ramps along either axis, constants, and the rank of the matrix."""
    slope, across = draw.integers(1, 30, 2).double()
    x, y = (kernel(axis, torch.float64) for axis in "xy")
    seen = [interior(filter_image(ramp(slope, across), part)) for part in (x, y)]
    whole = torch.ones(7, 7, dtype=torch.float64)
    return all_of(
        exactly(seen[0], sign * gain * slope * whole),
        exactly(seen[1], sign * gain * across * whole),
        exactly(filter_image(draw.integers(0, 9, 1).double() + 0 * whole, x.dense()), 0 * whole),
        exactly(int(torch.linalg.matrix_rank(x.dense())), rank),
        exactly(y.dense(), x.dense().mT),
    )


def direction_error(image, angle, operator):
    """How far the direction of the gradient is off, in degrees, where it is not nearly zero."""
    along_x, along_y = (interior(part) for part in image_gradient(image, operator))
    off = torch.atan2(along_y, along_x) - angle
    off = torch.remainder(off + math.pi / 2, math.pi) - math.pi / 2  # up or down the wave
    size = torch.hypot(along_x, along_y)
    return torch.rad2deg(off.abs()[size > 0.3 * size.max()].max())


@claim("vision.kernel_sobel")
@lie("the middle row counts once: that is Prewitt's kernel", middle=1.0)
@lie("a ramp gives six times its slope", gain=6.0)
def a_difference_smoothed_by_binomials(draw, middle=2.0, gain=8.0, kernel=sobel_kernel):
    """The integers of the kernel, ramps, tilted ramps, and waves in all directions beside Prewitt's kernel."""
    x, y = (kernel(axis, dtype=torch.float64) for axis in "xy")
    slope, across = draw.integers(1, 30, 2).double()
    image, whole = ramp(slope, across), torch.ones(7, 7, dtype=torch.float64)
    tilted = [interior(part) for part in image_gradient(image)]
    angles = draw.uniform(8, low=0.2, high=0.6)
    places = torch.arange(24, dtype=torch.float64)
    waves = [torch.sin(0.8 * (places * a.cos() + places[:, None] * a.sin())) for a in angles]
    errors = [
        [direction_error(w, a, name) for w, a in zip(waves, angles, strict=True)] for name in ("sobel", "prewitt")
    ]
    sides = torch.tensor([1.0, middle, 1.0], dtype=torch.float64)
    return all_of(
        exactly(x.dense(), torch.outer(sides, torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64))),
        exactly(y.dense(), x.dense().mT),
        exactly(interior(filter_image(image, x)), gain * slope * whole),
        exactly(interior(filter_image(ramp(0.0, across), x)), 0 * whole),
        close(torch.atan2(tilted[1], tilted[0]), torch.atan2(across, slope) * whole),
        at_most(torch.stack(errors[0]), 0.7 * torch.stack(errors[1]), detail="of Prewitt's error"),
    )


@claim("vision.kernel_diff")
@lie("second-order accurate at the pixel", order=2.0)
@lie("the response without the factor 2", factor=1.0)
@lie("a ramp gives minus its slope, as a convolution does", sign=-1.0)
def first_differences(draw, order=1.0, factor=2.0, sign=1.0, kernel=difference_kernel):
    """Ramps, a forward and then a backward difference, the response at all frequencies, and smaller steps."""
    x, y = (kernel(axis, torch.float64) for axis in "xy")
    slope, across = draw.integers(1, 30, 2).double()
    seen = [filter_image(ramp(slope, across), part, centre=(0, 0))[:-1, :-1] for part in (x, y)]
    impulse = torch.eye(5, dtype=torch.float64)[2:3]
    twice = filter_image(filter_image(impulse, x, "zeros", (0, 0)), x, "zeros", (0, 1))
    u = torch.arange(17, dtype=torch.float64) / 32
    response = transfer_function(x.dense(), (1, 32), centre=(0, 0))[0].abs()
    steps, at = 0.5 ** torch.arange(8, 16, dtype=torch.float64), draw.uniform(1, low=0.5, high=1.0)
    sampled = torch.sin(at + torch.stack([0 * steps, steps], -1))  # (steps, 2)
    errors = [
        filter_image(row[None], x, centre=(0, 0))[0, 0] / step - at.cos()[0]
        for row, step in zip(sampled, steps, strict=True)
    ]
    whole = torch.ones(8, 8, dtype=torch.float64)
    return all_of(
        exactly(torch.stack(seen), sign * torch.stack([slope * whole, across * whole])),
        exactly(twice[0], torch.tensor([0.0, 1.0, -2.0, 1.0, 0.0], dtype=torch.float64)),
        close(response, factor * torch.sin(math.pi * u).abs()),
        slope_is(steps, torch.stack(errors).abs(), order, within=0.015),
    )
