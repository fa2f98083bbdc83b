"""What every network for pictures asks of its input."""

from torch import Tensor

from lemmata import validate

__all__ = []  # for the networks beside it; users meet only the messages


def images(name: str, value: Tensor, channels: int, least: int = 1) -> Tensor:
    """Floating-point pictures, (batch, channels, height, width), with sides of at least so many pixels.

    >>> import torch
    >>> images("x", torch.zeros(3, 8, 8), channels=3)
    Traceback (most recent call last):
    ValueError: x must be (batch, 3, height, width), got shape (3, 8, 8): use x[None] for one picture
    """
    shape = tuple(validate.tensor(name, value).shape)
    if value.ndim != 4 or shape[1] != channels:
        remedy = f": use {name}[None] for one picture" if value.ndim == 3 and shape[0] == channels else ""
        raise ValueError(f"{name} must be (batch, {channels}, height, width), got shape {shape}{remedy}")
    if min(shape[2:]) < least:
        raise ValueError(f"{name} must have sides of at least {least} pixels, got {shape[2]} x {shape[3]}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {value.dtype}: use {name}.float() / 255")
    return value
