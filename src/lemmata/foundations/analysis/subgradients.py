r"""Subgradients of convex functions: slopes of planes that support the graph from below."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.optimize import nnls
from torch import Tensor

from lemmata import validate
from lemmata.foundations.analysis.function_values import Function, batch_values
from lemmata.foundations.analysis.measurements import Measured, invisible
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system
from lemmata.validate import fits

__all__ = ["MaxAffine", "is_subgradient", "subdifferential_interval"]

STEP = 2.0**-20  # of one-sided slopes: error and rounding stay below 1e-6


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


@system("subdifferential", title="Subdifferential of a convex function of one variable", kind="function")
def subdifferential_interval(f: Function, x: Float[Tensor, "..."]) -> tuple[Tensor, Tensor]:
    r"""The interval of subgradients of a convex function of one variable: from its left to its right slope.

    $$ \partial f(x) = [f'_-(x),\, f'_+(x)], \qquad f'_\pm(x) = \lim_{h \downarrow 0} \frac{f(x \pm h) - f(x)}{\pm h} $$

    The slopes are difference quotients over $h = 2^{-20}\max(1, |x|)$, so kinks nearer than that are seen as one.

    Shapes:
        f: (...) to (...), entry by entry; x: (...)    returns: (...) and (...)

    Claims: subdiff.definition

    >>> subdifferential_interval(torch.abs, torch.tensor([-1.0, 0.0], dtype=torch.float64))
    (tensor([-1., -1.], dtype=torch.float64), tensor([-1.,  1.], dtype=torch.float64))
    """
    validate.floating("x", x)
    if x.dtype != torch.float64:
        raise TypeError(f"x must be float64, got {x.dtype}: a slope over a short step is all rounding otherwise")
    step = STEP * x.abs().clamp(min=1.0)
    value = f(x)
    return (value - f(x - step)) / step, (f(x + step) - value) / step


@system("max_affine", title="Maximum of affine functions", kind="function")
class MaxAffine:
    r"""The largest of finitely many affine functions, whose subdifferentials are known exactly.

    $$ f(x) = \max_i\,(a_i^\top x + b_i), \qquad
       \partial f(x) = \mathrm{conv}\{a_i : a_i^\top x + b_i = f(x)\} $$

    $|x|$ has the slopes $\pm1$, ReLU 0 and 1, the hinge 0 and $-1$ with offset 1. Pieces within `tolerance` of the
    largest count as active, relative to the size of their terms, or within rounding where that is more.

    Shapes:
        slopes: (pieces, n), offsets: (pieces,), x: (..., n)    returns: (...)

    Claims: subdiff.definition

    >>> absolute = MaxAffine(torch.tensor([[1.0], [-1.0]]))
    >>> absolute(torch.tensor([-3.0])), absolute.contains(torch.zeros(1), torch.tensor([0.5]))
    (tensor(3.), True)
    """

    def __init__(
        self,
        slopes: Float[Tensor, "pieces n"],
        offsets: Float[Tensor, "pieces"] | None = None,
        tolerance: int | float = 1e-9,
    ) -> None:
        self.slopes = validate.matrix("slopes", slopes, "pieces, n")
        self.offsets = slopes.new_zeros(len(slopes)) if offsets is None else offsets
        fits("offsets", self.offsets, (len(slopes),), like=slopes, whose="slopes")
        rounding = 4 * (1 + slopes.shape[1]) * torch.finfo(slopes.dtype).eps  # of a sum of so many terms
        self.tolerance = max(validate.positive("tolerance", tolerance), rounding)

    def __call__(self, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
        return (x @ self.slopes.T + self.offsets).amax(-1)

    def active(self, x: Float[Tensor, "*batch n"]) -> Bool[Tensor, "*batch pieces"]:
        """Which pieces attain the maximum."""
        values = x @ self.slopes.T + self.offsets
        size = (x.abs() @ self.slopes.abs().T + self.offsets.abs()).amax(-1, keepdim=True)
        return values >= values.amax(-1, keepdim=True) - self.tolerance * size

    def multipliers(self, x: Float[Tensor, "n"], slope: Float[Tensor, "n"]) -> Float[Tensor, "pieces"] | None:
        r"""Weights $\lambda \ge 0$ of sum 1 on the active pieces with $\sum_i \lambda_i a_i = g$, or None if none are.

        They certify that $g$ is a subgradient: each active plane supports the graph, and so does every mixture.
        """
        validate.vector("x", x, self.slopes.shape[1])
        fits("slope", slope, (len(x),), like=x, whose="x")
        active = self.active(x)
        rows = self.slopes[active].double().cpu().numpy()
        size = max(float(np.abs(rows).max()), float(slope.abs().max())) or 1.0
        equations = np.vstack([rows.T / size, np.ones(len(rows))])
        found, rest = nnls(equations, np.append(slope.double().cpu().numpy() / size, 1.0))
        if rest > self.tolerance:
            return None
        weights = x.new_zeros(len(self.slopes))
        weights[active] = torch.as_tensor(found).to(x)
        return weights

    def contains(self, x: Float[Tensor, "n"], slope: Float[Tensor, "n"]) -> bool:
        """Whether the slope is a subgradient at the point."""
        return self.multipliers(x, slope) is not None

    def is_minimum(self, x: Float[Tensor, "n"]) -> bool:
        r"""Whether the point minimises the function: $0 \in \partial f(x)$."""
        return self.contains(x, torch.zeros_like(x))

    def __repr__(self) -> str:
        return f"MaxAffine(pieces={len(self.slopes)}, n={self.slopes.shape[1]})"
