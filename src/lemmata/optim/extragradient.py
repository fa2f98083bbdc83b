r"""Extragradient: look one step ahead, then step with the gradient found there. For games, where descent circles."""

# pyright: reportPrivateImportUsage=false
# The operations on lists of tensors, torch._foreach_*, are what torch.optim itself is written with.
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.options import group_options, learning_rate, needs_closure

__all__ = ["Extragradient"]


@system("extragradient", title="Extragradient", kind="optimizer")
class Extragradient(Optimizer):
    r"""A step by the gradient at the place to which a first step would lead.

    $$ \theta' = \theta - \eta\, g(\theta), \qquad \theta \leftarrow \theta - \eta\, g(\theta') $$

    For a game $\min_x \max_y f(x, y)$ the field is $g = (\nabla_x f, -\nabla_y f)$: the parameters that maximise are a
    group with `maximize=True`. On $f = xy$ descent and ascent spiral outwards, whatever the step; the extragradient
    step contracts for $\eta < 1$.

    `step` calls the closure twice: it sets gradients to zero, computes the loss and calls `backward`.

    Shapes:
        parameters: any

    Source: G. Korpelevich 1976.

    >>> x, y = (torch.nn.Parameter(torch.tensor(1.0)) for _ in range(2))
    >>> optimizer = Extragradient([{"params": [x]}, {"params": [y], "maximize": True}], lr=0.5)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     (x * y).backward()
    >>> for _ in range(100): optimizer.step(closure)
    >>> max(abs(x.item()), abs(y.item())) < 1e-4
    True
    """

    def __init__(self, params: Iterable[Any], lr: float | Tensor = 1e-2, maximize: bool = False) -> None:
        super().__init__(params, {"lr": lr, "maximize": maximize})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group with an `lr` and a side of the game of its own."""
        words = group_options(self.defaults, param_group)
        learning_rate("lr", words["lr"])
        validate.flag("maximize", words["maximize"])
        super().add_param_group(param_group)

    @needs_closure
    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """One update; `closure` computes loss and gradients, here and one step ahead."""
        compute = torch.enable_grad()(closure)
        loss = compute()
        places = {p: p.clone() for group in self.param_groups for p in group["params"] if p.grad is not None}
        if not places:
            raise ValueError("Extragradient found no gradient: closure must call backward")
        try:
            self._descend_once()
            self.zero_grad()
            compute()
        finally:
            torch._foreach_copy_(list(places), list(places.values()))
        self._descend_once()
        return loss

    def _descend_once(self) -> None:
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params if p.grad is not None]
            if any(grad.is_sparse for grad in grads):
                raise ValueError("Extragradient takes dense gradients, got a sparse one: set sparse=False")
            if params:
                length = group["lr"] if group["maximize"] else -group["lr"]
                torch._foreach_add_(params, torch._foreach_mul(grads, length))
