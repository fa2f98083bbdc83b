r"""Adam and AdamW: momentum and a learning rate for each coordinate, both corrected for their start at zero."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

import math
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.first_order import FirstOrder, Tensors, add_quotient, add_quotient_all

__all__ = ["Adam", "AdamW"]


@system("adam", title="Adam", kind="optimizer")
class Adam(FirstOrder):
    r"""Decaying means of gradients and of squared gradients, corrected for their start at zero, make the step.

    $$ m_t = \beta_1 m_{t-1} + (1-\beta_1)g_t, \quad v_t = \beta_2 v_{t-1} + (1-\beta_2)g_t^{\odot 2}, \quad
       \theta_{t+1} = \theta_t - \eta\,\frac{m_t/(1-\beta_1^t)}{\sqrt{v_t/(1-\beta_2^t)} + \epsilon} $$

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    `weight_decay` adds $\lambda\theta$ to the gradient; in `AdamW` it acts beside it. With `amsgrad` the largest $v$ so
    far stands in its place, so that no coordinate's rate grows again.

    Claims: optim.adam, optim.adam.bias_correction, optim.adaptive.principle
    Source: Kingma and Ba 2015; for `amsgrad` Reddi, Kale and Kumar 2018.  Differs: some texts leave the corrections
    out or have epsilon inside of the root.

    >>> w = torch.tensor([1.0, 100.0], requires_grad=True)
    >>> optimizer = Adam([w], lr=0.5)
    >>> w.grad = torch.tensor([1e-3, -1e3])
    >>> optimizer.step()
    >>> [round(x, 4) for x in w.tolist()]  # the first step has length lr whatever the gradient
    [0.5, 100.5]
    """

    counts = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, chosen | {"maximize": maximize, "foreach": foreach, "fused": fused})

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        if not isinstance(group["betas"], (tuple, list)) or len(group["betas"]) != 2:
            raise TypeError(f"betas must be two numbers, got {group['betas']!r}")
        for index, beta in enumerate(group["betas"]):
            validate.fraction(f"betas[{index}]", beta)
        validate.flag("amsgrad", group["amsgrad"])

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group.get("amsgrad") else ("exp_avg", "exp_avg_sq")

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        (m, v, *largest), (beta1, beta2) = state, group["betas"]
        if not self.coupled_decay and group["weight_decay"]:
            theta.mul_(1 - group["lr"] * group["weight_decay"])
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        for highest in largest:
            v = torch.maximum(highest, v, out=highest)
        # The corrections are numbers: moved to lr and epsilon they cost no pass over the parameters.
        root = correction(beta2, t) ** 0.5
        add_quotient(theta, m, v.sqrt().add_(group["eps"] * root), -group["lr"] * root / correction(beta1, t))

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        (m, v, *largest), (beta1, beta2) = state, group["betas"]
        if not self.coupled_decay and group["weight_decay"]:
            torch._foreach_mul_(theta, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_lerp_(m, g, 1 - beta1)
        torch._foreach_mul_(v, beta2)
        torch._foreach_addcmul_(v, g, g, value=1 - beta2)
        for highest in largest:
            torch._foreach_maximum_(highest, v)
            v = highest
        roots = [correction(beta2, count) ** 0.5 for count in t]
        below = torch._foreach_sqrt(v)
        torch._foreach_add_(below, [group["eps"] * root for root in roots])
        lrs = [-group["lr"] * root / correction(beta1, count) for root, count in zip(roots, t, strict=True)]
        add_quotient_all(theta, m, below, lrs)

    def update_fused(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: Tensors, *state: Tensors) -> None:
        torch._foreach_add_(t, 1)
        options = {name: group[name] for name in ("lr", "weight_decay", "eps", "maximize")}
        kernel = torch._fused_adam_ if self.coupled_decay else torch._fused_adamw_
        (m, v, *largest), (beta1, beta2) = state, group["betas"]
        highest = largest[0] if largest else []
        kernel(theta, g, m, v, highest, t, beta1=beta1, beta2=beta2, amsgrad=bool(largest), **options)


@system("adamw", title="AdamW", kind="optimizer")
class AdamW(Adam):
    r"""Adam whose weight decay is no part of the gradient, and so is not divided by its size.

    $$ \theta_{t+1} = (1-\eta\lambda)\,\theta_t - \eta\,\frac{\hat m_t}{\sqrt{\hat v_t}+\epsilon} $$

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    Claims: optim.adam
    Source: Loshchilov and Hutter 2019.

    >>> w = torch.tensor([2.0], requires_grad=True)
    >>> w.grad = torch.zeros(1)
    >>> AdamW([w], lr=0.5, weight_decay=0.5).step()
    >>> w.item()
    1.5
    """

    coupled_decay = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, foreach=foreach, fused=fused)


def correction(beta: float, t: Any) -> Any:
    r"""$1-\beta^t$. Of a compiled step t is a tensor in float32, where the difference would lose most of its digits."""
    if isinstance(t, Tensor):
        return -torch.expm1(t * math.log(beta)) if beta else torch.ones_like(t)
    return 1 - beta**t
