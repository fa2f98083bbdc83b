"""Evidence for inequalities: no instance breaks the bound, and how near the nearest one comes."""

from typing import Any

import torch
from torch import Tensor

from lemmata.judge.evidence import Evidence
from lemmata.judge.numeric import numbers, rounding_unit, worst_entry
from lemmata.judge.pictures import against_bound, while_watched

__all__ = ["at_least", "at_most"]


def at_most(measured: Any, bound: Any, *, attained: bool = False, ulps: float = 64, detail: str = "") -> Evidence:
    """Measured <= bound on every instance, up to rounding. `attained` demands equality on at least one of them.

    A bound that is true but never reached survives every instance; `attained=True` is what rejects it.

    >>> at_most([1.0, 2.0], 2.0, attained=True).holds
    True
    >>> at_most([1.0, 2.0], 3.0, attained=True).holds
    False
    """
    left, right, rounding = _bounded_pair("at_most", measured, bound, ulps)
    return _bound_evidence(left, right, rounding, torch.where(left == right, 0.0, left - right), attained, detail, "≤")


def at_least(measured: Any, bound: Any, *, attained: bool = False, ulps: float = 64, detail: str = "") -> Evidence:
    """Measured >= bound on every instance, up to rounding; as `at_most`."""
    left, right, rounding = _bounded_pair("at_least", measured, bound, ulps)
    return _bound_evidence(left, right, rounding, torch.where(left == right, 0.0, right - left), attained, detail, "≥")


def _bounded_pair(judge: str, measured: Any, bound: Any, ulps: float) -> tuple[Tensor, Tensor, Tensor]:
    eps = rounding_unit(judge, measured=measured, bound=bound)
    left, right = numbers(measured), numbers(bound)
    if left.numel() == 0 or right.numel() == 0:
        raise ValueError("a bound was given no instance: draw at least one")
    if left.is_complex() or right.is_complex():
        raise TypeError(f"{judge} was given complex numbers, which have no order: compare their .abs() or .real")
    left, right = left.double(), right.double()
    if left.squeeze().shape == right.squeeze().shape:  # (n, 1) against (n,) is one bound for each, not n times n
        left, right = left.flatten(), right.flatten()
    try:
        # One bound for several values, or several for one, are welcome; not each of n values against each of m bounds.
        whole = torch.broadcast_shapes(left.shape, right.shape)
        left, right = (left.expand_as(right), right) if whole == right.shape else (left, right.expand_as(left))
    except RuntimeError:
        shapes = f"shape {tuple(left.shape)} against bounds of shape {tuple(right.shape)}"
        raise ValueError(f"measured values of {shapes}: give one bound for each") from None
    left, right = left.flatten(), right.flatten()
    # An infinite value must not stretch its own rounding: it would be allowed everything.
    sizes = [torch.where(side.isfinite(), side.abs(), 0.0) for side in (left, right)]
    return left, right, ulps * eps * torch.maximum(*sizes)


def _bound_evidence(
    left: Tensor, right: Tensor, rounding: Tensor, excess: Tensor, attained: bool, detail: str, relation: str
) -> Evidence:
    nan = float("nan")
    if bool(torch.isnan(left).any() or torch.isnan(right).any()):
        return Evidence("numeric", nan, nan, nan, detail="NaN among the values")
    worst = worst_entry(excess, rounding)
    broken, count = int((excess > rounding).sum()), excess.numel()
    reached = bool((excess.abs() <= rounding).any())
    if broken:
        outcome = f"{broken:,} of {count:,} instances break the bound"
    elif attained and not reached:
        outcome = f"none of {count:,} instances reaches the bound"
    else:
        outcome = f"{count:,} instances, the worst {'reaches' if reached else 'keeps'} the bound"
    evidence = Evidence(
        "numeric",
        left[worst].item(),
        right[worst].item(),
        float(rounding[worst]),
        detail=f"{outcome}; {detail}" if detail else outcome,
        unmet=outcome if attained and not reached else "",
        relation=relation,
    )
    return while_watched(evidence, lambda: against_bound(left, right, excess > rounding, relation))
