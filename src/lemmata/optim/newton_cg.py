r"""Newton's method by products with the Hessian: conjugate gradients for the direction, then a line search."""

# pyright: reportPrivateImportUsage=false
# The operations on lists of tensors, torch._foreach_*, are what torch.optim itself is written with.
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.curvature_closure import curvature_of, learnt, move, spread
from lemmata.optim.options import check_damped, group_options, needs_closure

__all__ = ["NewtonCG", "truncated_cg"]

# Armijo's fraction of the decrease that the slope promises, and how often a step is halved before it is given up.
PROMISED, HALVINGS = 1e-4, 30


@system("newton_cg", title="Newton's method by conjugate gradients", kind="optimizer")
class NewtonCG(Optimizer):
    r"""Solve Newton's equations roughly, by products with the Hessian, and never go up.

    $$ \big\|(\nabla^2\mathcal L + \lambda I)\, d + \nabla\mathcal L\big\| \le \tau \|\nabla\mathcal L\|, \qquad
       \theta \leftarrow \theta + \eta\, 2^{-k} d $$

    with $\tau = \min(0.01, \sqrt{\|\nabla\mathcal L\|})$ unless `tolerance` is given, which makes the convergence
    superlinear, and the least $k$ for which the loss falls by $10^{-4}$ of what the slope promises. Where conjugate
    gradients meet a direction of curvature $\le 0$ they stop with what they have, so that $d$ always descends: saddles
    repel. Where an `lr` that differs by group turns $d$ upwards, $-\nabla\mathcal L$ takes its place. A product costs
    about two gradients and no memory beyond theirs; without `line_search` a step may go up.

    Shapes:
        parameters: any

    Claims: optim.newton
    Source: R. Dembo and T. Steihaug 1983; J. Nocedal and S. Wright, Numerical optimization (2006), algorithm 7.1.
    Differs: gradients are computed by autograd.grad, so hooks of parameters and of DistributedDataParallel do not run;
        closures must give the same loss at the same place (no dropout), or the line search compares what differs.

    >>> place = torch.nn.Parameter(torch.tensor([-1.2, 1.0], dtype=torch.float64))
    >>> optimizer = NewtonCG([place])
    >>> for _ in range(40):
    ...     loss = optimizer.step(lambda: (1 - place[0]) ** 2 + 100 * (place[1] - place[0] ** 2) ** 2)
    >>> place.detach().round(decimals=6)
    tensor([1., 1.], dtype=torch.float64)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1.0,
        damping: float = 0.0,
        max_iterations: int = 100,
        tolerance: float | None = None,
        line_search: bool = True,
    ) -> None:
        self.max_iterations = validate.count("max_iterations", max_iterations)
        self.tolerance = None if tolerance is None else validate.number("tolerance", tolerance, above=0, below=1)
        self.line_search = validate.flag("line_search", line_search)
        super().__init__(params, {"lr": lr, "damping": damping})

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs: torch's part leaves out attributes of our own."""
        return super().__getstate__() | {
            "max_iterations": self.max_iterations,
            "tolerance": self.tolerance,
            "line_search": self.line_search,
        }

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group with an `lr` and a `damping` of its own."""
        check_damped(group_options(self.defaults, param_group))
        super().add_param_group(param_group)

    @needs_closure
    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """One step; `closure` computes the loss, and calls its `backward` or leaves that to us."""
        parameters = learnt(self.param_groups, "NewtonCG")
        found = curvature_of(closure, parameters)
        damping = spread(self.param_groups, "damping", found.gradient)
        size = float(torch.linalg.vector_norm(found.gradient))
        tolerance = min(0.01, size**0.5) if self.tolerance is None else self.tolerance
        direction = truncated_cg(
            lambda v: found.product(v) + damping * v, -found.gradient, tolerance, self.max_iterations
        )
        rates = spread(self.param_groups, "lr", direction)
        change = rates * direction
        if not self.line_search:
            move(parameters, change)
            return found.loss
        slope = float(found.gradient @ change)
        if not slope < 0:  # rates that differ by group have turned it upwards
            change = -rates * found.gradient
            slope = float(found.gradient @ change)
        if slope < 0:
            self._line_search(closure, parameters, change, _loss_value(found.loss), slope)
        return found.loss

    def _line_search(
        self, closure: Callable[[], Any], parameters: list[Tensor], change: Tensor, start: float, slope: float
    ) -> None:
        """Go along the change, halving it until the loss falls enough; without such a step stay."""
        places = [p.clone() for p in parameters]
        rounding = 4 * torch.finfo(change.dtype).eps * abs(start)  # near a minimum the loss no longer tells
        length = 1.0
        for _ in range(HALVINGS):
            move(parameters, length * change)
            try:
                with torch.enable_grad():  # the closure may call backward
                    reached = _loss_value(closure())
            except BaseException:
                torch._foreach_copy_(parameters, places)  # they must not be left where only the loss was wanted
                raise
            if reached <= start + PROMISED * length * slope + rounding:
                return
            torch._foreach_copy_(parameters, places)
            length /= 2


def _loss_value(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, Tensor) else loss)


def truncated_cg(
    product: Callable[[Tensor], Tensor],
    target: Float[Tensor, " n"],
    tolerance: float = 1e-10,
    max_iterations: int = 100,
) -> Float[Tensor, " n"]:
    r"""Solve $Ad = b$ by conjugate gradients from $d = 0$, stopping early at directions of curvature $\le 0$.

    $$ \alpha = \frac{r^\top r}{p^\top Ap}, \quad d \leftarrow d + \alpha p, \quad r \leftarrow r - \alpha Ap, \quad
       p \leftarrow r + \frac{r_{new}^\top r_{new}}{r^\top r}\, p $$

    It ends with $\|Ad - b\| \le \tau\|b\|$, after `max_iterations`, or where $p^\top Ap \le 0$: with the $d$ found so
    far, or with $b$ itself if there is none yet. Every such $d$ has $b^\top d > 0$.

    Shapes:
        target: (n,)    returns: (n,)

    >>> matrix = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> truncated_cg(lambda v: matrix @ v, torch.tensor([1.0, 2.0]))
    tensor([0.0909, 0.6364])
    """
    found, residual, direction = torch.zeros_like(target), target.clone(), target.clone()
    square = residual @ residual
    enough = tolerance**2 * square
    for iteration in range(max_iterations):
        if square <= enough:  # also a target of zero
            break
        bent = product(direction)
        curvature = direction @ bent
        if curvature <= 0:
            return target.clone() if iteration == 0 else found
        found = found + square / curvature * direction
        residual = residual - square / curvature * bent
        before, square = square, residual @ residual
        direction = residual + square / before * direction
    return found
