"""Filters: every way gives the same numbers, and they are those of scipy.ndimage and OpenCV."""

import pytest
import torch
from scipy import ndimage

from lemmata.vision import Separable, filter_image, pad_image, separated
from lemmata.vision.borders import BORDERS


def images(*shape, dtype=torch.float64):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 3), (1, 7)])
@pytest.mark.parametrize("method", ["auto", "direct", "spectral"])
def test_filters_are_those_of_scipy(border, size, method):
    image, kernel = images(2, 11, 8), images(*size) - 0.3
    ours = filter_image(image, kernel, border, method=method)
    for one, result in zip(image, ours, strict=True):
        theirs = ndimage.correlate(one.numpy(), kernel.numpy(), mode=BORDERS[border][0])
        assert result.numpy() == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("border", [name for name in BORDERS if name != "circular"])
def test_filters_are_those_of_opencv(border):
    cv2 = pytest.importorskip("cv2", reason="opencv is not installed")
    image, kernel = images(12, 9), images(3, 5)
    theirs = cv2.filter2D(image.numpy(), -1, kernel.numpy(), borderType=getattr(cv2, BORDERS[border][1]))
    assert filter_image(image, kernel, border).numpy() == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(9, 9), (2, 3, 40, 33), (1, 700, 300)])
def test_factors_taps_and_spectra_agree(dtype, shape):
    image = images(*shape, dtype=dtype)
    kernel = Separable(*(images(2, 5, dtype=dtype) - 0.3))
    ways = [filter_image(image, kernel, method=method) for method in ("auto", "separable", "direct", "spectral")]
    for way in ways[1:]:
        assert way.shape == shape
        assert torch.allclose(way, ways[0], atol=50 * torch.finfo(dtype).eps)


def test_an_even_kernel_needs_its_centre():
    image, kernel = images(7, 6), images(2, 4)
    with pytest.raises(ValueError, match=r"a kernel of even size has no middle, got 2 x 4: say centre=\(row, column\)"):
        filter_image(image, kernel)
    found = filter_image(image, kernel, "zeros", centre=(1, 0))
    theirs = ndimage.correlate(image.numpy(), kernel.numpy(), mode="constant", origin=(0, -2))
    assert found.numpy() == pytest.approx(theirs, abs=1e-12)
    with pytest.raises(ValueError, match="centre column must be <= 3, got 4"):
        filter_image(image, kernel, centre=(0, 4))


@pytest.mark.parametrize("method", ["direct", "separable", "spectral"])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3, 2)])
def test_every_batch_is_its_images(method, batch):
    images = torch.rand(*batch, 9, 7, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    kernel = torch.outer(torch.arange(1.0, 4).double(), torch.tensor([1.0, 0.5, 2.0]).double())
    found = filter_image(images, kernel, method=method)
    each = [filter_image(image, kernel, method="direct") for image in images.reshape(-1, 9, 7)]
    assert torch.allclose(found, torch.stack(each).reshape(images.shape), rtol=1e-12)


def test_factors_have_no_entry_above_one_and_allow_for_eight_roundings():
    column, row = torch.tensor([1.0, -4.0, 2.0]).double(), torch.tensor([0.5, 3.0]).double()
    found = separated(torch.outer(column, row))
    assert float(found.column.abs().max()) == 1.0
    kernel = torch.ones(2, 2, dtype=torch.float64)
    kernel[1, 1] += 8 * 2.0**-52
    assert separated(kernel.flip(0)) is not None
    kernel[1, 1] += 4 * 2.0**-52
    assert separated(kernel.flip(0)) is None


def test_rank_one_is_found_and_nothing_else():
    column, row = images(2, 5).double()
    factors = separated(column[:, None] * row)
    assert torch.allclose(factors.dense(), column[:, None] * row, atol=1e-15)
    assert separated(images(3, 3)) is None
    assert separated(torch.zeros(3, 3)) is None


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("method", ["separable", "direct", "spectral"])
def test_gradients_of_images_and_kernels(border, method):
    image, column, row = images(2, 5, 6).requires_grad_(), images(3).requires_grad_(), images(3).add(1).requires_grad_()
    call = lambda x, c, r: filter_image(x, Separable(c, r), border, method=method)  # noqa: E731
    assert torch.autograd.gradcheck(call, (image, column, row))


def test_a_learnt_kernel_has_a_gradient():
    kernel = torch.nn.Parameter(torch.ones(3, 3, dtype=torch.float64))
    filter_image(images(6, 6), kernel).sum().backward()
    assert bool((kernel.grad > 0).all())


def test_half_precision_and_integer_kernels():
    image = images(8, 8, dtype=torch.float32)
    for dtype in (torch.bfloat16, torch.float16):
        found = filter_image(image.to(dtype), torch.tensor([[1, 2, 1]]))
        assert found.dtype is dtype
        assert torch.allclose(found.float(), filter_image(image, torch.tensor([[1.0, 2.0, 1.0]])), atol=0.05)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("image", "kernel", "more", "error", "words"),
    [
        (torch.zeros(4, 4).log() * 0, torch.ones(3, 3), {}, ValueError, "image must be finite, found 16 NaN values"),
        (torch.zeros(0, 4), torch.ones(3, 3), {}, ValueError, r"image must be \(..., height, width\) and not empty"),
        (torch.zeros(4), torch.ones(3, 3), {}, ValueError, r"and not empty, got shape \(4,\)"),
        (torch.zeros(4, 4).long(), torch.ones(3, 3), {}, TypeError, r"use as_float_image\(image\)"),
        (torch.zeros(4, 4), torch.ones(5, 5), {}, ValueError, "kernel must not be larger than the image, got 5 x 5"),
        (torch.zeros(4, 4), torch.ones(3), {}, ValueError, r"kernel must be \(height, width\) and not empty"),
        (torch.zeros(4, 4), torch.ones(3, 3) * 1j, {}, TypeError, "kernel must be real, got torch.complex64"),
        (torch.zeros(4, 4), torch.ones(3, 3) / 0, {}, ValueError, "kernel must be finite, found 9 infinite values"),
        (torch.zeros(4, 4), torch.ones(3, 3), {"border": "wrap"}, ValueError, "border must be one of symmetric, "),
        (torch.zeros(4, 4), torch.ones(3, 3), {"method": "fft"}, ValueError, "method must be one of auto, "),
        (torch.zeros(4, 4), torch.eye(3), {"method": "separable"}, ValueError, "needs a kernel of rank one"),
        ([[1.0]], torch.ones(3, 3), {}, TypeError, "image must be a tensor, got list"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(image, kernel, more, error, words):
    with pytest.raises(error, match=words):
        filter_image(image, kernel, **more)


@pytest.mark.parametrize("border", BORDERS)
def test_borders_of_other_shapes(border):
    image = images(2, 3, 4, 5)
    padded = pad_image(image, (1, 2, 3, 0), border)
    assert padded.shape == (2, 3, 7, 8)
    assert torch.equal(padded[..., 1:5, 3:], image)
    with pytest.raises(ValueError, match=r"has not so many pixels to repeat.*use border='replicate'"):
        pad_image(image, (0, 0, 9, 0), "reflect")
