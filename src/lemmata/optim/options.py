"""Options that every optimiser here checks in the same way."""

import functools
from collections.abc import Callable
from typing import Any

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


def check_damped(words: dict[str, Any]) -> None:
    """The options of a second-order method: `lr` and `damping`, what is added to every curvature."""
    learning_rate("lr", words["lr"])
    validate.number("damping", words["damping"], least=0)


def group_options(defaults: dict[str, Any], param_group: Any) -> dict[str, Any]:
    """The options of a group: its own, and the optimiser's where it has none.

    >>> group_options({"lr": 0.1}, [1, 2])
    Traceback (most recent call last):
    TypeError: param_group must be a dict, got list: use {"params": param_group}
    """
    if not isinstance(param_group, dict):
        raise TypeError(f'param_group must be a dict, got {type(param_group).__name__}: use {{"params": param_group}}')
    return defaults | param_group


def needs_closure(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that computes gradients itself, called without a closure, says so; its signature stays as it is."""

    @functools.wraps(step)
    def with_closure(self: Any, closure: Any = None) -> Any:
        if not callable(closure):
            kind, seen = type(self).__name__, "none" if closure is None else repr(closure)[:80]
            told = f"a function that computes the loss and calls its backward, got {seen}"
            raise TypeError(f"{kind}.step needs a closure, {told}: use optimizer.step(closure)")
        return step(self, closure)

    return with_closure
