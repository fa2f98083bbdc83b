r"""How near an image is to another: peak signal-to-noise ratio and structural similarity."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["psnr", "ssim"]

SIGMA, REACH = 1.5, 5  # Wang's window: a Gaussian of 1.5 pixels, cut at 11 x 11
K1, K2 = 0.01, 0.03


@system("psnr", title="Peak signal-to-noise ratio", kind="function")
def psnr(
    image: Float[Tensor, "*batch height width"],
    reference: Float[Tensor, "*batch height width"],
    data_range: int | float,
) -> Float[Tensor, "*batch"]:
    r"""$10\log_{10}(L^2/\mathrm{MSE})$ decibels for values in a range of length $L$; infinite for equal images.

    Shapes:
        image, reference: (..., height, width)    returns: (...); channels have values of their own

    Differs: `data_range` has no default: 1 for images in [0, 1].

    >>> psnr(torch.full((8, 8), 0.6), torch.full((8, 8), 0.5), data_range=1.0)
    tensor(20.0000)
    """
    _image_pair(image, reference)
    validate.positive("data_range", data_range)
    return 10 * torch.log10(data_range**2 / (image - reference).square().mean((-2, -1)))


@system("ssim", title="Structural similarity", kind="function")
def ssim(
    image: Float[Tensor, "*batch height width"],
    reference: Float[Tensor, "*batch height width"],
    data_range: int | float,
) -> Float[Tensor, "*batch"]:
    r"""The mean over all windows of how alike their means, variances and patterns are; 1 for equal images.

    $$ \frac{(2\mu_x\mu_y + C_1)(2\sigma_{xy} + C_2)}{(\mu_x^2 + \mu_y^2 + C_1)(\sigma_x^2 + \sigma_y^2 + C_2)},
       \qquad C_1 = (0.01L)^2,\; C_2 = (0.03L)^2 $$

    with moments under a Gaussian of 1.5 pixels, cut at 11 x 11; only windows inside the image count.

    Shapes:
        image, reference: (..., height, width), at least 11 x 11    returns: (...); channels have values of their own

    Source: Z. Wang et al., Image quality assessment: from error visibility to structural similarity (2004).
    Differs: as scikit-image with `gaussian_weights=True, sigma=1.5, use_sample_covariance=False`.

    >>> board = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(10, 10)
    >>> ssim(board, board, data_range=1.0).round(decimals=3), ssim(board, 1 - board, data_range=1.0).round(decimals=3)
    (tensor(1.), tensor(-0.9960))
    """
    _image_pair(image, reference)
    validate.positive("data_range", data_range)
    height, width = image.shape[-2:]
    if min(height, width) < 2 * REACH + 1:
        raise ValueError(f"image must have at least {2 * REACH + 1} pixels on each side, got {height} x {width}")
    # Five means in two passes; half precision would lose the variance in the difference of squares.
    x, y = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in (image, reference))
    stacked = torch.stack([x, y, x * x + y * y, x * y]).reshape(-1, 1, height, width)
    means = _windowed_mean(stacked)
    mean_x, mean_y, squares, product = means.reshape(4, *image.shape[:-2], *means.shape[-2:])
    c1, c2 = (K1 * data_range) ** 2, (K2 * data_range) ** 2
    both, apart = mean_x * mean_y, mean_x**2 + mean_y**2
    alike = (2 * both + c1) * (2 * (product - both) + c2) / ((apart + c1) * (squares - apart + c2))
    return alike.mean((-2, -1)).to(image.dtype)


def _windowed_mean(planes: Tensor) -> Tensor:
    """The mean under Wang's window wherever it fits, (planes, 1, height - 10, width - 10)."""
    window = torch.exp(-0.5 * (torch.arange(-REACH, REACH + 1, dtype=torch.float64) / SIGMA) ** 2)
    window = window / window.sum()
    if planes.requires_grad or planes.device.type != "cpu" or torch.compiler.is_compiling():
        window = window.to(planes)
        return functional.conv2d(functional.conv2d(planes, window[None, None, None]), window[None, None, :, None])
    for axis in (3, 2):  # torch's convolution of one channel takes several times as long as these shifted sums
        size = planes.shape[axis] - 2 * REACH
        total = planes.narrow(axis, 0, size) * float(window[0])
        for place, weight in enumerate(window[1:].tolist(), start=1):
            total.add_(planes.narrow(axis, place, size), alpha=weight)
        planes = total
    return planes


def _image_pair(image: Tensor, reference: Tensor) -> None:
    for name, value in (("image", image), ("reference", reference)):
        if validate.floating(name, value).ndim < 2:
            raise ValueError(f"{name} must be (..., height, width), got shape {tuple(value.shape)}")
    if image.shape != reference.shape:
        shapes = f"{tuple(image.shape)} and {tuple(reference.shape)}"
        raise ValueError(f"image and reference must have one shape, got {shapes}")
    if image.dtype != reference.dtype:
        raise TypeError(f"image and reference must have one dtype, got {image.dtype} and {reference.dtype}")
