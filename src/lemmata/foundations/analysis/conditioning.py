r"""The condition number: how unequal the curvatures of a function, or the stretchings of a matrix, are."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.foundations.analysis.curvature import smoothness, strong_convexity
from lemmata.foundations.analysis.function_values import Function
from lemmata.foundations.analysis.measurements import Measured
from lemmata.foundations.analysis.regions import POINTS, Box
from lemmata.marks import system
from lemmata.validate import matrices

__all__ = ["condition_number", "function_condition"]


@system("condition_number", title="Condition number of a matrix", kind="function")
def condition_number(matrix: Float[Tensor, "*batch m n"]) -> Float[Tensor, "*batch"]:
    r"""The largest singular value over the smallest: 1 for multiples of isometries, infinite for singular matrices.

    $$ \kappa(A) = \frac{\sigma_{\max}}{\sigma_{\min}} \ge 1, \qquad
       \kappa(H) = \frac{\lambda_{\max}}{\lambda_{\min}} \text{ if } H \succ 0, \qquad
       \frac{\|\delta x\|}{\|x\|} \le \kappa\,\frac{\|\delta b\|}{\|b\|} \text{ for } Ax = b $$

    Shapes:
        matrix: (..., m, n)    returns: (...)

    Claims: analysis.condition_number

    >>> condition_number(torch.diag(torch.tensor([1.0, 50.0])))
    tensor(50.)
    """
    values = torch.linalg.svdvals(matrices("matrix", matrix))
    if (values[..., 0] == 0).any():
        raise ValueError("matrix must not be zero: it has no condition number")
    return values[..., 0] / values[..., -1]


@system("function_condition", title="Condition number of a function", kind="function")
def function_condition(
    f: Function, region: Box | tuple | None = None, points: int = POINTS, generator: torch.Generator | None = None
) -> Measured:
    r"""Smoothness over strong convexity in a box: the factor by which gradient descent is slowed down.

    $$ \kappa = L/\mu $$

    Certified where both constants are; then it is at least the true one.

    Shapes:
        f: one vector (n,) to one number; region: (low, high), not needed for a `QuadraticFunction`

    Claims: analysis.condition_number

    >>> unit = torch.ones(2).double()
    >>> found = function_condition(lambda x: x[0] ** 2 + 25 * x[1] ** 2, (-unit, unit))
    >>> round(found.value, 3)
    25.0
    """
    top, bottom = smoothness(f, region, points, generator), strong_convexity(f, region, points, generator)
    if not bottom.value > 0:
        raise ValueError(f"f must be strongly convex, but its curvature falls to {bottom.value:.3g}")
    certified = all(part.certified for part in (top, bottom))
    reason = f"{top.value:.6g} over {bottom.value:.6g}"
    witness = (*top.witness, *bottom.witness)
    return Measured("condition number", top.value / bottom.value, certified, reason, witness, top.seen / bottom.seen)
