"""Kernels and the filters made of them, against scipy.ndimage, OpenCV and scikit-image."""

import pytest
import torch
from scipy import ndimage

from lemmata.vision import (
    box_kernel,
    difference_kernel,
    filter_image,
    gaussian_filter,
    gaussian_kernel,
    highpass_kernel,
    image_gradient,
    laplacian_kernel,
    median_filter,
    prewitt_kernel,
    sobel_kernel,
)
from lemmata.vision.borders import BORDERS


def images(*shape, dtype=torch.float64):
    return torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


@pytest.mark.parametrize("border", BORDERS)
def test_gradients_are_those_of_scipy(border):
    image, mode = images(9, 12), BORDERS[border][0]
    for axis, name in ((1, "x"), (0, "y")):
        for ours, theirs in ((sobel_kernel, ndimage.sobel), (prewitt_kernel, ndimage.prewitt)):
            found = filter_image(image, ours(name, dtype=torch.float64), border)
            assert found.numpy() == pytest.approx(theirs(image.numpy(), axis, mode=mode), abs=1e-12)
    found = filter_image(image, laplacian_kernel(dtype=torch.float64), border)
    assert found.numpy() == pytest.approx(ndimage.laplace(image.numpy(), mode=mode), abs=1e-12)


@pytest.mark.parametrize("size", [3, 5, 7])
@pytest.mark.parametrize("order", [1, 2])
def test_larger_sobel_kernels_are_those_of_opencv(size, order):
    cv2 = pytest.importorskip("cv2", reason="opencv is not installed")
    along, across = cv2.getDerivKernels(order, 0, size)
    kernel = sobel_kernel("x", size, order)
    assert kernel.row.tolist() == along[:, 0].tolist()
    assert kernel.column.tolist() == across[:, 0].tolist()


def test_gradients_have_the_sign_of_a_correlation_and_the_unit_of_a_pixel():
    along_x, along_y = image_gradient(2.0 * torch.arange(6.0) - 3.0 * torch.arange(5.0)[:, None])
    assert torch.allclose(along_x[1:-1, 1:-1], torch.tensor(2.0))
    assert torch.allclose(along_y[1:-1, 1:-1], torch.tensor(-3.0))
    assert torch.allclose(image_gradient(images(8, 8), "prewitt")[0], filter_image(images(8, 8), prewitt_kernel()) / 6)


@pytest.mark.parametrize("sigma", [0, 0.5, 1.0, 2.3])
@pytest.mark.parametrize("border", BORDERS)
def test_gaussian_filters_are_those_of_scipy(sigma, border):
    image = images(30, 27)
    theirs = ndimage.gaussian_filter(image.numpy(), sigma, mode=BORDERS[border][0])
    assert gaussian_filter(image, sigma, border=border).numpy() == pytest.approx(theirs, abs=1e-12)


def test_gaussian_filters_are_those_of_opencv_and_scikit_image():
    cv2 = pytest.importorskip("cv2", reason="opencv is not installed")
    filters = pytest.importorskip("skimage.filters", reason="scikit-image is not installed")
    image = images(40, 30)
    theirs = cv2.GaussianBlur(image.numpy(), (9, 9), 1.0, borderType=cv2.BORDER_REFLECT)
    assert gaussian_filter(image, 1.0).numpy() == pytest.approx(theirs, abs=1e-10)
    theirs = filters.gaussian(image.numpy(), 1.5, mode="mirror")
    assert gaussian_filter(image, 1.5, border="reflect").numpy() == pytest.approx(theirs, abs=1e-10)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_median_and_mean_filters_are_those_of_scipy(size):
    image = images(2, 9, 8)
    for border, (mode, _) in BORDERS.items():
        for one, result in zip(image, median_filter(image, size, border), strict=True):
            assert result.numpy() == pytest.approx(ndimage.median_filter(one.numpy(), size, mode=mode), abs=0)
        found = filter_image(image[0], box_kernel(size, torch.float64), border)
        assert found.numpy() == pytest.approx(ndimage.uniform_filter(image[0].numpy(), size, mode=mode), abs=1e-12)


def test_a_median_has_a_gradient():
    image = images(5, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: median_filter(x, 3, "zeros"), image)


def test_kernels_have_the_dtype_that_is_asked_for():
    made = [sobel_kernel, prewitt_kernel, difference_kernel]
    for kernel in [make(dtype=torch.float64).row for make in made] + [gaussian_kernel(1.0, dtype=torch.float64).row]:
        assert kernel.dtype is torch.float64
    assert highpass_kernel(3).dtype is laplacian_kernel().dtype is torch.float32
    assert difference_kernel("y").dense().tolist() == [[-1], [1]]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sobel_kernel(size=4), "size must be odd, so that there is a middle, got 4: use 5"),
        (lambda: sobel_kernel(order=3), "order must be <= 2, got 3"),
        (lambda: sobel_kernel("z"), "axis must be one of x, y, got 'z'"),
        (lambda: laplacian_kernel(5), "neighbours must be 4 or 8, got 5"),
        (lambda: box_kernel(2), "size must be odd, so that there is a middle, got 2: use 3"),
        (lambda: gaussian_kernel(-1.0), "sigma must be >= 0, got -1.0"),
        (lambda: gaussian_kernel(1.0, 0), "truncate must be > 0, got 0"),
        (lambda: median_filter(torch.zeros(2, 2), 9), "use border='replicate'"),
        (lambda: image_gradient(torch.zeros(5, 5), "roberts"), "operator must be one of sobel, prewitt"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.usefixtures("unchecked")
def test_a_list_is_no_image():
    with pytest.raises(TypeError, match=r"image must be a tensor, got list: use torch.as_tensor\(image\)"):
        gaussian_filter([[1.0, 2.0]], 1.0)
