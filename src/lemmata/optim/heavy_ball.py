r"""The heavy ball: gradient descent that keeps a part of its last displacement."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

from typing import Any

import torch
from torch import Tensor

from lemmata.marks import system
from lemmata.optim.first_order import FirstOrder, Tensors, add, add_all

__all__ = ["HeavyBall"]


@system("heavy_ball", title="Heavy ball (Polyak momentum)", kind="optimizer")
class HeavyBall(FirstOrder):
    r"""Polyak's momentum: the displacement decays by $\beta$ and is pushed by the gradient.

    $$ \theta_{t+1} = \theta_t - \eta\,\nabla h(\theta_t) + \beta\,(\theta_t - \theta_{t-1}) $$

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    The state `displacement` is $\theta_t - \theta_{t-1}$.

    Claims: optim.heavy_ball, optim.heavy_ball.constant_gradient, optim.momentum.sign_filter, optim.momentum.noise
    Source: Polyak 1964.  Differs: with the lr changing between steps, torch.optim.SGD (and `GradientDescent`) scale
    the whole displacement by the new lr, which is this formula for a constant lr only.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = HeavyBall([w], lr=0.25, momentum=0.5)
    >>> for _ in range(2):
    ...     w.grad = w.detach().clone()
    ...     optimizer.step()
    >>> w.item()  # 0.75 - 0.25 * 0.75 + 0.5 * (0.75 - 1)
    0.4375
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
        return ("displacement",)

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        (displacement,) = state
        add(displacement.mul_(group["momentum"]), g, -group["lr"])
        theta.add_(displacement)

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        (displacement,) = state
        torch._foreach_mul_(displacement, group["momentum"])
        add_all(displacement, g, -group["lr"])
        torch._foreach_add_(theta, displacement)
