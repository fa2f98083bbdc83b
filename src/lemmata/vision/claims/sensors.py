"""Sensors: charge, noise and colour."""

import math

import torch
from scipy import stats

from lemmata.judge import all_of, at_least, at_most, claim, close, exactly, law_is, lie, mean_is
from lemmata.vision.blooming import bloom
from lemmata.vision.colour_camera import bayer_mosaic, demosaic, prism_camera
from lemmata.vision.image_filter import filter_image
from lemmata.vision.image_noise import (
    add_gaussian_noise,
    add_impulse_noise,
    add_shot_noise,
    multiply_noise,
    noise_gain,
    quantise,
)
from lemmata.vision.sensor import Sensor
from lemmata.vision.smoothing_kernels import box_kernel, gaussian_filter, median_filter


@claim("vision.ccd")
@lie("the variance does not depend on the exposure", shot=0.0)
@lie("in digital numbers, too, the slope is one", power=0.0)
@lie("rounding adds a quarter", rounding=1 / 4)
def noise_tells_the_gain(draw, shot=1.0, power=1.0, rounding=1 / 12, sensor=Sensor):
    """Mean and variance below saturation, exact moments at the full well, and frames of a simulated sensor."""
    gain, read = float(draw.uniform(1, low=0.3, high=0.6)), float(draw.uniform(1, low=2, high=6))
    camera = sensor(full_well=900, gain=gain, read_noise=read, dtype=torch.float64)
    exposure = torch.linspace(0, 600, 13, dtype=torch.float64)
    mean, variance = camera.photon_transfer(exposure)
    line = shot * gain**power * (mean - 64) + (gain * read) ** 2 + rounding
    near, count = torch.tensor([850.0, 900.0, 950.0, 1200.0], dtype=torch.float64), torch.arange(3000)
    chance = torch.from_numpy(stats.poisson.pmf(count.numpy(), near.numpy()[:, None]))  # (4, 3000)
    held = count.clamp(max=900).double()
    full = chance @ held, chance @ held**2 - (chance @ held) ** 2
    frames = lambda n: camera(torch.full((n,), 400.0, dtype=torch.float64), draw.generator).detach()  # noqa: E731
    dark = sensor(900, gain, 0.0, dtype=torch.float64).read(torch.tensor([10.0, 1e9], dtype=torch.float64))
    return all_of(
        close(mean, gain * exposure + 64),
        close(variance, line, ulps=1e7),  # a difference of squares of up to 900 electrons
        close(torch.stack(camera.clipped_moments(near)), torch.stack(full), within=1e-6),
        mean_is(lambda d: (d - gain * 400 - 64) ** 2, frames, line[8], effect=3.0),
        exactly(camera.electrons(torch.full((50,), 1e5, dtype=torch.float64), draw.generator).max(), 900.0),
        exactly(dark.detach(), torch.tensor([round(gain * 10 + 64), 4095.0], dtype=torch.float64)),
    )


def row_by_row(charge, full_well, down):
    """One electron channel after the other, row by row: what runs down, and then what runs up."""
    held, lost = charge.clamp(max=full_well), 0.0
    excess = charge - held
    for fraction, rows in ((down, range(len(charge))), (1 - down, range(len(charge) - 1, -1, -1))):
        carried = torch.zeros(charge.shape[1], dtype=charge.dtype)
        for row in rows:
            taken = torch.minimum(carried, full_well - held[row])
            held[row] += taken
            carried = carried - taken + fraction * excess[row]
        lost = lost + carried
    return held, lost


def sideways(charge, full_well):
    """What is too much goes to all four neighbours alike."""
    excess = (charge - full_well).clamp(min=0)
    around = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]).double() / 4
    return charge - excess + filter_image(excess, around, "zeros"), charge.new_zeros(charge.shape[-1])


@claim("vision.blooming")
@lie("charge spreads to all sides", spill=sideways)
@lie("three quarters of it run down", down=0.75)
def charge_runs_along_its_column(draw, spill=bloom, down=0.5):
    """Streaks against a simulation row by row: all charge is there, other columns are untouched, lengths grow."""
    charge = draw.uniform(40, 12, high=0.8)
    charge[draw.integers(5, 35, 3), torch.tensor([2, 5, 9])] = draw.uniform(3, low=3.0, high=6.0)
    charge[20, 5] = 60.0  # enough to reach the edges
    held, lost = spill(charge, 1.0)
    queue, over = row_by_row(charge, 1.0, down)
    calm = [k for k in range(12) if k not in (2, 5, 9)]
    spot = torch.zeros(60, 3, dtype=torch.float64)
    lengths = []
    for exposure in (0.9, 3.0, 9.0, 27.0):
        spot[30, 1] = exposure
        lengths.append(int((spill(spot, 1.0)[0] > 0).sum()))
    return all_of(
        close(held, queue, scale=60.0),
        close(lost, over, scale=60.0),
        close(held.sum() + lost.sum(), charge.sum(), ulps=256),
        exactly(held[:, calm], charge[:, calm]),
        exactly(lengths, [1, 3, 9, 27]),
    )


