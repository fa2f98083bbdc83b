r"""Kernels that smooth, and what is left of an image without them: box, Gaussian, high-pass; and the median."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.borders import pad_image
from lemmata.vision.image_arguments import image_of
from lemmata.vision.image_filter import filter_image
from lemmata.vision.separable_kernel import Separable

__all__ = ["box_kernel", "gaussian_filter", "gaussian_kernel", "highpass_kernel", "median_filter"]


@system("box_kernel", title="Box kernel", kind="function")
def box_kernel(size: int = 3, dtype: torch.dtype | None = None) -> Separable:
    r"""The local mean, $\frac1{n^2}\mathbf 1_{n\times n}$: it divides the variance of white noise by $n^2$.

    Its spectrum is a product of Dirichlet kernels, which change their sign: some details come out with their contrast
    inverted. A Gaussian has none of that.

    Shapes:
        returns: factors of (size, size), size odd

    Claims: vision.kernel_box

    >>> box_kernel(3).dense()[0]
    tensor([0.1111, 0.1111, 0.1111])
    """
    row = torch.full((_odd_size(size),), 1 / size, dtype=dtype or torch.get_default_dtype())
    return Separable(row, row)


@system("highpass_kernel", title="High-pass kernel", kind="function")
def highpass_kernel(size: int = 3, dtype: torch.dtype | None = None) -> Float[Tensor, "size size"]:
    r"""Image less local mean, $\delta - \frac1{n^2}\mathbf 1_{n\times n}$: box and high-pass add up to the image.

    Shapes:
        returns: (size, size), size odd

    Claims: vision.kernel_highpass

    >>> highpass_kernel(3)[1]
    tensor([-0.1111,  0.8889, -0.1111])
    """
    dense = -box_kernel(size, dtype).dense()
    dense[size // 2, size // 2] += 1
    return dense


@system("gaussian_kernel", title="Gaussian kernel", kind="function")
def gaussian_kernel(sigma: int | float, truncate: int | float = 4.0, dtype: torch.dtype | None = None) -> Separable:
    r"""Samples of a Gaussian at the integers up to $\lfloor t\sigma + \tfrac12\rfloor$, divided by their sum.

    $$ g_\sigma(x, y) = \frac1{2\pi\sigma^2}\,e^{-\frac{x^2+y^2}{2\sigma^2}} $$

    Convolutions of sampled Gaussians add their variances to six digits where every $\sigma$ is 0.8 pixels or more;
    smaller ones are hardly met by a sample beside the middle. What lies beyond $t = 4$ standard deviations is $6\cdot
    10^{-5}$ of the mass on each axis.

    Shapes:
        returns: factors of (n, n), n odd

    Claims: vision.kernel_gaussian
    Source: truncation and samples as scipy.ndimage.gaussian_filter.

    >>> gaussian_kernel(0.5).row.shape
    torch.Size([5])
    """
    validate.number("sigma", sigma, least=0)
    validate.positive("truncate", truncate)
    reach = int(truncate * sigma + 0.5)
    places = torch.arange(-reach, reach + 1, dtype=torch.float64)
    taps = torch.exp(-0.5 * (places / sigma) ** 2) if reach else torch.ones(1, dtype=torch.float64)
    row = (taps / taps.sum()).to(dtype or torch.get_default_dtype())
    return Separable(row, row)


@system("gaussian_filter", title="Gaussian filter", kind="function")
def gaussian_filter(
    image: Float[Tensor, "*batch height width"],
    sigma: int | float,
    truncate: int | float = 4.0,
    border: str = "symmetric",
) -> Float[Tensor, "*batch height width"]:
    r"""Every image smoothed by a Gaussian of so many pixels, `truncate` standard deviations far.

    Shapes:
        image: (..., height, width)    returns: (..., height, width)

    Claims: vision.kernel_gaussian
    Source: defaults and values are those of scipy.ndimage.gaussian_filter, whose border "reflect" is our "symmetric".

    >>> gaussian_filter(torch.ones(9, 9), 1.0).allclose(torch.ones(9, 9))
    True
    """
    return filter_image(image, gaussian_kernel(sigma, truncate, image_of("image", image).dtype), border)


@system("median_filter", title="Median filter", kind="function")
def median_filter(
    image: Float[Tensor, "*batch height width"], size: int = 3, border: str = "symmetric"
) -> Float[Tensor, "*batch height width"]:
    r"""The middle one of the values in a square around each pixel: single wrong pixels vanish, edges stay.

    Shapes:
        image: (..., height, width)    returns: (..., height, width)

    Claims: vision.noise_models
    Source: J. Tukey, Exploratory Data Analysis (1971); values as scipy.ndimage.median_filter.

    >>> median_filter(torch.tensor([[0.0, 0.0, 9.0, 0.0, 0.0]]))
    tensor([[0., 0., 0., 0., 0.]])
    """
    image_of("image", image)
    reach = _odd_size(size) // 2
    padded = pad_image(image, (reach, reach, reach, reach), border)
    windows = padded.unfold(-2, size, 1).unfold(-2, size, 1)  # (..., height, width, size, size)
    return windows.flatten(-2).median(-1).values


def _odd_size(size: int) -> int:
    if validate.count("size", size) % 2 == 0:
        raise ValueError(f"size must be odd, so that there is a middle, got {size}: use {size + 1}")
    return size
