"""Checks at the door for matrices: square, symmetric, of one dtype, of shapes that fit together."""

import torch
from torch import Tensor

from lemmata import validate

__all__ = []  # for systems; users meet only the messages


def matrices(name: str, value: Tensor, axes: str = "rows, columns") -> Tensor:
    """A finite, non-empty, floating-point tensor with at least two axes; leading axes are a batch."""
    if isinstance(value, Tensor) and value.ndim < 2:
        raise ValueError(f"{name} must be a (..., {axes}) tensor, got shape {tuple(value.shape)}")
    return validate.floating(name, value)


def square(name: str, value: Tensor) -> Tensor:
    """A finite floating-point tensor whose last two axes have the same length.

    >>> square("A", torch.zeros(2, 3))
    Traceback (most recent call last):
    ValueError: A must be a (..., n, n) tensor, got shape (2, 3)
    """
    matrices(name, value, "n, n")
    if value.shape[-1] != value.shape[-2]:
        raise ValueError(f"{name} must be a (..., n, n) tensor, got shape {tuple(value.shape)}")
    return value


def symmetric(name: str, value: Tensor) -> Tensor:
    """A square matrix, or a batch of them, that equals its transpose up to the rounding of its dtype.

    >>> symmetric("A", torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    Traceback (most recent call last):
    ValueError: A must be symmetric, but differs from its transpose by up to 2: use (A + A.mT) / 2
    """
    square(name, value)
    gap = (value - value.mT).detach().abs().amax((-2, -1))
    rounding = 4 * value.shape[-1] * torch.finfo(value.dtype).eps * value.detach().abs().amax((-2, -1))
    if (gap > rounding).any():
        amount = f"by up to {gap.max().item():.3g}"
        raise ValueError(
            f"{name} must be symmetric, but differs from its transpose {amount}: use ({name} + {name}.mT) / 2"
        )
    return value


def fits(name: str, value: Tensor, shape: tuple[int, ...], like: Tensor, whose: str) -> Tensor:
    """A finite tensor of the dtype of `like` whose last axes have this shape and whose leading axes broadcast to it.

    >>> fits("b", torch.zeros(3), (2,), like=torch.zeros(2, 2), whose="A")
    Traceback (most recent call last):
    ValueError: b must be a (..., 2) tensor to fit A, got shape (3,)
    """
    validate.floating(name, value)
    if value.ndim < len(shape) or tuple(value.shape[value.ndim - len(shape) :]) != shape:
        wanted = ", ".join(map(str, shape))
        raise ValueError(f"{name} must be a (..., {wanted}) tensor to fit {whose}, got shape {tuple(value.shape)}")
    if value.dtype != like.dtype:
        raise TypeError(f"{name} must have the dtype of {whose}, got {value.dtype}: use {name}.to({like.dtype})")
    return value


def broadcast(**shapes: tuple[int, ...]) -> None:
    """Leading axes that can be read as one batch.

    >>> broadcast(x=(2, 5), y=(3, 5))
    Traceback (most recent call last):
    ValueError: x and y must have leading axes that broadcast, got (2, 5) and (3, 5)
    """
    try:
        _ = torch.broadcast_shapes(*shapes.values())
    except RuntimeError:
        names, found = " and ".join(shapes), " and ".join(map(str, shapes.values()))
        raise ValueError(f"{names} must have leading axes that broadcast, got {found}") from None
