r"""Integrals over an interval or the whole line, with gradients, which notice when there is no integral."""

import functools
import math
from collections.abc import Callable

import numpy
import torch
from torch import Tensor

from lemmata.marks import system

__all__ = ["absolute_integral"]

NODES = 32  # on a panel of ratio 2 they resolve a bell 16 deviations wide to 1e-8
OCTAVES = 200  # panels of ratio 2 towards each end; 2^-200 leaves of t^-0.9 a millionth


@system("absolute_integral", title="Absolutely convergent integral", kind="function")
def absolute_integral(
    function: Callable[[Tensor], Tensor],
    low: int | float | Tensor = -math.inf,
    high: int | float | Tensor = math.inf,
    centre: int | float | Tensor | None = None,
) -> Tensor:
    r"""The integral of a function by Gauss-Legendre rules on panels that shrink towards every end and the centre.

    $$ \int_a^b g(t)\,dt \qquad\text{where}\qquad \int_a^b |g(t)|\,dt < \infty $$

    Panels double on the way to infinity and halve on the way to a finite end, so that heavy tails and integrable
    singularities at the ends are resolved; the absolute mass of the outermost panels must fade, else the integral
    diverges (or converges too slowly to tell) and a ValueError says so. Place `centre` where the function lives, or
    at a kink of it. Computed in float64, on the device of the ends; differentiable in everything the function depends
    on, and in finite ends.

    Shapes:
        function: from points (..., n) to values (..., n), low, high, centre: numbers or tensors (...)    returns: (...)

    Claims: probability.expectation, probability.cdf_derivative, probability.sum_convolution

    >>> absolute_integral(lambda t: torch.exp(-t), 0.0)
    tensor(1., dtype=torch.float64)
    >>> absolute_integral(lambda t: 1 / (1 + t**2).sqrt())
    Traceback (most recent call last):
    ValueError: the integral of |function| diverges towards inf, or converges too slowly to tell: bound its support
    """
    device = next((end.device for end in (low, high, centre) if isinstance(end, Tensor)), None)
    a, b = _end("low", low, device), _end("high", high, device)
    if bool((torch.isinf(a) & (a > 0)).any() or (torch.isinf(b) & (b < 0)).any()):
        raise ValueError(f"low must be < inf and high > -inf, got {low} and {high}")
    if bool(torch.isinf(a).any() != torch.isinf(a).all() or torch.isinf(b).any() != torch.isinf(b).all()):
        raise ValueError("low and high must each be finite everywhere or infinite everywhere")
    given = anchor(a, b) if centre is None else centre
    middle = torch.as_tensor(given, dtype=torch.float64, device=device)
    return _from(middle, b, function) - _from(middle, a, function)


def anchor(low: Tensor, high: Tensor) -> Tensor:
    """Where panels are finest unless told otherwise: the only finite end, else the middle, of the whole line 0."""
    finite = [end for end in (low, high) if not torch.isinf(end).any()]
    return sum(finite, torch.zeros((), dtype=torch.float64)) / max(len(finite), 1)


def _from(start: Tensor, end: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The signed integral from start to end."""
    if torch.isinf(end).all():
        nodes, weights = _outward(start.device)
        direction = torch.sign(end)[..., None, None]
        points, weights = start[..., None, None] + direction * nodes, direction * weights
    else:
        nodes, weights = _between(start.device)
        length = (end - start)[..., None, None]
        # The second half of the rule is laid out from the far end, where the differences are small.
        points = torch.cat([start[..., None, None] + length * nodes, end[..., None, None] - length * nodes.flip(0)], -2)
        weights = length * torch.cat([weights, weights.flip(0)], -2)
    values = function(points.flatten(-2))
    if values.shape[-1:] != points.flatten(-2).shape[-1:]:
        raise ValueError(f"function must return one value for each point, got shape {tuple(values.shape)}")
    values = values.unflatten(-1, points.shape[-2:])
    # Nodes so near an end that they round to it may meet a singularity; there they weigh nothing.
    inside = (points != start[..., None, None]) & (points != end[..., None, None])
    masses = torch.where(inside | values.isfinite(), values * weights, 0.0).sum(-1)
    _fades(masses, end)
    return masses.sum(-1)


def _fades(masses: Tensor, end: Tensor) -> None:
    """Panels of ratio 2 have masses in geometric progression at the ends: the rest beyond them must be negligible."""
    sizes = masses.detach().abs()
    if not bool(sizes.isfinite().all()):
        raise ValueError(
            "function must be finite inside the interval, it is singular or overflows: move low, high or centre"
        )
    for last, before, place in ((-1, -2, end), (0, 1, "the start")):
        ratio = (sizes[..., last] / sizes[..., before].clamp(min=1e-300)).clamp(max=1 - 1e-9)
        rest = sizes[..., last] * ratio / (1 - ratio)
        if bool((rest > 1e-5 * sizes.sum(-1)).any()):
            where = place if isinstance(place, str) else f"{float(place.flatten()[0]):g}"
            problem = f"the integral of |function| diverges towards {where}, or converges too slowly to tell"
            raise ValueError(f"{problem}: bound its support")


@functools.lru_cache
def _panels(first: int, last: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights (panels, nodes) on the panels from 2^k to 2^(k+1), k from first up to last."""
    nodes, weights = (torch.from_numpy(part) for part in numpy.polynomial.legendre.leggauss(NODES))
    left = 2.0 ** torch.arange(first, last, dtype=torch.float64)[:, None]
    middle = 1.5 + nodes / 2
    return left * middle, left * weights / 2


def _outward(device: torch.device) -> tuple[Tensor, Tensor]:
    nodes, weights = _panels(-OCTAVES, OCTAVES)
    return nodes.to(device), weights.to(device)


def _between(device: torch.device) -> tuple[Tensor, Tensor]:
    """From 0 to one half of a unit interval."""
    nodes, weights = _panels(-OCTAVES, -1)
    return nodes.to(device), weights.to(device)


def _end(name: str, value: int | float | Tensor, device: torch.device | None) -> Tensor:
    end = torch.as_tensor(value, dtype=torch.float64, device=device)
    if bool(torch.isnan(end).any()) or end.numel() == 0:
        raise ValueError(f"{name} must be a number or infinite, got {value}")
    return end
