r"""Newton's method: the step to the stationary point of the second-order model, by the whole Hessian."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.curvature_closure import curvature_of, learnt, move, spread
from lemmata.optim.options import check_damped, group_options, needs_closure

__all__ = ["Newton"]


@system("newton", title="Newton's method", kind="optimizer")
class Newton(Optimizer):
    r"""Jump to where the second-order model is stationary: a minimum, or a saddle just as well.

    $$ \theta \leftarrow \theta - \eta \big(\nabla^2\mathcal L(\theta) + \lambda I\big)^{-1} \nabla\mathcal L(\theta) $$

    The Hessian of all parameters is computed exactly and solved with, at a cost of $n$ gradients and $n^3$ operations:
    for up to `max_parameters` parameters; `NewtonCG` needs only products with it. `lr` and `damping` $\lambda$ may
    differ by group. Closures are the usual ones, and one call is a step.

    Shapes:
        parameters: any, together at most `max_parameters` entries

    Claims: optim.newton
    Source: I. Newton 1669, J. Raphson 1690; J. Nocedal and S. Wright, Numerical optimization (2006), chapter 3.
    Differs: gradients are computed by autograd.grad, so hooks of parameters and of DistributedDataParallel do not run.

    >>> place = torch.nn.Parameter(torch.tensor([3.0, -1.0]))
    >>> optimizer = Newton([place])
    >>> loss = optimizer.step(lambda: (place[0] - 1) ** 2 + 50 * place[1] ** 2)
    >>> place.detach()
    tensor([1., 0.])
    """

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1.0, damping: float = 0.0, max_parameters: int = 4096
    ) -> None:
        self.max_parameters = validate.count("max_parameters", max_parameters)
        super().__init__(params, {"lr": lr, "damping": damping})

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs: torch's part leaves out attributes of our own."""
        return super().__getstate__() | {"max_parameters": self.max_parameters}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group with an `lr` and a `damping` of its own."""
        check_damped(group_options(self.defaults, param_group))
        super().add_param_group(param_group)

    @needs_closure
    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """One step; `closure` computes the loss, and calls its `backward` or leaves that to us."""
        parameters = learnt(self.param_groups, "Newton")
        count = sum(p.numel() for p in parameters)
        if count > self.max_parameters:
            limit = f"{count:,} parameters exceed max_parameters = {self.max_parameters:,}"
            raise ValueError(f"{limit}: use NewtonCG, which stores no Hessian")
        found = curvature_of(closure, parameters)
        matrix = found.hessian()  # (parameters, parameters)
        matrix.diagonal().add_(spread(self.param_groups, "damping", found.gradient))
        change, info = torch.linalg.solve_ex(matrix, -found.gradient)
        if int(info):
            for parameter, gradient in zip(parameters, found.differentiable, strict=True):
                if not gradient.requires_grad and not gradient.any():
                    unused = f"no gradient reaches a parameter of shape {tuple(parameter.shape)}"
                    raise ValueError(f"the Hessian is singular, {unused}: leave it out of params, or set damping > 0")
            raise ValueError("the Hessian is singular: set damping > 0, or use NewtonCG")
        move(parameters, spread(self.param_groups, "lr", change) * change)
        return found.loss
