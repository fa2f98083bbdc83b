"""A Gaussian filter and Sobel's derivative of a photograph's size, against the packages that people use for them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.vision.gradient_kernels import sobel_kernel
from lemmata.vision.image_filter import filter_image
from lemmata.vision.smoothing_kernels import gaussian_filter

SIZE = (1024, 2048)
SIGMA = 2.0


class Problem(NamedTuple):
    """An image, and what is to be done with it."""

    image: Tensor
    gaussian: bool


@entry(
    "image_filters",
    title="Gaussian and Sobel filters",
    measures="one filter of one image, float32, edges repeated",
    cases={"gaussian": "2 megapixels, sigma 2, 17 x 17 taps", "sobel": "2 megapixels, 3 x 3 taps"},
    targets={"scipy.ndimage": 1.0, "scikit-image": 1.0, "kornia": 1.0},
)
def problem(case: str, device: str) -> Problem:
    """A random image in [0, 1]."""
    return Problem(torch.rand(SIZE, generator=torch.Generator().manual_seed(0)).to(device), case == "gaussian")


@ours("lemmata")
def by_factors(problem: Problem) -> Callable[[], Tensor]:
    """A row and then a column."""
    if problem.gaussian:
        return lambda: gaussian_filter(problem.image, SIGMA)
    kernel = sobel_kernel("x")
    return lambda: filter_image(problem.image, kernel)


@peer("scipy.ndimage", needs="scipy")
def by_scipy(problem: Problem) -> Callable[[], Any]:
    """Line by line in double precision."""
    from scipy import ndimage

    image = problem.image.cpu().numpy()
    if problem.gaussian:
        return lambda: ndimage.gaussian_filter(image, SIGMA)
    return lambda: ndimage.sobel(image, 1)


@peer("OpenCV", needs="opencv-python-headless")
def by_opencv(problem: Problem) -> Callable[[], Any]:
    """Vector instructions by hand, on all cores."""
    import cv2

    image, border = problem.image.cpu().numpy(), cv2.BORDER_REFLECT
    if problem.gaussian:
        return lambda: cv2.GaussianBlur(image, (17, 17), SIGMA, borderType=border)
    return lambda: cv2.Sobel(image, -1, 1, 0, borderType=border)


@peer("scikit-image", needs="scikit-image")
def by_scikit_image(problem: Problem) -> Callable[[], Any]:
    """Scipy's filters under other names; its Sobel is divided by four."""
    from skimage import filters

    image = problem.image.cpu().numpy()
    if problem.gaussian:
        return lambda: filters.gaussian(image, SIGMA, mode="reflect", truncate=4.0)
    return lambda: filters.sobel_v(image) * 4


@peer("kornia", needs="kornia")
def by_kornia(problem: Problem) -> Callable[[], Any]:
    """Torch's convolutions."""
    import kornia

    image = problem.image[None, None]
    if problem.gaussian:
        smooth = kornia.filters.gaussian_blur2d
        return lambda: smooth(image, (17, 17), (SIGMA, SIGMA), border_type="replicate")[0, 0]
    slopes = kornia.filters.spatial_gradient
    return lambda: slopes(image, normalized=False)[0, 0, 0]


@limit("the image read and the result written once")
def copying(problem: Problem) -> Callable[[], Tensor]:
    """No way around that, whatever is computed between."""
    result = torch.empty_like(problem.image)
    return lambda: result.copy_(problem.image)


@agreement(within=2e-4)
def in_numbers(y: Any) -> dict[str, float]:
    """How large the result is away from the border, and its product with an image that no shift leaves alone."""
    y = torch.as_tensor(np.asarray(y.cpu() if isinstance(y, Tensor) else y)).double()[20:-20, 20:-20].flatten()
    wave = torch.cos(torch.arange(len(y), dtype=torch.float64) ** 2 % 997)
    return {"length": float(y.norm()), "with a wave": float(y.norm() + y @ wave)}
