r"""RMSProp: AdaGrad that forgets, so that its steps do not die out."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.first_order import FirstOrder, Tensors, add, add_all, add_quotient, add_quotient_all

__all__ = ["RMSprop"]


@system("rmsprop", title="RMSProp", kind="optimizer")
class RMSprop(FirstOrder):
    r"""Each coordinate's step is divided by the root of a decaying mean of its squared gradients.

    $$ v_t = \beta v_{t-1} + (1-\beta)\,g_t^{\odot 2}, \qquad
       \theta_{t+1} = \theta_t - \frac{\eta}{\sqrt{v_t} + \epsilon}\odot g_t $$

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    $\beta$ is `alpha`, torch's word for it. With `momentum` the quotients are summed up before they are subtracted.

    Claims: optim.rmsprop, optim.adaptive.principle
    Source: Tieleman and Hinton 2012.  Differs: some texts have epsilon inside of the root; torch.optim.RMSprop can
    also subtract the squared mean (`centered`).

    >>> w = torch.tensor([1.0, 100.0], requires_grad=True)
    >>> optimizer = RMSprop([w], lr=0.5, alpha=0.75, eps=0.0)
    >>> w.grad = torch.tensor([1e-3, -1e3])
    >>> optimizer.step()
    >>> w.detach().tolist()  # the first step has length lr / sqrt(1 - alpha)
    [0.0, 101.0]
    """

    counts = True  # torch's state has the number of the step; this update does not need it

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        chosen["centered"] = centered
        super().__init__(params, chosen | {"maximize": maximize, "foreach": foreach})

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        validate.fraction("alpha", group["alpha"])
        if group["centered"]:  # given, or from a checkpoint of torch.optim.RMSprop
            raise ValueError("centered must be False: use torch.optim.RMSprop")

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "momentum_buffer") if group["momentum"] else ("square_avg",)

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        v, *velocity = state
        v.mul_(group["alpha"]).addcmul_(g, g, value=1 - group["alpha"])
        root = v.sqrt().add_(group["eps"])
        if not velocity:
            add_quotient(theta, g, root, -group["lr"])
        else:
            velocity[0].mul_(group["momentum"]).addcdiv_(g, root)
            add(theta, velocity[0], -group["lr"])

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        v, *velocity = state
        torch._foreach_mul_(v, group["alpha"])
        torch._foreach_addcmul_(v, g, g, value=1 - group["alpha"])
        roots = torch._foreach_sqrt(v)
        torch._foreach_add_(roots, group["eps"])
        if not velocity:
            add_quotient_all(theta, g, roots, [-group["lr"]] * len(theta))
        else:
            torch._foreach_mul_(velocity[0], group["momentum"])
            torch._foreach_addcdiv_(velocity[0], g, roots)
            add_all(theta, velocity[0], -group["lr"])
