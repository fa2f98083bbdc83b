r"""Lagrangians of equality-constrained problems: stationary points, and the multiplier as a price."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.matrix_calculus.jacobians import gradient_of, hessian_of
from lemmata.marks import system

__all__ = ["Lagrangian", "StationaryPoint"]

MAX_STEPS = 100  # of Newton's method, which needs about six from a good start
DEGENERATE = "start leads to a degenerate point of the Lagrangian: try another"


class StationaryPoint(NamedTuple):
    """Where the gradient of a Lagrangian vanishes: the point, its multiplier and the value of the objective."""

    x: Tensor
    multiplier: Tensor
    value: Tensor


@system("lagrangian", title="Lagrangian of an equality-constrained problem", kind="function")
class Lagrangian:
    r"""The Lagrangian of an objective on the set where a constraint function has a given value.

    $$ \mathcal L(x, \gamma) = f(x) - \gamma\,(g(x) - c), \qquad \nabla\mathcal L = 0 \iff
       \nabla f = \gamma \nabla g,\ g = c $$

    With this sign of $\gamma$ the multiplier is the derivative of the optimal value: $\gamma = df^*/dc$.

    Shapes:
        objective, constraint: (n,) to one number, level: c    calling it with x (n,) and $\gamma$: one number

    Claims: calculus.lagrangian

    >>> circle = Lagrangian(lambda x: x.sum(), lambda x: x @ x, level=2.0)
    >>> x, multiplier, value = circle.stationary_point(torch.tensor([1.0, 0.5], dtype=torch.float64))
    >>> x, multiplier, value
    (tensor([1., 1.], dtype=torch.float64), tensor(0.5000, dtype=torch.float64), tensor(2., dtype=torch.float64))
    """

    def __init__(
        self, objective: Callable[[Any], Any], constraint: Callable[[Any], Any], level: int | float = 0.0
    ) -> None:
        self.objective, self.constraint = objective, constraint
        self.level = validate.finite_number("level", level)

    def __call__(self, x: Any, multiplier: Any) -> Any:
        r"""The value $\mathcal L(x, \gamma)$; tensors or sympy symbols."""
        return self.objective(x) - multiplier * (self.constraint(x) - self.level)

    def gradient(self, x: Float[Tensor, "n"], multiplier: Float[Tensor, ""]) -> Float[Tensor, "unknowns"]:
        r"""The gradient with respect to x and $\gamma$, one after the other: $(\nabla f - \gamma\nabla g,\ c - g)$."""
        return gradient_of(self._joined, self._unknowns(x, multiplier))

    def stationary_point(self, start: Float[Tensor, "n"]) -> StationaryPoint:
        r"""The point near a start where $\nabla\mathcal L = 0$, by Newton's method: an optimum or a saddle."""
        validate.vector("start", start)
        slope = gradient_of(self.constraint, start)
        if not slope.any():
            raise ValueError("start must not be a critical point of constraint: its gradient is 0 there, move it")
        # The multiplier that makes the gradients as parallel as they can be.
        first = gradient_of(self.objective, start) @ slope / (slope @ slope)
        unknowns = self._unknowns(start, first)
        for _ in range(MAX_STEPS):
            step = _newton_step(hessian_of(self._joined, unknowns), gradient_of(self._joined, unknowns))
            unknowns = unknowns - step
            # Newton doubles the digits, so a step this small leaves nothing to gain.
            if step.abs().max() <= 8 * torch.finfo(unknowns.dtype).eps * unknowns.abs().max():
                x = unknowns[:-1]
                return StationaryPoint(x, unknowns[-1], self.objective(x))
        raise ValueError(f"no stationary point was reached in {MAX_STEPS} steps from start: try another")

    def _unknowns(self, x: Tensor, multiplier: Tensor) -> Tensor:
        return torch.cat([validate.vector("x", x), multiplier.reshape(1)])

    def _joined(self, unknowns: Tensor) -> Tensor:
        return self(unknowns[:-1], unknowns[-1])


def _newton_step(hessian: Tensor, gradient: Tensor) -> Tensor:
    """The solution of a symmetric system whose unknowns may be of different scales; an error where rounding alone has.

    A matrix that is singular up to rounding has a solution all the same, which is nothing but rounding.
    """
    sizes = hessian.abs().amax(1)
    info = torch.finfo(hessian.dtype)
    if not sizes.isfinite().all() or sizes.min() < info.tiny:
        raise ValueError(DEGENERATE)
    scale = sizes.rsqrt()  # makes the largest entries of all rows about 1, whatever the units of the unknowns
    values, vectors = torch.linalg.eigh(scale[:, None] * hessian * scale)
    if values.abs().min() <= 4 * len(values) * info.eps * values.abs().max():
        raise ValueError(DEGENERATE)
    return scale * (vectors @ ((vectors.mT @ (scale * gradient)) / values))
