"""Options that every optimiser here checks in the same way."""

from torch import Tensor

from lemmata import validate

__all__ = []  # for optimisers; users meet only the messages


def learning_rate(name: str, value: float | Tensor) -> None:
    """A number, or a tensor without axes that holds one; at least zero.

    >>> import torch
    >>> learning_rate("lr", torch.tensor([0.1]))
    Traceback (most recent call last):
    ValueError: lr must be a number or a tensor without axes, got shape (1,)
    """
    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(f"{name} must be a number or a tensor without axes, got shape {tuple(value.shape)}")
        value = value.item()
    validate.number(name, value, least=0)
