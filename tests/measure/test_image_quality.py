"""PSNR and SSIM: the numbers of scikit-image, gradients, and what is refused."""

import math

import pytest
import torch

from lemmata.measure import psnr, ssim


def pair(*shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(shape, generator=generator, dtype=dtype)
    return image, (image + 0.2 * torch.randn(shape, generator=generator, dtype=dtype)).clamp(0, 1)


@pytest.mark.parametrize("size", [(11, 11), (32, 41), (40, 17)])
@pytest.mark.parametrize("data_range", [1.0, 2.0])
def test_scores_are_those_of_scikit_image(size, data_range):
    metrics = pytest.importorskip("skimage.metrics", reason="scikit-image is not installed")
    image, other = pair(*size)
    settings = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": data_range}
    theirs = metrics.structural_similarity(image.numpy(), other.numpy(), **settings)
    assert ssim(image, other, data_range).item() == pytest.approx(theirs, abs=1e-10)
    theirs = metrics.peak_signal_noise_ratio(image.numpy(), other.numpy(), data_range=data_range)
    assert psnr(image, other, data_range).item() == pytest.approx(theirs, abs=1e-10)


def test_scores_have_a_value_for_each_channel_and_are_symmetric():
    image, other = pair(2, 3, 16, 20)
    for score in (psnr, ssim):
        found = score(image, other, 1.0)
        assert found.shape == (2, 3)
        assert torch.allclose(found, score(other, image, 1.0))
        assert torch.allclose(found[1, 2], score(image[1, 2], other[1, 2], 1.0))
        assert torch.allclose(score(image.float(), other.float(), 1.0), found.float(), atol=1e-4)


def test_equal_images_are_as_near_as_can_be():
    image, _ = pair(12, 12)
    assert psnr(image, image, 1.0) == math.inf
    assert ssim(image, image, 1.0) == pytest.approx(1.0)


def test_scores_have_gradients():
    image, other = pair(12, 12)
    image.requires_grad_()
    for score in (psnr, ssim):
        assert torch.autograd.gradcheck(lambda x, score=score: score(x, other, 1.0), image, atol=1e-6)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda x, y: (x[:, :5], y, 1.0), ValueError, "image and reference must have one shape"),
        (lambda x, y: (x.float(), y, 1.0), TypeError, "image and reference must have one dtype"),
        (lambda x, y: (x, y, 0.0), ValueError, "data_range must be > 0, got 0.0"),
        (lambda x, y: (x * math.nan, y, 1.0), ValueError, "image must be finite"),
        (lambda x, y: (x[0], y[0], 1.0), ValueError, "image must be .*height, width.*got shape"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(change, error, words):
    for score in (psnr, ssim):
        with pytest.raises(error, match=words):
            score(*change(*pair(12, 12)))
    with pytest.raises(ValueError, match="at least 11 pixels on each side, got 12 x 10"):
        ssim(*pair(12, 10), 1.0)
