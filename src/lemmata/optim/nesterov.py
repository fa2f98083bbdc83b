r"""Nesterov's accelerated gradient: the gradient is taken where momentum alone would lead."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

from typing import Any

import torch
from torch import Tensor

from lemmata.marks import system
from lemmata.optim.first_order import FirstOrder, Tensors, add, add_all

__all__ = ["Nesterov"]


@system("nesterov", title="Nesterov accelerated gradient", kind="optimizer")
class Nesterov(FirstOrder):
    r"""Extrapolate first, then step against the gradient found at the look-ahead point $\chi$.

    $$ \chi_{t+1} = \theta_t + \beta(\theta_t - \theta_{t-1}), \qquad
       \theta_{t+1} = \chi_{t+1} - \eta\,\nabla h(\chi_{t+1}) $$

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    The parameters hold $\chi$, where the next gradient is wanted; $\theta$ is the state `iterate`. `momentum` of a
    group may be set before a step, as `lr` may: $\frac{t-1}{t+2}$ before step $t$ serves convex functions.

    Claims: optim.nesterov
    Source: Nesterov 1983; in these variables Sutskever et al. 2013.  Differs: torch.optim.SGD(nesterov=True) gives
    the same parameters for constant lr and momentum, from a velocity instead of the iterate.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = Nesterov([w], lr=0.25, momentum=0.5)
    >>> w.grad = w.detach().clone()
    >>> optimizer.step()
    >>> optimizer.state[w]["iterate"].item(), w.item()  # 1 - 0.25, then half of the way from 1 further on
    (0.75, 0.625)
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, chosen | {"maximize": maximize, "foreach": foreach})

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("iterate",)

    def start(self, group: dict[str, Any], name: str, parameter: Tensor) -> Tensor:
        return parameter.clone(memory_format=torch.preserve_format)

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        chi, (iterate,) = theta, state
        add(chi, g, -group["lr"])  # the new iterate, for now where the look-ahead point was
        ahead = torch.lerp(iterate, chi, 1 + group["momentum"])
        iterate.copy_(chi)
        chi.copy_(ahead)

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        chi, (iterate,) = theta, state
        add_all(chi, g, -group["lr"])
        ahead = torch._foreach_lerp(iterate, chi, 1 + group["momentum"])
        torch._foreach_copy_(iterate, chi)
        torch._foreach_copy_(chi, ahead)
