r"""What every function of images asks of its input, and integers as images in [0, 1]."""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from lemmata import validate

__all__ = ["as_float_image"]


def as_float_image(image: Shaped[Tensor, "*shape"], dtype: torch.dtype | None = None) -> Float[Tensor, "*shape"]:
    r"""Integers from 0 to the largest of their dtype, or booleans, as numbers in $[0, 1]$; floats stay as they are.

    Shapes:
        image: any    returns: the same, in `dtype` (default: torch's default)

    >>> as_float_image(torch.tensor([0, 51, 255], dtype=torch.uint8))
    tensor([0.0000, 0.2000, 1.0000])
    """
    if validate.tensor("image", image).is_complex():
        raise TypeError(f"image must be real, got {image.dtype}: use image.real or image.abs()")
    dtype = dtype or torch.get_default_dtype()
    if image.is_floating_point():
        return image
    if image.dtype is torch.bool:
        return image.to(dtype)
    if image.numel() and int(image.long().min()) < 0:
        raise ValueError(f"image must hold no negative integers, got {int(image.long().min())}")
    return image.to(dtype) / torch.iinfo(image.dtype).max


def image_of(name: str, value: Tensor, channels: int | None = None) -> Tensor:
    """Finite floating-point images, (..., height, width), with so many channels before the height if a number is given.

    >>> image_of("image", torch.zeros(4, 4, dtype=torch.uint8))
    Traceback (most recent call last):
    TypeError: image must hold floating-point numbers, got torch.uint8: use as_float_image(image)
    """
    shape = tuple(validate.tensor(name, value).shape)
    least = 2 if channels is None else 3
    if value.ndim < least or 0 in shape[-least:] or (channels is not None and shape[-3] != channels):
        wanted = "(..., height, width)" if channels is None else f"(..., {channels}, height, width)"
        raise ValueError(f"{name} must be {wanted} and not empty, got shape {shape}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {value.dtype}: use as_float_image({name})")
    if validate.visible(value) and not math.isfinite(value.detach().sum()):
        validate.floating(name, value)
    return value


def kernel_of(name: str, value: Tensor, like: Tensor) -> Tensor:
    """A finite kernel, (height, width), of the dtype and on the device of an image and no larger than it."""
    if validate.tensor(name, value).is_complex():
        raise TypeError(f"{name} must be real, got {value.dtype}: filter its real and imaginary parts")
    if value.ndim != 2 or value.numel() == 0:
        raise ValueError(f"{name} must be (height, width) and not empty, got shape {tuple(value.shape)}")
    if value.shape[0] > like.shape[-2] or value.shape[1] > like.shape[-1]:
        sizes = f"{value.shape[0]} x {value.shape[1]} for {like.shape[-2]} x {like.shape[-1]} pixels"
        raise ValueError(f"{name} must not be larger than the image, got {sizes}: crop the kernel")
    value = value.to(like)  # kernels are exact numbers: an integer one serves every dtype
    if not torch.compiler.is_compiling() and value.device.type == "cpu":
        validate.floating(name, value)
    return value


def centre_of(shape: tuple[int, int] | torch.Size, centre: tuple[int, int] | None) -> tuple[int, int]:
    """Which tap lies on the pixel that is computed: the middle one, which kernels of even size do not have."""
    if centre is None:
        if shape[0] % 2 == 0 or shape[1] % 2 == 0:
            raise ValueError(
                f"a kernel of even size has no middle, got {shape[0]} x {shape[1]}: say centre=(row, column)"
            )
        return shape[0] // 2, shape[1] // 2
    row, column = centre
    validate.count("centre row", row, least=0, most=shape[0] - 1)
    validate.count("centre column", column, least=0, most=shape[1] - 1)
    return row, column
