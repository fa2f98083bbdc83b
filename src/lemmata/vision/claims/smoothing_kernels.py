"""Kernels that smooth: masses, spectra, and what is left without them."""

import math

import torch

from lemmata.convolution.discrete_convolution import convolve
from lemmata.judge import all_of, at_most, claim, close, exactly, lie
from lemmata.vision.image_filter import filter_image
from lemmata.vision.image_noise import noise_gain
from lemmata.vision.restoration import transfer_function
from lemmata.vision.smoothing_kernels import box_kernel, gaussian_filter, gaussian_kernel, highpass_kernel


def signed(response):
    return response


def dirichlet(n, u):
    """The mean of n waves of neighbouring phases."""
    return torch.where(u == 0, 1.0, torch.sin(math.pi * n * u) / (n * torch.sin(math.pi * u).where(u != 0, 1.0)))


@claim("vision.kernel_box")
@lie("the noise is divided by n", power=1.0)
@lie("the spectrum is nowhere negative, like the Gaussian's", lobes=torch.abs)
def the_local_mean(draw, power=2.0, lobes=signed, kernel=box_kernel):
    """Constants, the variance of white noise, and the spectrum against a product of Dirichlet kernels."""
    spectra, predicted, gains, constants = [], [], [], []
    for n in (3, 5, 9):
        box, level = kernel(n, torch.float64), draw.uniform(1)
        constants.append(filter_image(level.expand(12, 12), box) - level)
        gains.append(noise_gain(box) * n**power)
        u, v = torch.arange(32).double() / 32, torch.arange(17).double() / 32
        u = torch.where(u > 0.5, u - 1, u)
        spectra.append(transfer_function(box.dense(), (32, 32)).real)
        predicted.append(lobes(dirichlet(n, u)[:, None] * dirichlet(n, v)))
    found = torch.stack(spectra)
    return all_of(
        close(torch.stack(constants), 0.0, scale=1.0),
        close(torch.stack(gains), 1.0),
        close(found, torch.stack(predicted), scale=1.0),
        at_most(found.amin((1, 2)), -0.1),
    )


@claim("vision.kernel_highpass")
@lie("the coefficients sum to 1", total=1.0)
@lie("the centre of the smallest is 1", centre=1.0)
def what_the_mean_leaves(draw, total=0.0, centre=8 / 9, kernel=highpass_kernel):
    """Constants, an image put together again from both parts, and both spectra."""
    image, level = draw.normal(2, 15, 14), draw.uniform(1, low=0.5)
    parts, spectra, sums = [], [], []
    for n in (3, 5, 7):
        high, low = kernel(n, torch.float64), box_kernel(n, torch.float64)
        parts.append(filter_image(image, high) + filter_image(image, low))
        spectra.append(transfer_function(high, (16, 16)) + transfer_function(low.dense(), (16, 16)))
        sums.append(filter_image(level.expand(9, 9), high) / level)
    return all_of(
        close(torch.stack(sums), total, scale=1.0),
        close(torch.stack(parts), image.expand(3, 2, 15, 14)),
        close(torch.stack(spectra), torch.ones(3, 16, 9, dtype=torch.complex128)),
        close(kernel(3, torch.float64)[1, 1], centre),
    )


@claim("vision.kernel_gaussian")
@lie("normalised as in one dimension, by one factor of sigma", power=1.0)
@lie("standard deviations add", exponent=1.0)
@lie("the transform falls half as fast in the exponent", rate=1.0)
def gaussians_stay_gaussian(draw, power=2.0, exponent=2.0, rate=2.0, kernel=gaussian_kernel):
    """The formula at every tap, two kernels after one another, an image smoothed twice, and the transform."""
    one, two = (float(value) for value in draw.uniform(2, low=2.0, high=3.0))
    both = (one**exponent + two**exponent) ** (1 / exponent)
    k1, k2, joined = (kernel(sigma, 8.0, torch.float64) for sigma in (one, two, both))
    reach = (len(k1.row) - 1) // 2
    x = torch.arange(-reach, reach + 1).double()
    formula = torch.exp(-(x**2 + x[:, None] ** 2) / (2 * one**2)) / (2 * math.pi * one**power)
    whole = convolve(k1.row, k2.row)
    more = (len(whole) - len(joined.row)) // 2
    short = whole[more : len(whole) - more] if more >= 0 else whole
    long = joined.row if more >= 0 else joined.row[-more:more]
    u = torch.arange(17).double() / 32
    image = draw.normal(120, 120)
    twice = gaussian_filter(gaussian_filter(image, one, 8.0, "circular"), two, 8.0, "circular")
    # Beyond 8 standard deviations, and between samples 2 of them apart, less than 1e-8 is lost.
    return all_of(
        close(k1.dense(), formula, within=1e-9),
        close(formula.sum(), 1.0, within=1e-8),
        close(short, long, within=1e-7),
        close(twice, gaussian_filter(image, both, 8.0, "circular"), within=1e-6),
        close(
            transfer_function(kernel(one, 8.0, torch.float64).row[None], (1, 64))[0].real[::2],
            torch.exp(-rate * (math.pi * one * u) ** 2),
            within=1e-7,
        ),
        exactly(k1.column, k1.row),
    )
