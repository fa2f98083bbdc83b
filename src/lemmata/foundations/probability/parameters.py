r"""Parameters of laws that may be given as numbers or as tensors: Python's numbers take the dtype of their company."""

import torch
from torch import Tensor

from lemmata import validate

__all__ = []  # for systems; users meet only the messages

Real = int | float | Tensor


def real(name: str, value: Real, *company: Real) -> Tensor:
    """A finite tensor. A number becomes one in the dtype of the first tensor in its company, else a double.

    >>> real("rate", 3, torch.zeros(2)).dtype, real("rate", 3, 0.5).dtype
    (torch.float32, torch.float64)
    """
    if isinstance(value, Tensor):
        return validate.floating(name, value)
    tensors = [other for other in company if isinstance(other, Tensor)]
    like = next((other for other in tensors if other.is_floating_point()), None)
    number = float(validate.finite_number(name, value))
    return torch.tensor(number, dtype=torch.float64) if like is None else like.new_tensor(number)


def at_least_zero(name: str, value: Real, *company: Real) -> Tensor:
    """As `real`, without negative numbers."""
    number = real(name, value, *company)
    if bool((number < 0).any()):
        raise ValueError(f"{name} must be >= 0, got {float(number.min()):g}")
    return number


def above_zero(name: str, value: Real, *company: Real) -> Tensor:
    """As `real`, all entries positive."""
    number = real(name, value, *company)
    if bool((number <= 0).any()):
        raise ValueError(f"{name} must be > 0, got {float(number.min()):g}")
    return number


def probability(name: str, value: Real, *company: Real) -> Tensor:
    """As `real`, from 0 to 1."""
    number = real(name, value, *company)
    if bool(((number < 0) | (number > 1)).any()):
        outside = number[(number < 0) | (number > 1)]
        raise ValueError(f"{name} must lie between 0 and 1, got {float(outside[0]):g}")
    return number


def masses(name: str, value: Tensor, axes: tuple[int, ...] = (-1,)) -> Tensor:
    """A finite tensor of probabilities that sum to 1 over some of its axes.

    A law normalised in its own dtype is so up to a few rounding units: half of the digits leave room for many.
    """
    validate.floating(name, value)
    noun = "axis" if len(axes) == 1 else "axes"
    if value.ndim < len(axes):
        raise ValueError(f"{name} must have at least {len(axes)} {noun}, got shape {tuple(value.shape)}")
    if bool((value < 0).any()):
        raise ValueError(f"{name} must hold probabilities, got {float(value.min()):g}")
    total = value.detach().double().sum(axes)
    wrong = total[(total - 1).abs() > torch.finfo(value.dtype).eps ** 0.5]
    if wrong.numel():
        over = axes[0] if len(axes) == 1 else axes
        remedy = f"use {name} / {name}.sum({over}, keepdim=True)"
        raise ValueError(f"{name} must sum to 1 over its {noun} {over}, got {float(wrong[0]):.9g}: {remedy}")
    return value
