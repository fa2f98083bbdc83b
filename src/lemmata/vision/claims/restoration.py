"""Blur and restoration: what can be undone, what noise makes of it, and the motion behind it."""

import math

import numpy
import torch

from lemmata.data.registry import load
from lemmata.judge import all_of, at_least, at_most, claim, close, exactly, lie
from lemmata.vision.motion_blur import motion_blur_kernel, motion_blur_length, motion_blur_spectrum
from lemmata.vision.restoration import Restoration, transfer_function


def photograph(size=64):
    return load("photos").parts["camera"].x[0].mean(0)[60 : 60 + size, 60 : 60 + size].double()


def by_shifts(image, kernel, centre):
    """The circular convolution, tap by tap."""
    total = torch.zeros_like(image)
    for i in range(kernel.shape[0]):
        for j in range(kernel.shape[1]):
            total += kernel[i, j] * image.roll((i - centre[0], j - centre[1]), (-2, -1))
    return total


def kernel_without_zeros(draw):
    """A kernel that is not symmetric, most of its mass on one tap beside the middle: no frequency is lost."""
    kernel = 0.05 * draw.uniform(3, 3)
    kernel[0, 2] = 1.0
    return kernel


def centred_spectrum(kernel, side):
    """The whole spectrum of a 3 x 3 kernel whose middle is at the origin."""
    whole = torch.zeros(side, side, dtype=torch.float64)
    whole[:3, :3] = kernel
    return torch.fft.fft2(whole.roll((-1, -1), (0, 1)))


@claim("vision.degradation")
@lie("the inverse comes first and the blur undoes it", printed="001/1", arrows=("inverse", "blur"))
@lie("blurring again restores", arrows=("blur", "blur"))
def blur_then_restore(draw, arrows=("blur", "inverse"), restoration=Restoration):
    """The degraded image against the convolution tap by tap, and the image itself at the end of both arrows."""
    kernel, image = kernel_without_zeros(draw), draw.uniform(5, 24, 25)
    both = restoration(kernel, border="circular")
    first, second = (getattr(both, name) for name in arrows)
    degraded = first(image)
    return all_of(
        close(degraded, by_shifts(image, kernel, (1, 1)), ulps=1024),
        close(second(degraded), image, within=1e-12),
    )


@claim("vision.inverse_filter")
@lie("the spectrum is divided by twice", power=-2.0)
@lie(
    "stable under noise for every kernel",
    factor=0.0,
    regime="little noise is amplified to little",
    loose="more noise makes it worse",
)
def one_over_the_spectrum(draw, power=-1.0, factor=1.0, restoration=Restoration):
    """Impulses against the power of the spectrum, exact images, certified bounds, and noise after motion blur."""
    kernel, size = kernel_without_zeros(draw), (20, 21)
    both = restoration(kernel, border="circular")
    impulse = torch.zeros(size, dtype=torch.float64)
    impulse[0, 0] = 1.0
    response = torch.fft.rfft2(both.inverse(impulse))
    image, noise = photograph(63), 0.01 * draw.normal(63, 63)
    motion = restoration(motion_blur_kernel(8, dtype=torch.float64), border="circular")
    degraded = motion.blur(image)
    worse = (motion.inverse(degraded + factor * noise) - image).square().mean()
    least = torch.fft.fft2(kernel, s=size).abs().min()
    bounds = [both.certified_gain(size, dtype)[0] for dtype in (torch.float64, torch.float32)]
    cancelled = restoration(motion_blur_kernel(7, dtype=torch.float64)).certified_gain((63, 63))[0]
    return all_of(
        close(response, transfer_function(kernel, size).to(response) ** power, ulps=4096),
        close(motion.inverse(degraded), image, within=1e-8),
        at_least(worse, (degraded - image).square().mean()),
        at_most(torch.tensor(bounds, dtype=torch.float64), least),
        at_least(torch.tensor(bounds, dtype=torch.float64), 0.99 * least),
        at_most(cancelled, 0.0),
    )


