"""Sensors, noise and colour: what no claim says of them."""

import pytest
import torch

from lemmata.vision import (
    Sensor,
    add_gaussian_noise,
    add_impulse_noise,
    add_shot_noise,
    as_float_image,
    bayer_mosaic,
    bloom,
    demosaic,
    multiply_noise,
    prism_camera,
    quantise,
)


def images(*shape, dtype=torch.float64):
    return torch.rand(shape, generator=torch.Generator().manual_seed(2), dtype=dtype)


def test_a_sensor_counts_clips_and_rounds():
    sensor = Sensor(full_well=100, gain=2.0, read_noise=0.0, bits=8, offset=10.0)
    assert sensor(torch.zeros(3)).tolist() == [10, 10, 10]
    assert sensor(torch.full((3,), 1e6)).tolist() == [210, 210, 210]
    assert Sensor(1000, 2.0, 0.0, 8)(torch.full((2,), 1e6)).tolist() == [255, 255]
    first, again = (sensor(torch.full((50,), 40.0), torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)


def test_the_photon_transfer_curve_turns_at_the_full_well_and_has_gradients():
    sensor = Sensor(full_well=50, gain=0.5, read_noise=2.0, dtype=torch.float64)
    variance = sensor.photon_transfer(torch.linspace(1, 120, 60, dtype=torch.float64))[1].detach()
    top = int(variance.argmax())
    assert 10 < top < 40
    assert variance[-1] == pytest.approx(0.25 * 4 + 1 / 12, abs=1e-6)
    exposure = torch.tensor([10.0, 45.0, 60.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: sensor.photon_transfer(x), exposure)
    sensor.variance_at(torch.tensor([80.0], dtype=torch.float64)).sum().backward()
    assert sensor.gain.grad > 0
    assert sensor.read_noise.grad > 0


@pytest.mark.parametrize("well", [1, 2, 3])
def test_the_smallest_wells_have_their_moments(well):
    mean, variance = Sensor(full_well=well, dtype=torch.float64).clipped_moments(torch.tensor([2.0]).double())
    chance = torch.tensor([2.0**k for k in range(40)]).double() / torch.cumprod(
        torch.arange(40).double().clamp(min=1), 0
    )
    chance, held = chance * torch.tensor(-2.0).double().exp(), torch.arange(40).clamp(max=well).double()
    assert mean.item() == pytest.approx(float(chance @ held), abs=1e-12)
    assert variance.item() == pytest.approx(float(chance @ held**2 - (chance @ held) ** 2), abs=1e-12)


def test_the_variance_at_a_mean_is_that_of_the_photon_transfer_curve_below_saturation():
    sensor = Sensor(full_well=20000, gain=0.7, read_noise=5.0, dtype=torch.float64)
    exposure = torch.tensor([0.0, 10.0, 400.0, 3000.0], dtype=torch.float64)
    mean, variance = sensor.photon_transfer(exposure)
    torch.testing.assert_close(sensor.variance_at(mean), variance, rtol=1e-9, atol=0)
    dark = 0.7**2 * 25 + 1 / 12  # the read noise in digital numbers, and rounding
    assert sensor.variance_at(mean[0] - 5).item() == pytest.approx(dark, rel=1e-12)


def test_anti_blooming_and_charge_at_the_edge():
    charge = torch.zeros(3, 5, dtype=torch.float64)
    charge[0, 2] = 9.0
    held, lost = bloom(charge, 1.0)
    assert held.sum() + lost.sum() == pytest.approx(9.0)
    assert held[:, 2].tolist() == [1, 1, 1]
    assert torch.equal(bloom(charge, 1.0, drained=1.0)[0], charge.clamp(max=1))
    calm = images(4, 6, 5)
    assert torch.equal(bloom(calm, 1.0)[0], calm)
    assert torch.autograd.gradcheck(lambda x: bloom(x, 0.7)[0], images(6, 2).mul(3).requires_grad_())


@pytest.mark.parametrize("pattern", ["rggb", "bggr", "grbg", "gbrg"])
@pytest.mark.parametrize("size", [(2, 2), (5, 6), (7, 4)])
def test_mosaics_keep_what_they_saw(pattern, size):
    image = images(2, 3, *size)
    mosaic = bayer_mosaic(image, pattern)
    back = demosaic(mosaic, pattern)
    assert torch.equal(bayer_mosaic(back, pattern), mosaic)
    flat = torch.full_like(image, 0.25)
    assert torch.equal(demosaic(bayer_mosaic(flat, pattern), pattern), flat)


def test_demosaicing_is_that_of_opencv():
    cv2 = pytest.importorskip("cv2", reason="opencv is not installed")
    mosaic = torch.randint(0, 65536, (20, 22), generator=torch.Generator().manual_seed(0))
    theirs = cv2.cvtColor(mosaic.numpy().astype("uint16"), cv2.COLOR_BayerBG2RGB)  # its names begin at the second pixel
    ours = demosaic(mosaic.double(), "rggb").permute(1, 2, 0).numpy()
    assert ours[1:-1, 1:-1] == pytest.approx(theirs[1:-1, 1:-1].astype(float), abs=0.51)  # theirs is rounded


def test_gradients_pass_through_cameras_and_noise():
    image = images(3, 4, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: demosaic(bayer_mosaic(x)), image)
    assert torch.autograd.gradcheck(lambda x: prism_camera(x, [(0, 1), (0.5, 0), (0, -0.25)]), image)
    noisy = lambda x: multiply_noise(add_gaussian_noise(x, 0.1, torch.Generator().manual_seed(0)), 0.0)  # noqa: E731
    assert torch.autograd.gradcheck(noisy, image)


def test_dark_frames_have_the_noise_of_reading():
    """400,000 pixels: the standard deviation of a variance is 0.0023 of it, six of them are allowed."""
    sensor = Sensor(gain=2.0, read_noise=5.0, offset=200.0)
    dark = sensor(torch.zeros(400_000, dtype=torch.float64), torch.Generator().manual_seed(1))
    assert dark.var().item() == pytest.approx(4 * 25 + 1 / 12, rel=0.014)  # and of rounding


def test_multiplied_noise_is_the_image_times_one_and_a_draw():
    image, sigma = images(4, 5), 0.3
    noise = torch.randn(4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert torch.allclose(multiply_noise(image, sigma, torch.Generator().manual_seed(1)), image + sigma * image * noise)


def test_quantised_values_stand_on_their_levels():
    image = torch.linspace(-0.2, 1.2, 29, dtype=torch.float64)[None]
    for levels in (2, 4, 256):
        found = quantise(image, levels)
        assert torch.allclose(found * (levels - 1), (found * (levels - 1)).round(), atol=1e-12)
        assert (found - image.clamp(0, 1)).abs().max() <= 0.5 / (levels - 1) + 1e-12
        assert (found[0, 0], found[0, -1]) == (0, 1)


def test_integers_become_images_by_name():
    assert as_float_image(torch.tensor([0, 65535], dtype=torch.uint16)).tolist() == [0, 1]
    assert as_float_image(torch.tensor([True, False])).tolist() == [1, 0]
    image = images(2, 2)
    assert as_float_image(image) is image


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Sensor(gain=0), "gain must be > 0, got 0"),
        (lambda: Sensor(read_noise=-1.0), "read_noise must be >= 0, got -1.0"),
        (lambda: Sensor(bits=30), "bits must be <= 24, got 30"),
        (lambda: Sensor()(torch.tensor([-1.0])), "exposure must be >= 0 electrons, got -1: clamp it"),
        (lambda: bloom(torch.full((2, 2), -1.0), 1.0), "charge must be >= 0, got -1: clamp it"),
        (lambda: bloom(torch.ones(2, 2), 0.0), "full_well must be > 0, got 0.0"),
        (lambda: add_gaussian_noise(torch.ones(2, 2), -0.1), "sigma must be >= 0, got -0.1"),
        (lambda: add_shot_noise(-torch.ones(2, 2), 10), "image must be >= 0 to be counted in photons, got -1"),
        (lambda: add_shot_noise(torch.ones(2, 2), 0), "photons must be > 0, got 0"),
        (lambda: add_impulse_noise(torch.ones(2, 2), 2.0), r"fraction must be in \[0, 1\], got 2.0"),
        (lambda: quantise(torch.ones(2, 2), 1), "levels must be >= 2, got 1"),
        (lambda: add_impulse_noise(torch.full((2, 2), torch.nan), 0.1), "image must be finite"),
        (lambda: bayer_mosaic(torch.ones(4, 2, 2)), r"image must be \(..., 3, height, width\) and not empty"),
        (lambda: bayer_mosaic(torch.ones(3, 2, 2), "rgb"), "pattern must be one of rggb, bggr, grbg, gbrg, got 'rgb'"),
        (lambda: demosaic(torch.ones(1, 5)), "mosaic must have at least 2 x 2 pixels, got 1 x 5"),
        (
            lambda: prism_camera(torch.ones(3, 2, 2), [(0, 0)]),
            r"shifts must be \(rows, columns\) for each of 3 channels",
        ),
        (lambda: as_float_image(torch.tensor([-1])), "image must hold no negative integers, got -1"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
