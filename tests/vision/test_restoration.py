"""Motion blur and restoration: sizes, borders, the choice of the balance, agreement with scikit-image."""

import math

import numpy as np
import pytest
import torch

from lemmata.data.registry import load
from lemmata.measure import psnr
from lemmata.vision import (
    Restoration,
    laplacian_kernel,
    motion_blur_kernel,
    motion_blur_length,
    motion_blur_spectrum,
    transfer_function,
)


def images(*shape, dtype=torch.float64):
    return torch.rand(shape, generator=torch.Generator().manual_seed(6), dtype=dtype)


def photograph(name="camera"):
    return load("photos").parts[name].x[0].mean(0)[:128, :160].double()


@pytest.mark.parametrize("size", [(1, 9), (8, 8), (7, 12), (12, 7), (9, 9)])
@pytest.mark.parametrize("centre", [None, (0, 0), (0, 2)])
def test_transfer_functions_are_those_of_the_fft(size, centre):
    kernel = images(1, 3)
    whole = torch.zeros(size, dtype=torch.float64)
    whole[:1, :3] = kernel
    theirs = torch.fft.rfft2(whole.roll(-(centre or (0, 1))[1], 1))
    assert torch.allclose(transfer_function(kernel, size, centre), theirs, atol=1e-14)