@claim("vision.noise_amplification")
@lie("the error grows with one over the spectrum itself", power=1.0)
@lie("frequencies beside a zero are lost as well", multiple=0.5)
def small_gains_amplify(draw, power=2.0, multiple=1.0, restoration=Restoration):
    """The filter's own matrix on white noise, one noise by its spectrum, and waves that no blur lets pass."""
    kernel, side = kernel_without_zeros(draw), 12
    both = restoration(kernel, border="circular")
    impulses = torch.eye(side * side, dtype=torch.float64).reshape(-1, side, side)
    matrix = both.inverse(impulses).reshape(side * side, -1)
    gains = centred_spectrum(kernel, side).abs() ** -power
    noise, image = draw.normal(side, side), draw.normal(side, side)
    error = (both.inverse(both.blur(image) + noise) - image).square().sum()
    spectrum = torch.fft.fft2(noise).abs().square() * gains / side**2
    box = restoration(motion_blur_kernel(3, dtype=torch.float64), border="circular")
    wave = torch.cos(2 * math.pi * multiple * torch.arange(24).double() / 3 + draw.uniform(1)).expand(24, 24)
    scene = draw.normal(24, 24)
    return all_of(
        close((matrix.mT @ matrix).diagonal(), gains.mean(), ulps=4096),
        close(both.noise_amplification((side, side)), gains.mean(), ulps=4096),
        close(error, spectrum.sum(), ulps=2**16),
        close(box.blur(scene + wave), box.blur(scene), within=1e-12),
        at_most(box.certified_gain((24, 24))[0], 0.0),
    )


def itself(spectrum):
    return spectrum


def expected_error(response, transfer, noise, signal):
    """Of a linear filter, for images and noise of these power spectra."""
    return ((1 - response * transfer).abs() ** 2 * signal + response.abs() ** 2 * noise).mean()


@claim("vision.wiener")
@lie("without the complex conjugate", printed="001/1", phase=itself)
@lie("the spectrum itself in the denominator, not its square", power=1.0)
@lie("the ratio of amplitudes for white signal and noise", ratio=0.5)
def the_least_of_error_and_size(draw, phase=torch.conj, power=2.0, ratio=1.0, restoration=Restoration):
    """An off-centre kernel: normal equations, the expected error for white and coloured spectra, and a photograph."""
    kernel, side, balance = kernel_without_zeros(draw), 12, float(draw.uniform(1, low=0.05, high=0.2))
    both = restoration(kernel, border="circular")
    impulses = torch.eye(side * side, dtype=torch.float64).reshape(-1, side, side)
    matrix = both.blur(impulses).reshape(side * side, -1).mT  # circulant
    image = draw.normal(side, side)
    least = torch.linalg.solve(
        matrix.mT @ matrix + balance * torch.eye(side * side).double(), matrix.mT @ image.flatten()
    )
    transfer = centred_spectrum(kernel, side)
    formula = lambda e: phase(transfer) / (transfer.abs() ** power + e)  # noqa: E731
    by_formula = torch.fft.ifft2(formula(balance) * torch.fft.fft2(image)).real
    noise, signal = 0.04, 0.5
    balances = (noise / signal) ** ratio * torch.tensor([0.97, 1.0, 1.03], dtype=torch.float64)
    white = torch.stack([expected_error(formula(e), transfer, noise, signal) for e in balances])
    falling = (
        1 / (1 + 50 * (torch.fft.fftfreq(side).double() ** 2 + torch.fft.fftfreq(side).double()[:, None] ** 2)) ** 2
    )
    coloured = [expected_error(formula(e), transfer, noise, falling) for e in torch.logspace(-4, 1, 60).double()]
    scene, motion = photograph(), restoration(motion_blur_kernel(9, dtype=torch.float64), border="circular")
    degraded = motion.blur(scene) + 0.01 * draw.normal(64, 64)
    errors = [
        (guess - scene).square().mean()
        for guess in (motion.restore(degraded, 0.01).image, degraded, motion.inverse(degraded))
    ]
    return all_of(
        close(both(image, balance).flatten(), least, ulps=4096),
        close(both(image, balance), by_formula, ulps=4096),
        at_most(white[1], white),
        at_least(torch.stack(coloured), 1.01 * expected_error(formula(noise / falling), transfer, noise, falling)),
        close(both(both.blur(image), 1e-9), image, within=1e-6),
        at_most(errors[0], 0.7 * torch.stack(errors[1:])),
    )


