r"""What a model does while it is not learning: it writes, translates and is looked at without dropout or gradients."""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

__all__ = ["evaluating"]


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No dropout and no gradients for a while; afterwards each part of the model is in the mode in which it was.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train()
    >>> with evaluating(model):
    ...     print(model.training, torch.is_grad_enabled())
    False False
    >>> model.training, torch.is_grad_enabled()
    (True, True)
    """
    modes = [(part, part.training) for part in model.modules()]  # some of them may have been frozen
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training
