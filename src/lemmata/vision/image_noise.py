r"""Noise of images: Gaussian, shot, impulse, multiplicative, and what rounding to levels adds."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.image_arguments import image_of
from lemmata.vision.separable_kernel import Separable

__all__ = [
    "add_gaussian_noise",
    "add_impulse_noise",
    "add_shot_noise",
    "multiply_noise",
    "noise_gain",
    "quantise",
]


@system("add_gaussian_noise", title="Additive Gaussian noise", kind="function")
def add_gaussian_noise(
    image: Float[Tensor, "*batch height width"], sigma: int | float, generator: torch.Generator | None = None
) -> Float[Tensor, "*batch height width"]:
    r"""$I = f + c$ with independent $c \sim \mathcal N(0, \sigma^2)$ for each pixel. The result is not clipped.

    Shapes:
        image: (..., height, width)    returns: the same

    Claims: vision.noise_gaussian

    >>> add_gaussian_noise(torch.zeros(100, 100), 0.1, torch.Generator().manual_seed(0)).std().round(decimals=2)
    tensor(0.1000)
    """
    validate.number("sigma", sigma, least=0)
    return image + sigma * _normal_noise(image_of("image", image), generator)


@system("add_shot_noise", title="Shot noise", kind="function")
def add_shot_noise(
    image: Float[Tensor, "*batch height width"], photons: int | float, generator: torch.Generator | None = None
) -> Float[Tensor, "*batch height width"]:
    r"""$I \sim \mathrm{Poisson}(pf)\,/\,p$: white is so many photons, and the variance grows with the brightness.

    Shapes:
        image: (..., height, width) >= 0    returns: the same

    Claims: vision.noise_models
    Differs: no gradient.

    >>> add_shot_noise(torch.full((100, 100), 0.5), 50.0, torch.Generator().manual_seed(0)).var().round(decimals=3)
    tensor(0.0100)
    """
    validate.positive("photons", photons)
    if bool((image_of("image", image) < 0).any()):
        raise ValueError(f"image must be >= 0 to be counted in photons, got {float(image.min()):g}: clamp it")
    return torch.poisson(photons * image, generator=generator) / photons


@system("add_impulse_noise", title="Impulse noise", kind="function")
def add_impulse_noise(
    image: Float[Tensor, "*batch height width"], fraction: int | float, generator: torch.Generator | None = None
) -> Float[Tensor, "*batch height width"]:
    r"""Salt and pepper: this fraction of the pixels becomes 0 or 1, each as often as the other.

    Shapes:
        image: (..., height, width)    returns: the same

    Claims: vision.noise_models

    >>> add_impulse_noise(torch.full((1, 6), 0.5), 1.0, torch.Generator().manual_seed(0)).unique()
    tensor([0., 1.])
    """
    validate.fraction("fraction", fraction, most=1.0)
    image_of("image", image)
    chance = torch.rand(image.shape, generator=generator, dtype=image.dtype, device=image.device)
    return torch.where(chance < fraction / 2, 0.0, torch.where(chance < fraction, 1.0, image))


@system("multiply_noise", title="Multiplicative noise", kind="function")
def multiply_noise(
    image: Float[Tensor, "*batch height width"], sigma: int | float, generator: torch.Generator | None = None
) -> Float[Tensor, "*batch height width"]:
    r"""$I = f(1 + c)$ with independent $c \sim \mathcal N(0, \sigma^2)$: the standard deviation is $\sigma|f|$.

    Shapes:
        image: (..., height, width)    returns: the same

    Claims: vision.noise_models

    >>> multiply_noise(torch.full((100, 100), 2.0), 0.1, torch.Generator().manual_seed(0)).std().round(decimals=2)
    tensor(0.2000)
    """
    validate.number("sigma", sigma, least=0)
    return image * (1 + sigma * _normal_noise(image_of("image", image), generator))


@system("quantise", title="Quantisation", kind="function")
def quantise(image: Float[Tensor, "*batch height width"], levels: int = 256) -> Float[Tensor, "*batch height width"]:
    r"""The nearest of so many equally spaced levels from 0 to 1, $q = 1/(\text{levels} - 1)$ apart.

    Where the values are spread over many levels the error is uniform in $[-q/2, q/2]$ and has variance $q^2/12$.

    Shapes:
        image: (..., height, width)    returns: the same, in [0, 1]

    Claims: vision.noise_models
    Differs: the gradient is zero.

    >>> quantise(torch.tensor([[0.1, 0.4, 0.8]]), levels=3)
    tensor([[0.0000, 0.5000, 1.0000]])
    """
    validate.count("levels", levels, least=2)
    return (image_of("image", image).clamp(0, 1) * (levels - 1)).round() / (levels - 1)


@system("noise_gain", title="Noise gain of a filter", kind="function")
def noise_gain(kernel: Tensor | Separable) -> Float[Tensor, ""]:
    r"""By how much a filter multiplies the variance of white noise: $\sum_{a,b} k[a,b]^2$.

    Shapes:
        kernel: (rows, columns) or `Separable`    returns: a number

    Claims: vision.noise_gaussian

    >>> from lemmata.vision.smoothing_kernels import box_kernel
    >>> noise_gain(box_kernel(3))
    tensor(0.1111)
    """
    if isinstance(kernel, Separable):
        return kernel.column.square().sum() * kernel.row.square().sum()
    return validate.floating("kernel", kernel).square().sum()


def _normal_noise(image: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.randn(image.shape, generator=generator, dtype=image.dtype, device=image.device)
