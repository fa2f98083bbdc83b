r"""Subgradients of convex functions: slopes of planes that support the graph from below."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.analysis.function_values import Function, batch_values
from lemmata.foundations.analysis.measurements import Measured, invisible
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system
from lemmata.validate import fits

__all__ = ["is_subgradient"]


@system("subgradient", title="Subgradient test", kind="function")
def is_subgradient(
    f: Function,
    x: Float[Tensor, "n"],
    slope: Float[Tensor, "n"],
    region: Box | tuple,
    points: int = POINTS,
    generator: torch.Generator | None = None,
) -> Measured:
    r"""Whether the plane of this slope through the graph at $x$ stays below a convex function in a box.

    $$ g \in \partial f(x) \iff f(y) \ge f(x) + g^\top (y - x) \quad \forall y $$

    A "no" is certified by its witness, a point $y$ where the plane cuts the graph by more than rounding explains,
    $\sqrt\epsilon$ of the largest value in its dtype; a "yes" says that none was found. The points are spread over the
    box and drawn in towards $x$ at all scales, where a convex function shows it first.

    Shapes:
        x, slope: (n,), region: (low, high)

    Claims: subdiff.definition

    >>> zero, half = torch.zeros(1).double(), torch.full((1,), 0.5).double()
    >>> is_subgradient(lambda x: x.abs().sum(), zero, half, (-1.0, 1.0)).value
    True
    >>> print(is_subgradient(lambda x: x.abs().sum(), zero, 3 * half, (-1.0, 1.0)))
    subgradient no (certified: the plane cuts the graph by 0.5)
    """
    box = box_region(region)
    validate.vector("x", x, len(box.low))
    fits("slope", slope, (len(x),), like=x, whose="x")
    generator = seeded(generator)
    y = torch.cat([box.sample(validate.count("points", points), generator), box.corners()])
    scales = torch.rand((len(y), 1), generator=generator, dtype=y.dtype) ** 4
    y = torch.cat([y, x + scales * (y - x)])
    values = batch_values(f, y)
    height = values - batch_values(f, x) - (y - x) @ slope
    worst = int(height.argmin())
    gap = float(height[worst])
    if gap < -float(invisible(values).max()):
        return Measured("subgradient", False, True, f"the plane cuts the graph by {-gap:.3g}", (y[worst],), gap)
    return Measured("subgradient", True, False, f"below the graph at all of {len(y):,} points", (y[worst],), gap)
