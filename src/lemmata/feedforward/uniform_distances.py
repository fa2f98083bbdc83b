r"""How far apart two functions are where they are furthest apart, as an interval that contains it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.foundations.activations import activation
from lemmata.foundations.analysis.lipschitz_bounds import lipschitz as lipschitz_of
from lemmata.foundations.analysis.regions import Box, box_region
from lemmata.marks import system

__all__ = ["UniformDistance", "uniform_distance"]

Function = Callable[[Tensor], Tensor]
HALVINGS = 40  # smaller cells than 2^-40 of the box would be as small as the rounding of their centres
DOUBLE = torch.finfo(torch.float64).eps
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
    their layers. A constant that the values themselves contradict is refused. Networks are given points of the box in
    their own dtype and on their own device.

    Shapes:
        f, g: (points, n) to (points,) or (points, outputs); region: (low, high), two numbers for n = 1

    Claims: approx.uniform_metric
    Differs: the values are taken to be right to 8 units in the last place of f and g: what else they lose to rounding
        is known to them alone.

    >>> found = uniform_distance(torch.exp, lambda x: 1 + x, (-1.0, 1.0), lipschitz=2.0)
    >>> found.lower <= torch.e - 2 <= found.upper, found.upper - found.lower < 1e-6
    (True, True)
    """
    whole = box_region(region)
    box = _representable_box(whole, f, g)
    constant = _certified_sum(f, g) if lipschitz is None else float(validate.number("lipschitz", lipschitz, least=0))
    validate.number("tolerance", tolerance, least=0)
    validate.count("points", points)
    low, half = (part.to(box.low.device) for part in (whole.low.double(), whole.width.double() / 2))
    slack = 64 * DOUBLE * float((low.abs() + half).norm())  # rounding of centres and radii
    axes = [torch.tensor([-1.0, 1.0], dtype=torch.float64, device=low.device)] * len(low)
    signs = torch.cartesian_prod(*axes).reshape(-1, len(low))  # (2^n, n)

    def gaps(x: Tensor) -> tuple[Tensor, Tensor]:
        """How far apart the functions are at each point, at least and at most."""
        first, second = (_double_values(name, h, x) for name, h in (("f", f), ("g", g)))
        if first.shape != second.shape:
            counts = f"{first.shape[1]} and {second.shape[1]}"
            raise ValueError(f"f and g must have as many outputs as each other, got {counts}")
        noise = ULPS * torch.finfo(x.dtype).eps * (first.norm(dim=1) + second.norm(dim=1))
        gap = (first - second).norm(dim=1)
        return gap - noise, gap + noise

    corners = box.corners()
    before = gaps(corners)
    lower, point, taken = max(0.0, float(before[0].max())), corners[before[0].argmax()], len(corners)
    centres, reach, upper = (low + half)[None], half.norm() + slack, math.inf  # (cells, n)
    for _ in range(HALVINGS):
        x = box.clip(centres.to(box.low))  # a coarse dtype moves them a little
        least, most = gaps(x)
        # Corners lie in the first cell, and centres in those that were halved: both tell how steep it is at least.
        _check_constant(constant, least, most, *before, reach)
        taken += len(x)
        if float(least.max()) > lower:
            lower, point = float(least.max()), x[least.argmax()]
        radius = half.norm() + slack + (x.double() - centres).norm(dim=1)  # (cells,)
        bound = (most + constant * radius) * (1 + 4 * DOUBLE)
        upper = max(lower, float(bound.max()))
        open = bound > lower
        if upper - lower <= tolerance or taken + int(open.sum()) * len(signs) > points:
            break
        half = half / 2
        before = (least[open].repeat_interleave(len(signs)), most[open].repeat_interleave(len(signs)))
        reach = radius[open].repeat_interleave(len(signs))
        centres = (centres[open][:, None] + half * signs).reshape(-1, len(low))
    return UniformDistance(lower, upper, point, taken)


def _representable_box(box: Box, *functions: Function) -> Box:
    """The box rounded inwards to the coarsest dtype of the networks, so that each of them takes all of its points."""
    dtype, device = box.low.dtype, box.low.device
    for weight in [weight for function in functions if (weight := _first_weight(function)) is not None]:
        dtype = max(dtype, weight.dtype, key=lambda kind: torch.finfo(kind).eps)
        device = weight.device
    low, high = box.low.to(device, dtype), box.high.to(device, dtype)
    up, down = torch.full_like(low, math.inf), torch.full_like(low, -math.inf)
    low = torch.where(low.double() < box.low.to(device).double(), low.nextafter(up), low)
    high = torch.where(high.double() > box.high.to(device).double(), high.nextafter(down), high)
    if not (low < high).all():
        raise ValueError(f"region must hold more than one number of {dtype} along each axis: widen it, or use double")
    return Box(low, high)


def _first_weight(function: Function) -> Tensor | None:
    """The first parameter of a network, which tells its dtype and device."""
    weights = function.parameters() if isinstance(function, nn.Module) else iter(())
    return next((weight for weight in weights if weight.is_floating_point()), None)


def _certified_sum(f: Function, g: Function) -> float:
    """The sum of two certified constants."""
    return math.nextafter(_certified_constant("f", f) + _certified_constant("g", g), math.inf)


def _certified_constant(name: str, function: Function) -> float:
    """The product of the norms of a network's layers, and of the steepest slopes of its activation."""
    network, slopes = function, list[float]()
    if isinstance(network, MLP) and type(network) is MLP and not (network.training and network.config.dropout):
        if network._forward_hooks or network._forward_pre_hooks or "forward" in vars(network):
            raise ValueError(f"{name} has a hook or a forward of its own: remove it, or give lipschitz")
        slopes = [activation(network.config.activation).lipschitz] * len(network.config.widths)
        network = nn.Sequential(*network.layers)
    try:
        constant = lipschitz_of(network).value if isinstance(network, nn.Module) else None
    except ValueError:
        constant = None
    if constant is None:
        told = f"only that of networks of known layers is known, and {name} is none"
        raise ValueError(f"lipschitz must be given, a constant of f - g: {told}")
    for slope in slopes:
        constant = constant if slope == 1 else math.nextafter(constant * slope, math.inf)
    return constant


def _double_values(name: str, function: Function, x: Tensor) -> Tensor:
    """The values as (points, outputs), in double precision."""
    weight = _first_weight(function)
    values = function(x if weight is None else x.to(weight))
    if not isinstance(values, Tensor):
        raise TypeError(f"{name} must give a tensor, got {type(values).__name__}")
    values = values.to(x.device)
    if values.ndim not in (1, 2) or len(values) != len(x):
        shape = tuple(values.shape)
        raise ValueError(f"{name} must give (points,) or (points, outputs) for {len(x)} points, got shape {shape}")
    if not values.isfinite().all():
        at = x[~values.reshape(len(x), -1).isfinite().all(1)][0].tolist()
        raise ValueError(f"{name} must be finite in the region, but is not at {at}: shrink it")
    return values.reshape(len(x), -1).double()


def _check_constant(
    constant: float, least: Tensor, most: Tensor, least_before: Tensor, most_before: Tensor, reach: Tensor
) -> None:
    """Refuse a constant with which the gaps could not differ so much over a distance of `reach` at most."""
    rise = torch.maximum(least - most_before, least_before - most)
    # Half of the digits are left to what the functions lose inside.
    if bool((rise > constant * reach + DOUBLE**0.5 * torch.maximum(most, most_before)).any()):
        steepest = float((rise / reach).max())
        raise ValueError(f"lipschitz must be at least {steepest:.4g}, got {constant:.4g}: f - g rises faster than that")
