r"""Subgradients of convex functions: slopes of planes that support the graph from below."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.intervals import Interval
from lemmata.foundations.analysis.enclosures import enclosed_value, exactly
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

    A "no" comes with its witness, a point $y$ where the plane cuts the graph. It is certified where intervals enclose
    the values and prove the cut; where they do not know the function, the cut must be more than rounding usually
    explains, $\sqrt\epsilon$ of the terms in their dtype: that is seen, not proved. A "yes" says that none was found.
    The points are spread over the box and drawn in towards $x$ at all scales, where a convex function shows it first.

    Shapes:
        x, slope: (n,), region: (low, high)

    Claims: subdiff.definition

    >>> zero, half = torch.zeros(1).double(), torch.full((1,), 0.5).double()
    >>> is_subgradient(lambda x: x.abs().sum(), zero, half, (-1.0, 1.0)).value
    True
    >>> print(is_subgradient(lambda x: x.square().sum(), zero, half, (-1.0, 1.0)))
    subgradient no (certified: the plane cuts the graph by 0.0625)
    """
    box = box_region(region)
    validate.vector("x", x, len(box.low))
    fits("slope", slope, (len(x),), like=x, whose="x")
    box = Box(box.low.to(x), box.high.to(x))
    generator = seeded(generator)
    y = torch.cat([box.sample(validate.count("points", points), generator), box.corners()])
    scales = torch.rand((len(y), 1), generator=generator, dtype=y.dtype) ** 4
    y = box.clip(torch.cat([y, x + scales * (y - x)]))
    value, values, rise = batch_values(f, x).detach(), batch_values(f, y).detach(), (y - x) @ slope
    if not value.isfinite() or values.isnan().any():
        raise ValueError(f"f must be finite at x and a number in the region, got {float(value):g} at x: shrink it")
    heights = values - value - rise
    rounding = invisible(torch.maximum(values.abs(), torch.maximum(value.abs(), rise.abs())))
    for most in (heights + rounding, heights):  # the deepest cut beyond rounding, and the deepest
        worst = int(most.argmin())
        gap, witness = float(heights[worst]), (y[worst],)
        bounds = _height_bounds(f, x, slope, y[worst]) if gap < 0 else None
        if bounds is not None and float(bounds.high) < 0:
            reason = f"the plane cuts the graph by {-float(bounds.high):.3g}"
            return Measured("subgradient", False, True, reason, witness, gap)
        if bounds is None and gap < -float(rounding[worst]):
            reason = f"the plane was seen to cut the graph by {-gap:.3g}"
            return Measured("subgradient", False, False, reason, witness, gap)
    return Measured("subgradient", True, False, f"below the graph at all of {len(y):,} points", witness, gap)


def _height_bounds(f: Function, x: Tensor, slope: Tensor, y: Tensor) -> Interval | None:
    """Two numbers around the height of the function at y above the plane of this slope through its graph at x."""
    value, there = enclosed_value(f, exactly(x), x.dtype), enclosed_value(f, exactly(y), x.dtype)
    if value is None or there is None:
        return None
    return there + -value + -((exactly(y) + -exactly(x)) * exactly(slope)).sum(0)