@claim("vision.noise_gaussian")
@lie("a filter multiplies the variance by the sum of its weights", power=1.0)
@lie("averaging N frames divides the standard deviation by N", frames=2.0)
@lie("the noise grows with the brightness", noise=multiply_noise)
def filters_average_noise(draw, power=2.0, frames=1.0, noise=add_gaussian_noise):
    """The noise of one image by its distribution, and what filters and averages make of it, by their matrices."""
    sigma, level = 0.1, torch.tensor(0.5, dtype=torch.float64)
    residual = lambda n: (noise(level.expand(1, n), sigma, draw.generator) - 0.5)[0] / sigma  # noqa: E731
    impulses = torch.eye(64, dtype=torch.float64).reshape(64, 8, 8)
    found, predicted = [], []
    for kernel in (draw.normal(3, 5), box_kernel(3, torch.float64).dense(), box_kernel(5, torch.float64).dense()):
        matrix = filter_image(impulses, kernel, "circular").reshape(64, 64)  # (from, to)
        found += [(matrix.mT @ matrix).diagonal(), noise_gain(kernel).expand(64)]
        predicted += [(kernel.abs() ** power).sum().expand(64)] * 2
    n = 64
    stack = noise(level.expand(n, 200, 200), sigma, draw.generator)
    ratio = stack.mean(0).var() / stack.var(0).mean() * n**frames
    return all_of(
        law_is(residual, lambda z: 0.5 * torch.erfc(-z / math.sqrt(2)), effect=0.02),
        close(torch.stack(found), torch.stack(predicted), ulps=256),
        close(ratio, 1.0, within=0.05),  # 40,000 means: seven standard errors of 0.7 %
    )


def box_filter(image):
    return filter_image(image, box_kernel(3, torch.float64))


@claim("vision.noise_models")
@lie("rounding to levels q apart has variance q^2/4", divisor=4.0)
@lie("the variance of shot noise does not depend on the brightness", shot=0.0)
@lie("multiplied noise is the same at every brightness", multiplied=0.0)
@lie("a median is the better filter for Gaussian noise, too", smoother=median_filter)
def each_noise_has_its_moments(draw, divisor=12.0, shot=1.0, multiplied=2.0, smoother=box_filter):
    """Moments of shot, rounding and multiplied noise; the median and the mean on pixels that are wrong or uncertain."""
    flat, photons = (lambda f, n: torch.full((1, n), f, dtype=torch.float64)), 40.0
    counted = lambda n: (add_shot_noise(flat(0.25, n), photons, draw.generator) - 0.25)[0] ** 2 * photons  # noqa: E731
    scaled = lambda n: (multiply_noise(flat(0.5, n), 0.2, draw.generator) - 0.5)[0] ** 2  # noqa: E731
    levels = int(draw.integers(5, 60, 1))
    grid = (torch.arange(1000 * (levels - 1)) + 0.5).double() / (1000 * (levels - 1))
    error = (quantise(grid[None], levels) - grid).square().mean() * (levels - 1) ** 2
    grey = torch.full((80, 80), 0.5, dtype=torch.float64)
    peppered = add_impulse_noise(grey, 0.1, draw.generator)
    grainy = add_gaussian_noise(grey, 0.1, draw.generator)
    mse = lambda found: (found - 0.5).square().mean()  # noqa: E731
    return all_of(
        mean_is(lambda v: v, counted, 0.25**shot, effect=0.005, alpha=5e-10),
        mean_is(lambda v: v, scaled, 0.2**2 * 0.5**multiplied, effect=0.0002, alpha=5e-10),
        close(error, 1 / divisor, within=1e-6),
        close((peppered != 0.5).double().mean(), 0.1, within=0.03),
        at_most(mse(median_filter(peppered)), 0.2 * mse(box_filter(peppered))),
        at_most(mse(smoother(grainy)), 0.8 * mse(median_filter(grainy))),  # of nine: 0.67, asymptotically 2 / pi
    )


def edges(draw):
    """Two colours side by side, with an edge that a lens has softened."""
    colours = draw.uniform(2, 3, 1, 1)
    side = (torch.arange(32) > 15).double().expand(1, 32, 32)
    return gaussian_filter(torch.where(side > 0, colours[0], colours[1]).expand(3, 32, 32), 1.5)


@claim("vision.colour_camera")
@lie("an image is exact however the sensors stand", shift=1.0)
@lie(
    "a misaligned prism is no worse than a mosaic",
    moved=0.0,
    regime="a small misalignment errs less than a mosaic",
    loose="a larger one errs more",
)
@lie("a third of the mosaic is green", green=1 / 3)
@lie("the mosaic is read from the wrong pixel on", order="grbg")
def prisms_and_mosaics(draw, shift=0.0, moved=1.0, green=1 / 2, order="rggb"):
    """An aligned prism, affine images through a mosaic, the fractions of its colours, and edges under both."""
    image = draw.uniform(3, 18, 20)
    aligned = prism_camera(image, [(0.0, shift), (0.0, 0.0), (shift, 0.0)])
    a, b, c = draw.normal(3, 3, 1, 1)
    affine = a + b * torch.arange(14).double() + c * torch.arange(12).double()[:, None]
    back = demosaic(bayer_mosaic(affine, "rggb"), order)[:, 1:-1, 1:-1]
    marked = [bayer_mosaic(torch.eye(3).double()[k][:, None, None].expand(3, 16, 16)).mean() for k in range(3)]
    edge = draw.until(lambda: edges(draw), lambda e: bool((e[:, 0, 0] - e[:, 0, -1]).abs().min() > 0.2))
    off = prism_camera(edge, [(0.0, moved), (0.0, 0.0), (0.0, -moved)])
    by_mosaic, by_prism = ((seen - edge).square().mean() for seen in (demosaic(bayer_mosaic(edge)), off))
    return all_of(
        exactly(aligned, image),
        close(back, affine[:, 1:-1, 1:-1], ulps=256),
        close(torch.stack(marked), torch.tensor([1 / 4, green, 1 / 4], dtype=torch.float64)),
        at_least(by_prism, 3 * by_mosaic),
    )
