r"""How far apart two functions are where they are furthest apart, as an interval that contains it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.foundations.analysis.lipschitz_bounds import lipschitz as lipschitz_of
from lemmata.foundations.analysis.regions import Box, box_region
from lemmata.marks import system

__all__ = ["UniformDistance", "uniform_distance"]

Function = Callable[[Tensor], Tensor]
HALVINGS = 40  # smaller cells than 2^-40 of the box would be as small as the rounding of their centres
ULPS = 8  # what the last steps of a function may lose, in units in the last place of its value


@dataclass(frozen=True, eq=False)
class UniformDistance:
    r"""An interval around a uniform distance; at `point` the functions are `lower` apart.

    $$ \mathrm{lower} \le \sup_{x \in K} |f(x) - g(x)| \le \mathrm{upper} $$

    Claims: approx.uniform_metric

    >>> print(uniform_distance(torch.sin, torch.cos, (0.0, 1.0), lipschitz=2.0, tolerance=0.001))
    1 to 1.00098, seen at [0.0]
    """

    lower: float
    upper: float
    point: Float[Tensor, "n"]
    evaluations: int

    def __str__(self) -> str:
        return f"{self.lower:.6g} to {self.upper:.6g}, seen at {self.point.tolist()}"


@system("uniform_distance", title="Uniform distance of two functions", kind="function")
@torch.no_grad()
def uniform_distance(
    f: Function,
    g: Function,
    region: Box | tuple,
    lipschitz: int | float | None = None,
    tolerance: int | float = 1e-6,
    points: int = 100_000,
) -> UniformDistance:
    r"""The distance of two functions in the uniform norm on a box, from values at points and a Lipschitz constant.

    $$ d_K(f, g) = \sup_{x \in K} \|f(x) - g(x)\| \le \max_i \big(\|f(c_i) - g(c_i)\| + L\,\rho_i\big) $$

    The box is covered by cells with centres $c_i$ and radii $\rho_i$. Cells that may hold more than the largest value
    seen are halved along every axis until the interval is as narrow as `tolerance`, or so many points were taken. `L`
    is a Lipschitz constant of $f - g$; two networks of known layers need none, theirs are the products of the norms of
    their layers. A constant that the values themselves contradict is refused.

    Shapes:
        f, g: (points, n) to (points,) or (points, outputs); region: (low, high), two numbers for n = 1

    Claims: approx.uniform_metric
    Differs: the values are taken to be right to 8 units in the last place of f and g: what else they lose to rounding
        is known to them alone.

    >>> found = uniform_distance(torch.exp, lambda x: 1 + x, (-1.0, 1.0), lipschitz=2.0)
    >>> found.lower <= torch.e - 2 <= found.upper, found.upper - found.lower < 1e-6
    (True, True)
    """
    box = box_region(region)
    constant = _constant(f, g) if lipschitz is None else float(validate.number("lipschitz", lipschitz, least=0))
    validate.number("tolerance", tolerance, least=0)
    validate.count("points", points)
    eps = torch.finfo(box.low.dtype).eps
    low, half = box.low.double(), box.width.double() / 2
    slack = 64 * torch.finfo(torch.float64).eps * float((low.abs() + half).norm())  # rounding of centres and radii
    n = len(low)
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64, device=low.device)] * n).reshape(
        -1, n
    )

    def gaps(x: Tensor) -> tuple[Tensor, Tensor]:
        """How far apart the functions are at each point, and what rounding may have done to it."""
        first, second = (_values(name, h, x) for name, h in (("f", f), ("g", g)))
        sizes = first.norm(dim=1) + second.norm(dim=1)
        return (first - second).norm(dim=1), ULPS * eps * sizes

    corners = box.corners()
    ends = gaps(corners)
    best = int((ends[0] - ends[1]).argmax())
    lower, point, taken = max(0.0, float((ends[0] - ends[1])[best])), corners[best], len(corners)
    centres, parents = (low + half)[None], None  # (cells, n)
    for level in range(HALVINGS):
        x = box.clip(centres.to(box.low))  # a coarse dtype moves them a little
        found, noise = gaps(x)
        radius = float(half.norm()) + slack + (x.double() - centres).norm(dim=1)
        # Corners lie in the first cell and centres in those of their parents: they bound the constant from below.
        _check(constant, *(ends if parents is None else (found, noise)), *(parents or (found, noise, radius)))
        taken += len(x)
        best = int((found - noise).argmax())
        if float((found - noise)[best]) > lower:
            lower, point = float((found - noise)[best]), x[best]
        bound = (found + noise + constant * radius) * (1 + 4 * torch.finfo(torch.float64).eps)
        upper = max(lower, float(bound.max()))
        open = bound > lower
        children = int(open.sum()) * len(signs)
        if upper - lower <= tolerance or level == HALVINGS - 1 or taken + children > points:
            break
        half = half / 2
        parents = tuple(t[open].repeat_interleave(len(signs)) for t in (found, noise, radius))
        centres = (centres[open][:, None] + half * signs).reshape(-1, n)
    return UniformDistance(lower, upper, point, taken)


def _constant(f: Function, g: Function) -> float:
    """The sum of two certified constants."""
    if not (isinstance(f, nn.Module) and isinstance(g, nn.Module)):
        raise ValueError("lipschitz must be given, a constant of f - g: only that of networks of known layers is known")
    return math.nextafter(lipschitz_of(f).value + lipschitz_of(g).value, math.inf)


def _values(name: str, function: Function, x: Tensor) -> Tensor:
    """The values as (points, outputs), in double precision."""
    values = function(x)
    if values.ndim not in (1, 2) or len(values) != len(x):
        shape = tuple(values.shape)
        raise ValueError(f"{name} must give (points,) or (points, outputs) for {len(x)} points, got shape {shape}")
    if not values.isfinite().all():
        at = x[~values.reshape(len(x), -1).isfinite().all(1)][0].tolist()
        raise ValueError(f"{name} must be finite in the region, but is not at {at}: shrink it")
    return values.reshape(len(x), -1).double()


def _check(constant: float, found: Tensor, noise: Tensor, before: Tensor, noise_before: Tensor, reach: Tensor) -> None:
    """Refuse a constant with which the values could not differ so much over a distance of `reach` at most."""
    rise = (found - before).abs() - noise - noise_before
    # Half of the digits are left to what the functions lose inside.
    over = rise > constant * reach * (1 + 1e-9) + 1e-9 * (found + before)
    if bool(over.any()):
        least = float((rise / reach).max())
        raise ValueError(f"lipschitz must be at least {least:.4g}, got {constant:.4g}: f - g rises faster than that")
