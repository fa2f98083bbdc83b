r"""Gradient descent: a step against the gradient, of all the data or of a minibatch."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.first_order import FirstOrder, Tensors, add, add_all

__all__ = ["GradientDescent"]


@system("sgd", title="Gradient descent (GD, SGD)", kind="optimizer")
class GradientDescent(FirstOrder):
    r"""Gradient descent, and with gradients of minibatches stochastic gradient descent.

    $$ \theta_{t+1} = \theta_t - \eta\,\nabla h(\theta_t) $$

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    With `momentum` the direction is $v_t = \mu v_{t-1} + \nabla h(\theta_t)$, as torch.optim.SGD has it: a smaller
    lr slows the past down too, unlike in `HeavyBall`.

    Claims: optim.gd, optim.gd.init_dependence, optim.sgd, optim.sgd.unbiased, optim.sgd.rates, optim.robbins_monro,
        optim.sgd.basin_width, optim.sgd.escape
    Source: Cauchy 1847; Robbins and Monro 1951.  Differs: no `dampening`. `nesterov` is torch's form by velocities;
        `Nesterov` keeps the iterate, and is what the theorem speaks of.

    >>> w = torch.tensor([2.0, -1.0], requires_grad=True)
    >>> optimizer = GradientDescent([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach().tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        *,
        dampening: float = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        chosen |= {"dampening": dampening, "nesterov": nesterov}
        super().__init__(params, chosen | {"maximize": maximize, "foreach": foreach, "fused": fused})

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        if group["dampening"]:  # given, or from a checkpoint of torch.optim.SGD
            raise ValueError(f"dampening must be 0, got {group['dampening']}: use torch.optim.SGD")
        if validate.flag("nesterov", group["nesterov"]) and not group["momentum"]:
            raise ValueError(f"nesterov needs momentum > 0, got {group['momentum']}: use momentum=0.9")

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        for v in state:
            torch.add(g, v, alpha=group["momentum"], out=v)  # once through memory; mul_ and add_ go twice
            g = torch.add(g, v, alpha=group["momentum"]) if group.get("nesterov") else v
        add(theta, g, -group["lr"])

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        for v in state:
            torch._foreach_mul_(v, group["momentum"])
            torch._foreach_add_(v, g)
            g = torch._foreach_add(g, v, alpha=group["momentum"]) if group.get("nesterov") else v
        add_all(theta, g, -group["lr"])

    def update_fused(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: Tensors, *state: Tensors) -> None:
        options = {name: group[name] for name in ("lr", "momentum", "weight_decay", "maximize", "nesterov")}
        velocity = state[0] if state else []
        torch._fused_sgd_(theta, g, velocity, **options, dampening=0.0, is_first_step=False)
