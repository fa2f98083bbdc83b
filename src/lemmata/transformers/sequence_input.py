"""What layers for sequences ask of their input: vectors, the width of a head, and masks."""

from torch import Tensor

from lemmata import validate

__all__ = []  # for the layers beside it; users meet only the messages


def vectors(name: str, value: Tensor, width: int, axis: str = "time") -> Tensor:
    """Floating-point vectors of so many values, (batch, time, width); `axis` is what the message calls the second one.

    >>> import torch
    >>> vectors("x", torch.zeros(5, 8), width=8)
    Traceback (most recent call last):
    ValueError: x must be (batch, time, 8), got shape (5, 8)
    """
    # One look, as it is taken at every call: a small layer takes a few microseconds.
    if isinstance(value, Tensor) and value.ndim == 3 and value.shape[2] == width and value.is_floating_point():
        return value
    if validate.tensor(name, value).ndim != 3 or value.shape[2] != width:
        raise ValueError(f"{name} must be (batch, {axis}, {width}), got shape {tuple(value.shape)}")
    raise TypeError(f"{name} must hold floating-point numbers, got {value.dtype}: use {name}.float()")


def head_width_of(width: int, heads: int, head_width: int | None) -> int:
    """The width of each head: told, or an equal share."""
    if head_width is not None:
        return validate.count("head_width", head_width)
    if width % heads:
        raise ValueError(f"width must be a multiple of heads, got {width} and {heads}: or say head_width")
    return width // heads


def for_all_heads(mask: Tensor | None) -> Tensor | None:
    """The mask of a batch as one of (batch, heads, queries, keys)."""
    if mask is None:
        return None
    if validate.tensor("mask", mask).ndim not in (2, 3):
        raise ValueError(f"mask must be (batch, keys) or (batch, queries, keys), got shape {tuple(mask.shape)}")
    mask = mask.unsqueeze(1)  # for every head
    return mask.unsqueeze(1) if mask.ndim == 3 else mask
