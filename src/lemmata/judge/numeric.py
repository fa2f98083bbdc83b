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
    the problem's condition number, $\epsilon$ that of the dtype which both sides share. `within` replaces all this by
    an absolute tolerance, where one is derived. Python's numbers take the other side's dtype; a float32 tensor beside
    a float64 one is refused: the system's dtype is that of its reference, by a cast that the claim shows.

    >>> close(0.1 + 0.2, 0.3).holds, close(0.1 + 0.2, 0.3, ulps=0).holds
    (True, False)
    """
    eps = rounding_unit("close", measured=measured, predicted=predicted)
    left, right = numbers(measured), numbers(predicted)
    if left.shape != right.shape and left.dim() and right.dim():
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
    tolerance = _one_for_each(tolerance.to(gap.device).clamp(min=0.0), gap)
    if bool(torch.isnan(gap).any()):
        nan = float("nan")
        return Evidence("numeric", nan, nan, nan, detail=f"{int(torch.isnan(gap).sum())} values are NaN")
    worst = worst_entry(gap, tolerance)
    endless = ~tolerance.isfinite().flatten()
    if bool(endless.any()) and not bool((gap > tolerance).any()):  # where one entry may be anything, nothing is decided
        worst = int(endless.int().argmax())
    found, expected = left.flatten()[worst], right.flatten()[worst]
    where = f"worst of {gap.numel():,} values" if gap.numel() > 1 else ""
    margin = float(tolerance.flatten()[worst])
    evidence = Evidence("numeric", found.item(), expected.item(), margin, detail=detail or where)
    return while_watched(evidence, lambda: two_sides(left, right, gap > tolerance))


def _one_for_each(tolerance: Tensor, gap: Tensor) -> Tensor:
    try:
        return tolerance.broadcast_to(gap.shape)
    except RuntimeError:
        shapes = f"shape {tuple(tolerance.shape)} for values of shape {tuple(gap.shape)}"
        raise ValueError(f"scale or within of {shapes}: give one number, or one for each value") from None


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


CASTS = {"float64": ".double()", "float32": ".float()"}


def rounding_unit(judge: str, **sides: Any) -> float:
    """The eps of the floating dtype that the sides share; integers are exact, and Python's numbers have no dtype.

    A literal `torch.zeros(3)` beside a float64 result would give it float32's tolerance, 5e8 times too wide: refused.
    """
    found = {name: _floating_dtypes(side) for name, side in sides.items()}
    dtypes = sorted({dtype for of_side in found.values() for dtype in of_side}, key=lambda d: torch.finfo(d).eps)
    units = [torch.finfo(dtype).eps for dtype in dtypes]
    if len({*units}) > 1:
        said = " beside ".join(
            f"{name} in {' and '.join(sorted(map(_dtype_name, of)))}" for name, of in found.items() if of
        )
        fine, coarse = (_dtype_name(dtypes[k].to_real()) for k in (0, -1))
        fix = f"compute both in {fine} (dtype=torch.{fine}, {CASTS.get(fine, f'.to(torch.{fine})')})"
        raise TypeError(f"{judge} was given {said}: {fix}; to judge a system in {coarse}, cast its reference to that")
    return units[0] if units else torch.finfo(torch.float64).eps


def _floating_dtypes(value: Any) -> set[torch.dtype]:
    """The floating and complex dtypes among tensors and arrays; NumPy's float64 scalar is one of Python's floats."""
    if isinstance(value, list | tuple):
        return set().union(*map(_floating_dtypes, value))
    dtype = None if isinstance(value, float | complex) else getattr(value, "dtype", None)
    dtype = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype), None)  # NumPy's, by its name
    if not isinstance(dtype, torch.dtype):
        return set()
    return {dtype} if dtype.is_floating_point or dtype.is_complex else set()


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
