r"""A model is lent, to the audit or to an attack, and given back exactly as it was found."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.train.randomness import random_state, restore_random_state

__all__ = ["kept_as_found"]

HOOKS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


@contextlib.contextmanager
def kept_as_found(model: nn.Module) -> Iterator[Callable[[], None]]:
    r"""Whatever happens inside, afterwards weights, buffers, gradients, modes and hooks are as before, and all
    generators of random numbers stand where they stood; also after an error or Ctrl-C. What is yielded gives all of it
    back at once, as often as it is called.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    >>> before = {name: value.clone() for name, value in model.state_dict().items()}
    >>> with kept_as_found(model):
    ...     model(torch.randn(8, 2)).sum().backward()
    ...     _ = nn.init.zeros_(model[0].weight)
    >>> all(torch.equal(value, before[name]) for name, value in model.state_dict().items()), model[0].weight.grad
    (True, None)
    """
    kept = _Kept(model)
    try:
        yield kept.give_back
    finally:
        kept.give_back()


class _Kept:
    """Everything of a model that measuring could change."""

    def __init__(self, model: nn.Module):
        parameters = list(model.parameters())
        self.random = random_state()
        self.grad_enabled = torch.is_grad_enabled()
        self.values = [(value, value.detach().clone()) for value in [*parameters, *model.buffers()]]
        self.flags = [(value, value.requires_grad) for value in parameters]
        self.grads = [(value, value.grad, None if value.grad is None else value.grad.clone()) for value in parameters]
        self.tables = [(part, _module_tables(part)) for part in model.modules()]
        self.attributes = [(part, dict(vars(part))) for part in model.modules()]  # mode, counters, what forward keeps

    def give_back(self) -> None:
        with torch.no_grad():
            for part, attributes in self.attributes:
                _restore_entries(vars(part), attributes)
            for part, tables in self.tables:  # before the values: a part that was replaced holds other tensors
                for name, table in tables.items():
                    _restore_entries(getattr(part, name), table)
            for value, before in self.values:
                _put_back(value, before)
            for value, grad, before in self.grads:
                if grad is not None and before is not None:
                    _put_back(grad, before)
                value.grad = grad
        for value, wanted in self.flags:
            value.requires_grad_(wanted)
        torch.set_grad_enabled(self.grad_enabled)
        restore_random_state(self.random)


def _module_tables(part: nn.Module) -> dict[str, dict[Any, Any]]:
    """A module's own tables: what hangs on it, and which tensors and parts it holds by which names."""
    names = [name for name in HOOKS if isinstance(getattr(part, name, None), dict)]
    return {name: dict(getattr(part, name)) for name in [*names, "_parameters", "_buffers", "_modules"]}


def _restore_entries(held: dict[Any, Any], before: dict[Any, Any]) -> None:
    """The same entries in the same order, each the very object it was."""
    if list(held) != list(before) or any(held[key] is not value for key, value in before.items()):
        held.clear()
        held.update(before)


def _put_back(value: Tensor, before: Tensor) -> None:
    """The numbers as they were. What is unchanged keeps the version that autograd counts."""
    if (value.shape, value.dtype, value.device) != (before.shape, before.dtype, before.device):
        value.data = before.clone()  # what was kept may be wanted again
        return
    same = (value == before) | ((value != value) & (before != before))  # NaN stays NaN
    if not bool(same.all()):
        value.copy_(before)
