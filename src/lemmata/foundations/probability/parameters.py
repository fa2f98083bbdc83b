r"""Parameters of Gaussians, checked at the door: a mean, what spreads around it, an offset."""

import torch
from torch import Tensor

from lemmata import validate

__all__ = []  # for systems; users meet only the messages

Real = int | float | Tensor


def checked_mean(mean: Tensor, **spread: tuple[Tensor, str]) -> Tensor:
    """The mean, after a look whether each part of the covariance has its dtype, and the axes named."""
    validate.floating("mean", mean)
    if mean.ndim == 0:
        raise ValueError("mean must be a (..., features) tensor, got shape ()")
    for name, (value, named) in spread.items():
        validate.floating(name, value)
        if value.dtype != mean.dtype:
            raise TypeError(f"{name} must have the dtype of mean, got {value.dtype}: use {name}.to({mean.dtype})")
        axes = named.split()
        found = value.shape[value.ndim - len(axes) :] if value.ndim >= len(axes) else ()
        if not found or any(a == "features" and n != mean.shape[-1] for a, n in zip(axes, found, strict=True)):
            wanted = ", ".join(str(mean.shape[-1]) if axis == "features" else axis for axis in axes)
            raise ValueError(f"{name} must be a (..., {wanted}) tensor, got shape {tuple(value.shape)}")
    return mean


def above_zero(name: str, value: Tensor) -> Tensor:
    """All entries positive."""
    if bool((value <= 0).any()):
        raise ValueError(f"{name} must be > 0, got {float(value.min()):g}")
    return value


def symmetric_covariance(covariance: Tensor) -> Tensor:
    """The matrix, or where its triangles differ by no more than rounding, their mean.

    An entry of a covariance is rounded at the size of the two deviations that belong to it, whatever the others are.

    >>> symmetric_covariance(torch.tensor([[1.0, 0.5], [0.4, 1.0]]))
    Traceback (most recent call last):
    ValueError: covariance must be symmetric: use (covariance + covariance.mT) / 2
    """
    gap = (covariance - covariance.mT).detach().abs()
    if not bool(gap.any()):
        return covariance
    deviations = covariance.detach().diagonal(dim1=-2, dim2=-1).abs().sqrt()
    rounding = 4 * covariance.shape[-1] * torch.finfo(covariance.dtype).eps
    if bool((gap > rounding * deviations[..., :, None] * deviations[..., None, :]).any()):
        raise ValueError("covariance must be symmetric: use (covariance + covariance.mT) / 2")
    return mean_of_triangles(covariance)


def mean_of_triangles(matrix: Tensor) -> Tensor:
    """Exactly symmetric; halved first, so that large entries do not overflow."""
    return matrix / 2 + matrix.mT / 2


def offset_of(value: Real, like: Tensor) -> Tensor:
    """A finite offset as a tensor; a number takes the dtype of `like`."""
    if isinstance(value, Tensor):
        return validate.floating("offset", value)
    return like.new_tensor(float(validate.finite_number("offset", value)))
