r"""AdaGrad: a learning rate for each coordinate, that falls with all the gradients seen there."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.first_order import FirstOrder, Tensors, add_quotient, add_quotient_all

__all__ = ["Adagrad"]


@system("adagrad", title="AdaGrad", kind="optimizer")
class Adagrad(FirstOrder):
    r"""Each coordinate's step is divided by the root of the sum of its squared gradients.

    $$ \gamma_t = \gamma_{t-1} + g_t^{\odot 2}, \qquad
       \theta_{t+1} = \theta_t - \frac{\eta}{\sqrt{\gamma_t} + \delta}\odot g_t $$

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    $\delta$ is `eps`; `lr_decay` divides lr by $1 + (t-1)\,$`lr_decay`, and `initial_accumulator_value` is $\gamma_0$.

    Claims: optim.adagrad, optim.adaptive.principle
    Source: Duchi, Hazan and Singer 2011.  Differs: some texts have the small constant inside of the root.

    >>> w = torch.tensor([1.0, 100.0], requires_grad=True)
    >>> optimizer = Adagrad([w], lr=0.5, eps=0.0)
    >>> w.grad = torch.tensor([1e-3, -1e3])
    >>> optimizer.step()
    >>> w.detach().tolist()  # the first step has length lr whatever the gradient
    [0.5, 100.5]
    """

    counts = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
        chosen["initial_accumulator_value"] = initial_accumulator_value
        super().__init__(params, chosen | {"maximize": maximize, "foreach": foreach, "fused": fused})

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        for name in ("lr_decay", "initial_accumulator_value"):
            validate.number(name, group[name], least=0)

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def start(self, group: dict[str, Any], name: str, parameter: Tensor) -> Tensor:
        value = group["initial_accumulator_value"]
        value = complex(value, value) if parameter.is_complex() else value
        return torch.full_like(parameter, value, memory_format=torch.preserve_format)

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        (gamma,) = state
        gamma.addcmul_(g, g)
        lr = group["lr"] / (1 + (t - 1) * group["lr_decay"])
        add_quotient(theta, g, gamma.sqrt().add_(group["eps"]), -lr)

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        (gamma,) = state
        torch._foreach_addcmul_(gamma, g, g)
        lrs = [group["lr"] / (1 + (count - 1) * group["lr_decay"]) for count in t]
        roots = torch._foreach_sqrt(gamma)
        torch._foreach_add_(roots, group["eps"])
        add_quotient_all(theta, g, roots, [-lr for lr in lrs])

    def update_fused(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: Tensors, *state: Tensors) -> None:
        torch._foreach_add_(t, 1)
        options = {name: group[name] for name in ("lr", "lr_decay", "weight_decay", "eps", "maximize")}
        torch._fused_adagrad_(theta, g, state[0], t, **options)
