"""Reconstruction and resizing, against their definitions and scikit-image."""

import pytest
import torch

from lemmata.vision import (
    gaussian_reconstruct,
    periodic_reconstruct,
    resize_image,
    sampled_spectrum,
    siemens_star,
    sinc_reconstruct,
)


def images(*shape, dtype=torch.float64):
    return torch.rand(shape, generator=torch.Generator().manual_seed(3), dtype=dtype)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_periodic_reconstruction_is_that_of_the_fft(n):
    samples = images(2, n)
    fine = torch.fft.irfft(torch.fft.rfft(samples), n=5 * n) if n % 2 else None
    x = torch.arange(n).double()
    assert torch.allclose(periodic_reconstruct(samples, x), samples, atol=1e-14)
    assert torch.allclose(periodic_reconstruct(samples, x + n), samples, atol=1e-13)
    if fine is not None:
        padded = torch.fft.irfft(torch.fft.rfft(samples), n=5 * n) * 5
        assert torch.allclose(periodic_reconstruct(samples, torch.arange(5 * n).double() / 5), padded, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_a_million_periods_away_is_the_same_and_near_a_sample_its_value(n):
    samples = images(2, n)
    x = torch.arange(n).double() + 0.25
    for periods in (-(2**20), -1, 2**20):
        assert torch.allclose(
            periodic_reconstruct(samples, x + periods * n), periodic_reconstruct(samples, x), atol=1e-13
        )
    near = torch.arange(n).double() + (n - 2.0**-40)  # as close to the end of a period as to its beginning
    assert torch.allclose(periodic_reconstruct(samples, near), samples, atol=1e-10)


def test_reconstructions_take_batches_any_shape_and_gradients():
    samples, x = images(2, 3, 9), images(4, 5)
    places = torch.arange(9).double() * 0.5
    for found in (sinc_reconstruct(samples, places, x), gaussian_reconstruct(samples, places, x, 0.4)):
        assert found.shape == (2, 3, 4, 5)
    assert sampled_spectrum(samples, places, x).shape == (2, 3, 4, 5)
    assert torch.autograd.gradcheck(lambda s: sinc_reconstruct(s, places, x), samples.requires_grad_())
    assert torch.autograd.gradcheck(
        lambda y: gaussian_reconstruct(samples.detach(), places, y, 0.4), x.requires_grad_()
    )


@pytest.mark.parametrize("size", [(10, 12), (7, 9), (20, 31), (25, 40)])
def test_resized_images_are_those_of_scikit_image(size):
    transform = pytest.importorskip("skimage.transform", reason="scikit-image is not installed")
    image = images(20, 31)
    theirs = transform.resize(image.numpy(), size, order=1, mode="reflect", anti_aliasing=True)
    assert resize_image(image, size).numpy()[1:-1, 1:-1] == pytest.approx(theirs[1:-1, 1:-1], abs=1e-10)


def test_a_filter_before_sampling_prevents_aliases():
    x = torch.arange(64).double()
    stripes = (0.5 + 0.5 * torch.cos(2 * torch.pi * 0.45 * x)).expand(64, 64)
    plain, filtered = (resize_image(stripes, (32, 32), antialias) for antialias in (False, True))
    assert filtered[8:-8, 8:-8].std() < 0.6 * plain[8:-8, 8:-8].std()
    assert resize_image(images(2, 3, 8, 8), (4, 16)).shape == (2, 3, 4, 16)
    assert torch.autograd.gradcheck(lambda x: resize_image(x, (3, 7)), images(6, 5).requires_grad_())


def test_a_star_has_its_spokes():
    star = siemens_star(101, spokes=8)
    around = star[50, 51:].mean(), star[20, 50]
    assert around[0] == pytest.approx(1.0)
    assert star.min() >= 0
    assert star.max() <= 1
    assert torch.allclose(star, star.rot90(), atol=1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: sinc_reconstruct(torch.ones(3), torch.ones(2), torch.ones(1)),
            r"positions must be \(3,\) to fit samples",
        ),
        (lambda: sinc_reconstruct(torch.ones(3), torch.tensor([0, 1, 3.0]), torch.ones(1)), "increase in equal steps"),
        (lambda: gaussian_reconstruct(torch.ones(2), torch.arange(2.0), torch.ones(1), 0), "sigma must be > 0, got 0"),
        (lambda: resize_image(torch.ones(4, 4), (0, 2)), "size must be >= 1, got 0"),
        (lambda: siemens_star(1), "size must be >= 2, got 1"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
