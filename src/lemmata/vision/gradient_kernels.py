r"""Kernels that differentiate: differences, Prewitt, Sobel and the Laplacian, as exact integers."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.image_filter import filter_image
from lemmata.vision.separable_kernel import Separable

__all__ = [
    "difference_kernel",
    "image_gradient",
    "laplacian_kernel",
    "prewitt_kernel",
    "sobel_kernel",
]

AXES = ("x", "y")


@system("difference_kernel", title="Difference kernel", kind="function")
def difference_kernel(axis: str = "x", dtype: torch.dtype | None = None) -> Separable:
    r"""$[-1, 1]$ along x (to the right) or y (downwards): the forward difference $f(x + 1) - f(x)$.

    Its size is even: `filter_image` must be told its centre, (0, 0) for the forward difference.

    Shapes:
        returns: factors of (1, 2) for x, of (2, 1) for y

    Claims: vision.kernel_diff

    >>> difference_kernel("x").dense()
    tensor([[-1.,  1.]])
    """
    return _directed_kernel(axis, [-1, 1], [1], dtype)


@system("prewitt_kernel", title="Prewitt kernel", kind="function")
def prewitt_kernel(axis: str = "x", dtype: torch.dtype | None = None) -> Separable:
    r"""The central difference along one axis, added up over three neighbours across: $(1,1,1)^\top(-1,0,1)$.

    A ramp of slope $a$ gives $6a$; divide by 6 for the derivative.

    Shapes:
        returns: factors of (3, 3)

    Claims: vision.kernel_prewitt
    Source: J. Prewitt, Object enhancement and extraction (1970).

    >>> prewitt_kernel().dense()[0]
    tensor([-1.,  0.,  1.])
    """
    return _directed_kernel(axis, [-1, 0, 1], [1, 1, 1], dtype)


@system("sobel_kernel", title="Sobel kernel", kind="function")
def sobel_kernel(axis: str = "x", size: int = 3, order: int = 1, dtype: torch.dtype | None = None) -> Separable:
    r"""A difference of any order along one axis, with binomial smoothing along both.

    $$ d_{n,k} = \underbrace{(1,1) * \dots * (1,1)}_{n-1-k} * \underbrace{(-1,1) * \dots * (-1,1)}_{k}, \qquad
       S = d_{n,0}\, d_{n,k}^\top $$

    For $n = 3$, $k = 1$: $(1,2,1)^\top(-1,0,1)$. A ramp of slope $a$ gives $8a$ there.

    Shapes:
        returns: factors of (size, size), size odd

    Claims: vision.kernel_sobel
    Source: I. Sobel and G. Feldman, A 3x3 isotropic gradient operator (1968); larger ones as OpenCV's getDerivKernels.

    >>> sobel_kernel(size=5).row
    tensor([-1., -2.,  0.,  2.,  1.])
    """
    if validate.count("size", size, least=3) % 2 == 0:
        raise ValueError(f"size must be odd, so that there is a middle, got {size}: use {size + 1}")
    validate.count("order", order, least=0, most=size - 1)
    return _directed_kernel(axis, _binomial_taps(size, order), _binomial_taps(size, 0), dtype)


@system("laplacian_kernel", title="Laplacian kernel", kind="function")
def laplacian_kernel(neighbours: int = 4, dtype: torch.dtype | None = None) -> Float[Tensor, "3 3"]:
    r"""The sum of the differences to 4 or 8 neighbours; with 4 the second difference of either axis, added.

    $$ \begin{pmatrix}0&1&0\\1&-4&1\\0&1&0\end{pmatrix} $$

    Shapes:
        returns: (3, 3)

    Claims: vision.kernel_laplacian

    >>> laplacian_kernel().sum()
    tensor(0.)
    """
    if neighbours not in (4, 8):
        raise ValueError(f"neighbours must be 4 or 8, got {neighbours!r}")
    corner = int(neighbours == 8)
    rows = [[corner, 1, corner], [1, -neighbours, 1], [corner, 1, corner]]
    return torch.tensor(rows, dtype=dtype or torch.get_default_dtype())


@system("image_gradient", title="Image gradient", kind="function")
def image_gradient(
    image: Float[Tensor, "*batch height width"], operator: str = "sobel", border: str = "symmetric"
) -> tuple[Tensor, Tensor]:
    r"""The derivatives along x (to the right) and y (downwards) in units of one pixel, by Sobel's or Prewitt's kernel.

    Shapes:
        image: (..., height, width)    returns: along x and along y, both (..., height, width)

    Claims: vision.kernel_sobel

    >>> along_x, along_y = image_gradient(torch.arange(12.0).reshape(3, 4))
    >>> along_x[1], along_y[1]
    (tensor([0.5000, 1.0000, 1.0000, 0.5000]), tensor([4., 4., 4., 4.]))
    """
    make = {"sobel": sobel_kernel, "prewitt": prewitt_kernel}[
        validate.one_of("operator", operator, ("sobel", "prewitt"))
    ]
    along_x, along_y = (filter_image(image, make(axis), border) for axis in AXES)
    slope = 8 if operator == "sobel" else 6  # of a ramp that rises by one for each pixel
    return along_x / slope, along_y / slope


def _directed_kernel(axis: str, taps: list[int], across: list[int], dtype: torch.dtype | None) -> Separable:
    validate.one_of("axis", axis, AXES)
    dtype = dtype or torch.get_default_dtype()
    along, other = torch.tensor(taps, dtype=dtype), torch.tensor(across, dtype=dtype)
    return Separable(other, along) if axis == "x" else Separable(along, other)


def _binomial_taps(size: int, order: int) -> list[int]:
    taps = [1]
    for step in range(size - 1):
        first = -1 if step < order else 1  # times (-1, 1) or (1, 1), as polynomials in Python's exact integers
        taps = [first * a + b for a, b in zip([*taps, 0], [0, *taps], strict=True)]
    return taps