@pytest.mark.parametrize("size", [(8, 8), (7, 12), (12, 7), (9, 9), (1, 8)])
@pytest.mark.parametrize("border", ["circular", "blended"])
def test_sizes_stay_and_a_delta_stays_in_its_place(size, border):
    restoration = Restoration(motion_blur_kernel(3, dtype=torch.float64), border=border)
    delta = torch.zeros(2, *size, dtype=torch.float64)
    delta[:, size[0] // 2, size[1] // 2] = 1.0
    found = restoration(restoration.blur(delta), 1e-6)
    assert found.shape == delta.shape
    assert int(found[0].argmax()) == int(delta[0].argmax())


def test_the_regularised_filter_is_that_of_scikit_image():
    restoration = pytest.importorskip("skimage.restoration", reason="scikit-image is not installed")
    image, kernel, size = images(20, 22), images(3, 3), (20, 22)
    # Theirs weighs each frequency by the square of a Laplacian, and puts the kernel's first tap at the origin.
    theirs = restoration.wiener(image.numpy(), kernel.numpy(), balance=0.1, clip=False)
    weight = transfer_function(laplacian_kernel(dtype=torch.float64), size).abs().square()
    ours = Restoration(kernel, border="circular", centre=(1, 1))(image, 0.1 * weight)
    assert ours.numpy() == pytest.approx(np.asarray(theirs), abs=1e-10)


@pytest.mark.parametrize("by", ["noise", "discrepancy", "cross-validation"])
@pytest.mark.parametrize("noise", [0.003, 0.02])
def test_every_choice_of_the_balance_helps(by, noise):
    scene, kernel = load("photos").parts["camera"].x[0].mean(0).double(), motion_blur_kernel(9, 30, torch.float64)
    blurred = torch.nn.functional.conv2d(scene[None, None], kernel[None, None])[0, 0]  # a camera's own border
    rows, columns = (size // 2 for size in kernel.shape)
    truth = scene[rows:-rows, columns:-columns]
    blurred = blurred + noise * torch.randn(truth.shape, generator=torch.Generator().manual_seed(0)).double()
    restoration = Restoration(kernel, regulariser="gradient")
    found = restoration.restore(blurred, noise, by)
    scores = [float(psnr(x, truth, 1.0)) for x in (found.image, blurred)]
    best = max(float(psnr(restoration(blurred, 10**p), truth, 1.0)) for p in np.arange(-5, 0, 0.5))
    assert scores[0] > scores[1] + 1.0
    assert scores[0] > best - (0.5 if by == "cross-validation" else 2.5)
    assert f"{noise**2:.3g}" in found.reason or "cross-validation" in found.reason


def test_blended_borders_do_not_ring_where_circular_ones_do():
    scene = photograph() + torch.linspace(0, 1, 160).double()  # its left is dark and its right bright
    kernel = motion_blur_kernel(9, dtype=torch.float64)
    wide = torch.nn.functional.conv2d(scene[None, None], kernel[None, None])[0, 0]  # a camera's own border
    truth = scene[:, 4:-4]
    rough, smooth = (Restoration(kernel, border=border)(wide, 1e-3) for border in ("circular", "blended"))
    middle = slice(30, -30)
    errors = [float((found - truth)[:, middle].square().mean()) for found in (rough, smooth)]
    assert errors[1] < 0.5 * errors[0]


def test_the_balance_does_not_depend_on_the_number_of_pixels():
    restoration, tile = Restoration(motion_blur_kernel(3, dtype=torch.float64), border="circular"), images(12, 12)
    small, large = restoration(tile, 0.05), restoration(tile.repeat(3, 2), 0.05)
    assert torch.allclose(small.repeat(3, 2), large, atol=1e-12)


def test_spectra_of_noise_and_image_are_used():
    restoration, image = Restoration(images(3, 3), border="circular"), images(2, 12, 13)
    flat = torch.full((12, 7), 0.3, dtype=torch.float64)
    assert torch.allclose(restoration.wiener(image, 0.03, flat), restoration(image, 0.1))
    assert torch.allclose(restoration.wiener(image, 0.03, 0.3), restoration(image, 0.1))


def test_the_noise_gives_the_balance_of_its_variance_to_that_of_the_image():
    """Written with the whole transform, where each frequency stands once; of odd and of even width."""
    for size in ((9, 8), (8, 9)):
        image, noise = images(2, *size), 0.05
        for regulariser in ("identity", "gradient"):
            restoration = Restoration(images(3, 3), border="circular", regulariser=regulariser)
            chosen = restoration.restore(image, noise, by="noise").balance
            u, v = (torch.fft.fftfreq(n, dtype=torch.float64) for n in (size[1], size[0]))
            penalty = 4 * torch.sin(math.pi * u).square() + 4 * torch.sin(math.pi * v[:, None]).square()
            penalty = penalty if regulariser == "gradient" else torch.ones(size, dtype=torch.float64)
            power = torch.fft.fft2(image).abs().square().mean(0) * penalty / penalty.numel()
            signal = float(power.sum() - power[0, 0]) / penalty.numel() - noise**2 * float(penalty.mean())
            assert chosen == pytest.approx(noise**2 / signal, rel=1e-10)


@pytest.mark.parametrize("size", [(9, 8), (8, 9)])
@pytest.mark.parametrize("regulariser", ["identity", "gradient"])
def test_balances_are_those_of_the_whole_transform(size, regulariser):
    """Discrepancy and cross-validation written out, with every frequency once, over balances of a tenth of a power."""
    image, kernel, noise = images(2, *size), images(3, 3), 0.2
    restoration = Restoration(kernel, border="circular", regulariser=regulariser)
    u, v = (torch.fft.fftfreq(n, dtype=torch.float64) for n in (size[1], size[0]))
    penalty = 4 * torch.sin(math.pi * u).square() + 4 * torch.sin(math.pi * v[:, None]).square()
    penalty = penalty if regulariser == "gradient" else torch.ones(size, dtype=torch.float64)
    power = torch.fft.fft2(image).abs().square().mean(0) / penalty.numel()
    gain = torch.fft.fft2(kernel, s=size).abs().square()
    balances = [10 ** (k / 10) for k in range(-80, 11)]
    left = [balance * penalty / (gain + balance * penalty) for balance in balances]
    misfit = [float((part.square() * power).mean()) for part in left]
    within = [balance for balance, error in zip(balances, misfit, strict=True) if error <= noise**2]
    assert restoration.restore(image, noise, by="discrepancy").balance == pytest.approx(within[-1], rel=1e-9)
    assert restoration.restore(image, 0.0, by="discrepancy").balance == pytest.approx(1e-8, rel=1e-9)
    score = [error / float(part.mean()) ** 2 for error, part in zip(misfit, left, strict=True)]
    crossed = restoration.restore(image)
    assert crossed.balance == pytest.approx(balances[score.index(min(score))], rel=1e-9)
    assert f"{min(score):.3g}, of 91 balances" in crossed.reason


def test_the_balance_of_its_own_is_a_hundredth_and_penalises_as_one_that_is_given():
    restoration, image = Restoration(images(3, 3), regulariser="gradient"), images(12, 13)
    assert torch.allclose(restoration(image), restoration(image, 0.01), rtol=1e-12)


def test_noise_that_drowns_the_image_counts_as_the_image():
    restored = Restoration(images(3, 3), border="circular").restore(images(8, 8), 3.0, by="noise")
    assert restored.balance == pytest.approx(1.0)  # the variance of the image cannot be below that of its noise
    flat = torch.full((8, 8), 0.5, dtype=torch.float64)
    assert Restoration(images(3, 3), border="circular").restore(flat, 0.0, by="noise").balance == 0.0


def test_the_certified_gain_allows_for_the_rounding_of_its_sums():
    kernel = images(3, 5)
    least, bound = Restoration(kernel).certified_gain((12, 14))
    steps = (4 * (3 + 5) + 32) * 2.0**-53
    assert bound == pytest.approx(steps / (1 - steps) * float(kernel.sum()), rel=1e-6, abs=0)
    assert least == pytest.approx(float(torch.fft.fft2(kernel, s=(12, 14)).abs().min()) - bound, rel=1e-9)


def test_the_transfer_function_kept_is_that_of_the_kernel_as_it_is_now():
    restoration, image = Restoration(images(3, 3), border="circular"), images(8, 9)
    before = restoration(image, 0.1)
    with torch.inference_mode():
        assert torch.equal(restoration(image, 0.1), before)
        assert torch.equal(Restoration(images(3, 3), border="circular")(image, 0.1), before)
    with torch.no_grad():
        restoration.kernel.mul_(2.0)
    assert torch.allclose(restoration(image, 0.1), Restoration(restoration.kernel, border="circular")(image, 0.1))
    assert not torch.allclose(restoration(image, 0.1), before)


def test_gradients_of_image_balance_and_state():
    restoration = Restoration(images(3, 3), balance=0.2)
    image = images(6, 7).requires_grad_()
    assert torch.autograd.gradcheck(restoration, image)
    restoration(image.detach()).square().sum().backward()
    assert restoration.log_balance.grad < 0  # more balance, smaller images
    again = Restoration(images(3, 3).tolist(), balance=0.5)
    again.double().load_state_dict(restoration.state_dict())
    assert torch.allclose(again(image), restoration(image), atol=1e-6)
    assert Restoration(images(3, 3).float())(images(8, 8, dtype=torch.float32)).dtype is torch.float32


@pytest.mark.parametrize("length", [1, 2, 2.5, 3, 9])
@pytest.mark.parametrize("angle", [0, 30, 45, 90, 135, 180, 270, -60])
def test_ways_have_unit_mass_and_are_symmetric(length, angle):
    kernel = motion_blur_kernel(length, angle, torch.float64)
    assert kernel.sum().item() == pytest.approx(1.0, abs=1e-14)
    assert torch.allclose(kernel, kernel.flip(0, 1), atol=1e-14)
    assert kernel.shape[0] % 2 == kernel.shape[1] % 2 == 1
    turned = motion_blur_kernel(length, angle + 90, torch.float64)
    assert torch.allclose(turned, kernel.rot90(), atol=1e-12)


@pytest.mark.parametrize(("length", "angle"), [(7, 0), (11, 0), (15, 90), (12, 45)])
def test_lengths_are_read_back(length, angle):
    image = load("photos").parts["coffee"].x[0].mean(0).double()
    blurred = Restoration(motion_blur_kernel(length, angle, torch.float64), border="circular").blur(image)
    found, depth = motion_blur_length(blurred, angle)
    assert abs(found - length) <= (0 if angle % 90 == 0 else 1)
    assert depth > 1


def test_the_longest_length_asked_for_is_looked_at_and_no_longer_one():
    image = photograph()
    blurred = Restoration(motion_blur_kernel(12, dtype=torch.float64), border="circular").blur(image)
    assert motion_blur_length(blurred, 0, max_length=13)[0] == 12  # judged beside both of its neighbours
    assert motion_blur_length(blurred, 0, max_length=12)[0] < 12
    blurred = Restoration(motion_blur_kernel(3, dtype=torch.float64), border="circular").blur(image)
    assert motion_blur_length(blurred, 0)[0] == 3


def test_the_spectrum_turns_with_the_way():
    u, v = images(2, 5)
    assert torch.allclose(motion_blur_spectrum(4, u, v, 90), motion_blur_spectrum(4, v))
    cos, sin = math.cos(math.radians(35)), math.sin(math.radians(35))
    assert torch.allclose(motion_blur_spectrum(4, u, v, 35), motion_blur_spectrum(4, cos * u + sin * v))


@pytest.mark.parametrize("size", [(9, 8), (8, 9)])
def test_noise_is_amplified_by_the_mean_over_all_frequencies(size):
    kernel = images(3, 3) + torch.tensor([[0, 0, 0], [0, 9.0, 0], [0, 0, 0]]).double()
    gains = 1 / torch.fft.fft2(kernel, s=size).abs().square()
    for shape in (size, (3, *size)):
        assert Restoration(kernel).noise_amplification(shape) == pytest.approx(float(gains.mean()), rel=1e-12)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r: r.inverse(torch.zeros(6, 6)), ValueError, "the kernel cancels a frequency of 6 x 6 pixels"),
        (lambda r: r(torch.zeros(6, 2)), ValueError, r"kernel must not be larger than the image, got \(1, 3\)"),
        (lambda r: r(torch.zeros(6, 6), -1.0), ValueError, "balance must be >= 0, got -1.0"),
        (lambda r: r(torch.full((6, 6), math.nan)), ValueError, "image must be finite"),
        (lambda r: r.restore(torch.ones(6, 6), by="noise"), ValueError, "needs the standard deviation of the noise"),
        (lambda r: r.restore(torch.ones(6, 6), -0.1), ValueError, "noise must be >= 0, got -0.1"),
        (lambda r: r.restore(torch.ones(6, 6), by="eye"), ValueError, "by must be one of cross-validation, "),
        (lambda r: r.wiener(torch.ones(6, 6), -1.0, 1.0), ValueError, "noise must be a power, >= 0 and finite, got -1"),
        (
            lambda r: r.wiener(torch.ones(6, 6), math.nan, 1.0),
            ValueError,
            "noise must be a power, >= 0 and finite, got",
        ),
        (lambda r: r.wiener(torch.ones(6, 6), 1.0, 0.0), ValueError, "signal must be a power, > 0, got 0"),
        (
            lambda r: r.wiener(torch.ones(6, 6), torch.ones(6, 6), 1.0),
            ValueError,
            r"noise must be a number or \(6, 4\)",
        ),
        (lambda r: r.wiener(torch.ones(6, 6), 0.0, 1.0), None, ""),
        (lambda r: r.wiener(torch.ones(6, 6), torch.ones(6, 4), 1.0), None, ""),
        (lambda r: Restoration(torch.ones(2, 2)), ValueError, "a kernel of even size has no middle, got 2 x 2"),
        (lambda r: Restoration(torch.ones(3, 3) * 1j), TypeError, "kernel must be real"),
        (lambda r: Restoration(torch.ones(3, 3), balance=0.0), ValueError, "balance must be > 0, got 0.0"),
        (
            lambda r: Restoration(torch.ones(3, 3)).wiener(torch.ones(6, 6), torch.ones(6, 4), 1.0),
            ValueError,
            "circular",
        ),
        (lambda r: motion_blur_kernel(0), ValueError, "length must be > 0, got 0"),
        (lambda r: motion_blur_kernel(3, math.inf), ValueError, "angle must be finite, got inf"),
        (lambda r: motion_blur_length(torch.ones(3, 9, 9)), ValueError, r"image must be \(height, width\)"),
        (lambda r: motion_blur_length(torch.ones(9, 9)), ValueError, "max_length must be from 5 to half"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, error, words):
    restoration = Restoration(motion_blur_kernel(3), border="circular")
    if error is None:
        assert call(restoration).shape == (6, 6)
        return
    with pytest.raises(error, match=words):
        call(restoration)
