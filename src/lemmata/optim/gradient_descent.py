r"""Gradient descent: a step against the gradient, of all the data or of a minibatch."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

from typing import Any

import torch
from torch import Tensor

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
    Source: Cauchy 1847; Robbins and Monro 1951.  Differs: torch.optim.SGD has `dampening`; `nesterov` is `Nesterov`.

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
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        theirs = {"dampening": 0.0, "nesterov": False}  # torch.optim.SGD looks for them in what it loads
        super().__init__(params, chosen | theirs | {"maximize": maximize, "foreach": foreach, "fused": fused})

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        if group.get("nesterov") or group.get("dampening"):  # from a checkpoint of torch.optim.SGD
            raise ValueError("GradientDescent has no nesterov and no dampening: use Nesterov, or torch.optim.SGD")

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        for v in state:
            g = torch.add(g, v, alpha=group["momentum"], out=v)  # once through memory; mul_ and add_ go twice
        add(theta, g, -group["lr"])

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        for v in state:
            torch._foreach_mul_(v, group["momentum"])
            torch._foreach_add_(v, g)
            g = v
        add_all(theta, g, -group["lr"])

    def update_fused(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: Tensors, *state: Tensors) -> None:
        options = {name: group[name] for name in ("lr", "momentum", "weight_decay", "maximize")}
        velocity = state[0] if state else []
        torch._fused_sgd_(theta, g, velocity, **options, dampening=0.0, nesterov=False, is_first_step=False)
