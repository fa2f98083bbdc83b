r"""An image under a kernel, by whichever way multiplies least: factors, taps or spectra."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.borders import pad_image
from lemmata.vision.image_arguments import centre_of, image_of, kernel_of
from lemmata.vision.separable_kernel import Separable, separated

__all__ = ["filter_image"]

METHODS = ("auto", "separable", "direct", "spectral")
TRANSFORM = 12.0  # products for each pixel and doubling of the size that the two transforms take, counted generously
BLOCK = 2**17  # numbers of the rows that are filtered at once: what the cache of a core holds


@system("filter_image", title="Image filter", kind="function")
def filter_image(
    image: Float[Tensor, "*batch height width"],
    kernel: Tensor | Separable,
    border: str = "symmetric",
    centre: tuple[int, int] | None = None,
    method: str = "auto",
) -> Float[Tensor, "*batch height width"]:
    r"""The cross-correlation of every image with one kernel, as large as the image.

    $$ y[i, j] = \sum_{a, b} k[a, b]\; x[i + a - a_0,\; j + b - b_0] $$

    with the centre $(a_0, b_0)$, the middle unless another is given. It is a correlation: the kernel is not turned, so
    $(-1, 0, 1)$ is positive on a ramp that rises. `border` is that of `pad_image`. Under `auto` a kernel of rank one is
    a column and then a row; others go by taps, or by spectra where that takes fewer products.

    Shapes:
        image: (..., height, width), kernel: (rows, columns) or `Separable`    returns: (..., height, width)

    Claims: vision.kernel_sobel, vision.kernel_prewitt, vision.kernel_laplacian, vision.kernel_diff, vision.kernel_box,
        vision.kernel_highpass, vision.noise_gaussian
    Source: as scipy.ndimage.correlate and OpenCV's filter2D.
    Differs: a kernel larger than the image is refused; integer kernels take the image's dtype.

    >>> filter_image(torch.tensor([[0.0, 1.0, 2.0, 3.0]]), torch.tensor([[-1, 0, 1]]))
    tensor([[1., 2., 2., 1.]])
    """
    image_of("image", image)
    validate.one_of("method", method, METHODS)
    factors = kernel if isinstance(kernel, Separable) else None
    dense = kernel_of("kernel", factors.dense() if factors else kernel, image)  # type: ignore[arg-type]
    row, column = centre_of(dense.shape, centre)
    if factors is None and method in ("auto", "separable") and not dense.requires_grad:
        factors = separated(dense)
    if method == "separable" and factors is None:
        raise ValueError("method 'separable' needs a kernel of rank one: use method='auto'")
    around = (row, dense.shape[0] - 1 - row, column, dense.shape[1] - 1 - column)
    padded = pad_image(image, around, border)
    chosen = _fewest_products(padded, dense, factors is not None) if method == "auto" else method
    if chosen == "separable" and factors is not None:
        return _by_factors(padded, Separable(factors.column.to(image), factors.row.to(image)))
    return _by_taps(padded, dense) if chosen == "direct" else _by_spectra(padded, dense)


def _fewest_products(padded: Tensor, kernel: Tensor, has_factors: bool) -> str:
    rows, columns = kernel.shape
    taps = rows + columns if has_factors else rows * columns
    spectra = TRANSFORM * math.log2(max(2, padded.shape[-2] * padded.shape[-1]))
    if padded.dtype in (torch.float32, torch.float64) and spectra < taps:
        return "spectral"
    return "separable" if has_factors else "direct"


def _by_taps(padded: Tensor, kernel: Tensor) -> Tensor:
    """The definition, by torch's kernel: the readable way, to which the others are compared."""
    flat = padded.reshape(-1, 1, *padded.shape[-2:])  # (images, 1, height + rows - 1, width + columns - 1)
    y = functional.conv2d(flat, kernel[None, None])  # (images, 1, height, width)
    return y.reshape(*padded.shape[:-2], *y.shape[-2:])


def _by_factors(padded: Tensor, kernel: Separable) -> Tensor:
    """The row, then the column."""
    tracked = torch.is_grad_enabled() and (padded.requires_grad or any(part.requires_grad for part in kernel))
    if tracked or padded.device.type != "cpu" or torch.compiler.is_compiling():
        return _by_taps(_by_taps(padded, kernel.row[None]), kernel.column[:, None])
    height, width = padded.shape[-2] - len(kernel.column) + 1, padded.shape[-1] - len(kernel.row) + 1
    # Torch's convolution of one channel takes five times as long as these sums of shifted rows, block by block.
    flat = padded.reshape(-1, *padded.shape[-2:])
    y = flat.new_empty(len(flat), height, width)
    step = max(len(kernel.column), BLOCK // padded.shape[-1])
    for one, result in zip(flat, y, strict=True):
        for top in range(0, height, step):
            rows = one[top : min(top + step, height) + len(kernel.column) - 1]
            across = _shifted_sum(rows, kernel.row, 1, width)  # (rows of the block and those the column reaches, width)
            result[top : top + step] = _shifted_sum(across, kernel.column, 0, min(step, height - top))
    return y.reshape(*padded.shape[:-2], height, width)


def _shifted_sum(x: Tensor, taps: Tensor, axis: int, size: int) -> Tensor:
    weights = taps.tolist()
    total = x.narrow(axis, 0, size) * weights[0]
    for place, weight in enumerate(weights[1:], start=1):
        if weight:
            total.add_(x.narrow(axis, place, size), alpha=weight)
    return total


def _by_spectra(padded: Tensor, kernel: Tensor) -> Tensor:
    """A product of transforms; what wraps around is cut away."""
    size = padded.shape[-2:]
    spectrum = torch.fft.rfft2(padded) * torch.fft.rfft2(kernel, s=size).conj()
    y = torch.fft.irfft2(spectrum, s=size)
    return y[..., : size[0] - kernel.shape[0] + 1, : size[1] - kernel.shape[1] + 1]