@claim("vision.motion_blur")
@lie("divided by l: the mass is 2", normaliser=1.0)
@lie("the way is an even number of pixels, half a pixel aside", aside=0.5)
def the_mean_of_shifted_images(draw, normaliser=2.0, aside=0.0, kernel=motion_blur_kernel):
    """Horizontal ways against means of shifted images, masses and middles at all angles, and an impulse."""
    image, found, means, masses, middles = draw.uniform(20, 31), [], [], [], []
    for length in (3, 5, 9):
        h, half = kernel(length, dtype=torch.float64), length // 2
        found.append(Restoration(h, border="circular").blur(image))
        shifted = torch.stack([image.roll(k, 1) for k in range(-half, half + 1)]).sum(0)
        means.append(shifted / (normaliser * length / 2))
    for angle in (0, 30, 45, 90, *draw.uniform(4, high=180.0).tolist()):
        h = kernel(float(draw.uniform(1, low=1.5, high=15.0)), angle, torch.float64)
        masses.append(h.sum())
        across = torch.arange(h.shape[1]).double() - h.shape[1] // 2
        middles.append((h.sum(0) * across).sum())
    impulse = torch.zeros(9, 31, dtype=torch.float64)
    impulse[4, 15] = 1.0
    rows = Restoration(kernel(7, dtype=torch.float64), border="circular").blur(impulse).abs().amax(1)
    return all_of(
        close(torch.stack(found), torch.stack(means), ulps=256),
        close(torch.stack(masses), 1.0),
        close(torch.stack(middles), aside, scale=15.0),
        at_most(rows[[0, 1, 2, 3, 5, 6, 7, 8]], 1e-15),
    )


@claim("vision.motion_blur_spectrum")
@lie("sinc of lu, with half as many zeros", factor=1.0)
@lie("zeros at multiples of twice the distance", period=2.0)
def stripes_of_zeros(draw, factor=2.0, period=1.0, kernel=motion_blur_kernel):
    """An integral against sinc, the zeros of discrete kernels, and lengths read back from a photograph."""
    nodes, weights = (torch.from_numpy(part) for part in numpy.polynomial.legendre.leggauss(60))
    half, u = float(draw.uniform(1, low=1.0, high=4.0)), draw.uniform(40, low=-1.0, high=1.0)
    integral = torch.cos(2 * math.pi * u[:, None] * half * nodes) @ weights / 2
    zeros, found = [], []
    for n, size in ((3, 24), (5, 30), (9, 36)):
        response = transfer_function(kernel(n, dtype=torch.float64), (size, size)).abs()  # (v, u)
        zeros.append([k for k in range(1, size // 2 + 1) if k % (period * size / n) == 0])
        found.append([k for k in range(size // 2 + 1) if float(response[:, k].max()) < 1e-12])
    length = int(draw.choice([7, 9, 12, 15]))
    image = load("photos").parts["camera"].x[0].mean(0)[:192, :192].double()
    blurred = Restoration(kernel(length, dtype=torch.float64), border="circular").blur(image)
    return all_of(
        close(motion_blur_spectrum(2 * half, u), integral, scale=1.0, ulps=1024),
        close(integral, torch.sinc(factor * half * u), scale=1.0, ulps=1024),
        exactly(str(found), str(zeros)),
        exactly(motion_blur_length(blurred)[0], length),
    )
