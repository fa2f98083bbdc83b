"""Numeric evidence: equal up to rounding, with the tolerance stated in units of rounding."""

from typing import Any

import torch
from torch import Tensor

from lemmata.judge.evidence import Evidence
from lemmata.judge.pictures import two_sides, while_watched

__all__ = ["close"]


def close(
    measured: Any,
    predicted: Any,
    *,
    ulps: float = 64,
    scale: Any = None,
    condition: float = 1.0,
    within: Any = None,
    detail: str = "",
) -> Evidence:
    r"""Equal entry by entry up to rounding.

    $$ |m - p| \le \mathrm{ulps} \cdot \epsilon \cdot \kappa \cdot \mathrm{scale} $$

    `scale` is the size of the terms that were added up (default: the largest entry of either side), `condition`
    the problem's condition number, $\epsilon$ that of the coarser dtype. `within` replaces all this by an absolute
    tolerance, where one is derived.

    >>> close(0.1 + 0.2, 0.3).holds, close(0.1 + 0.2, 0.3, ulps=0).holds
    (True, False)
    """
    left, right = numbers(measured), numbers(predicted)
    eps = coarser(left, right)
    if left.shape != right.shape and left.numel() != 1 and right.numel() != 1:
        return Evidence("numeric", f"shape {tuple(left.shape)}", f"shape {tuple(right.shape)}", detail="shapes differ")
    if left.numel() == 0 or right.numel() == 0:
        raise ValueError("close was given empty tensors: draw at least one instance")
    if scale is None and within is None and not bool(right.any()) and bool(left.any()):
        raise ValueError("a comparison with zero needs scale=, the size of what was added up, or within=")
    wide = torch.complex128 if left.is_complex() or right.is_complex() else torch.float64
    left, right = torch.broadcast_tensors(left.to(wide), right.to(wide))
    # An infinite entry must not stretch the tolerance of the others, nor of itself.
    largest = torch.maximum(left.abs(), right.abs())
    size = numbers(scale).double() if scale is not None else largest.where(largest.isfinite(), 0.0).max()
    tolerance = numbers(within).double() if within is not None else ulps * eps * condition * size
    gap = torch.where(left == right, 0.0, (left - right).abs())  # infinity equals itself
    # A lie may make the scale negative; no room at all is left then.
    gap, tolerance = torch.broadcast_tensors(gap, tolerance.to(gap.device).clamp(min=0.0))
    if bool(torch.isnan(gap).any()):
        nan = float("nan")
        return Evidence("numeric", nan, nan, nan, detail=f"{int(torch.isnan(gap).sum())} values are NaN")
    worst = worst_entry(gap, tolerance)
    found, expected = left.broadcast_to(gap.shape).flatten()[worst], right.broadcast_to(gap.shape).flatten()[worst]
    where = f"worst of {gap.numel():,} values" if gap.numel() > 1 else ""
    margin = float(tolerance.flatten()[worst])
    evidence = Evidence("numeric", found.item(), expected.item(), margin, detail=detail or where)
    return while_watched(evidence, lambda: two_sides(*torch.broadcast_tensors(left, right, gap > tolerance)))


def worst_entry(excess: Tensor, tolerance: Tensor) -> int:
    """The entry that decides: one that breaks its tolerance if any does, else the one that comes nearest."""
    over = excess - tolerance
    return int(torch.where(over.isnan(), 0.0, over).argmax())  # infinity beside an infinite tolerance breaks nothing


def numbers(value: Any) -> Tensor:
    """Tensors and arrays keep their dtype; Python's numbers are doubles and must not be rounded to float32."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, list | tuple) and value and all(isinstance(v, Tensor) for v in value):
        return torch.stack([v.detach() for v in value])
    if hasattr(value, "dtype"):
        return torch.as_tensor(value)
    try:
        return torch.as_tensor(value, dtype=torch.float64)
    except TypeError:
        return torch.as_tensor(value, dtype=torch.complex128)


def coarser(*sides: Tensor) -> float:
    """The rounding unit of the coarsest floating dtype among the sides; integers are exact."""
    floating = (t.dtype for t in sides if t.is_floating_point() or t.is_complex())
    return max((torch.finfo(dtype).eps for dtype in floating), default=torch.finfo(torch.float64).eps)
