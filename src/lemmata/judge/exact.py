"""Exact evidence: equality without tolerance, enumeration, symbolic identity."""

import math
import random
from collections.abc import Iterable
from typing import Any

import numpy
import torch
from torch import Tensor

from lemmata.judge.evidence import Evidence

__all__ = ["always", "exactly", "symbolic"]


def exactly(measured: Any, predicted: Any, *, exhaustive: bool = False, detail: str = "") -> Evidence:
    """Equal to the last bit: integers, booleans, fractions, strings, tuples, tensors.

    `exhaustive=True` is a promise that the instances are all the cases the statement speaks of.

    >>> exactly(torch.tensor([6, 8, 22]), torch.tensor([6, 8, 23])).detail
    'entry 2 of 3 differs'
    """
    left, right = _comparable(measured), _comparable(predicted)
    if isinstance(left, Tensor) != isinstance(right, Tensor):
        left, right = _as_tensors(left, right)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return _tensors(left, right, exhaustive, detail)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right) and left != right:
        where = next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
        left, right, detail = left[where], right[where], f"entry {where} of {len(left)} differs"
    holds = bool(left == right)  # numbers by value: a lie must not fall for giving 5.0 where the truth gives 5
    return Evidence(holds, "exact", _shown(left), _shown(right), detail=detail, proof=exhaustive)


def always(conditions: Tensor | Iterable[bool], *, exhaustive: bool = False, detail: str = "") -> Evidence:
    """True in every case; an empty list of cases proves nothing and is an error.

    >>> always([True, True, False]).holds
    False
    """
    cases = conditions
    if not isinstance(cases, Tensor):
        cases = torch.tensor([_condition(c) for c in cases], dtype=torch.bool)
    if cases.dtype != torch.bool:
        raise TypeError(f"always takes booleans, got {cases.dtype}: compare first")
    if cases.numel() == 0:
        raise ValueError("always was given no case: draw at least one instance")
    true, count = int(cases.sum()), cases.numel()
    return Evidence(
        true == count, "exact", true, count, detail=detail or f"{true:,} of {count:,} cases", proof=exhaustive
    )


def symbolic(left: Any, right: Any, *, points: int = 8) -> Evidence:
    """Two sympy expressions are the same function: simplified to zero, and equal at random points.

    The two ways must agree; if they do not, that is an error of the check and not a verdict.

    >>> import sympy
    >>> x = sympy.symbols("x", real=True)
    >>> symbolic(sympy.sin(x) ** 2 + sympy.cos(x) ** 2, sympy.Integer(1)).proof
    True
    """
    import sympy

    difference = sympy.sympify(left) - sympy.sympify(right)
    proved = sympy.simplify(difference) == 0
    symbols = sorted(sympy.sympify(left).free_symbols | sympy.sympify(right).free_symbols, key=str)
    rng = random.Random(str(difference))  # the points depend on the expression alone
    gaps = []
    for _ in range(points if symbols else 1):
        at = {symbol: _value(symbol, rng) for symbol in symbols}
        scale = sum(abs(sympy.N(side.subs(at), 30)) for side in map(sympy.sympify, (left, right))) + 1
        gaps.append(float(abs(sympy.N(difference.subs(at), 30)) / scale))
    if any(math.isnan(gap) for gap in gaps):
        raise ArithmeticError("a side is not defined at a random point: give the symbols their domain, positive=True")
    equal = max(gaps) < 1e-20
    if proved and not equal:
        raise ArithmeticError(f"sympy simplifies the difference to 0, yet at a random point it is {max(gaps):.1e}")
    if equal and not proved:
        raise ArithmeticError("the sides agree at random points, but sympy cannot prove it: help it with a rewrite")
    detail = f"{len(gaps)} random points agree" if equal else f"they differ by {max(gaps):.2g} at a random point"
    return Evidence(proved, "exact", str(left), str(right), detail=detail, proof=proved)


def _value(symbol: Any, rng: random.Random) -> Any:
    import sympy

    value = sympy.Integer(rng.randint(1, 9)) if symbol.is_integer else sympy.Rational(rng.randint(1, 999), 500)
    if symbol.is_nonpositive:
        return -value
    return value if symbol.is_nonnegative or symbol.is_integer or rng.random() < 0.5 else -value


def _tensors(left: Tensor, right: Tensor, exhaustive: bool, detail: str) -> Evidence:
    if left.shape != right.shape:
        return Evidence(
            False, "exact", f"shape {tuple(left.shape)}", f"shape {tuple(right.shape)}", detail="shapes differ"
        )
    if left.numel() == 0:
        raise ValueError("exactly was given empty tensors: draw at least one instance")
    if bool(torch.isnan(left).any() or torch.isnan(right).any()):
        return Evidence(False, "exact", float("nan"), float("nan"), detail="NaN among the values")
    differs = (left != right).flatten()
    where = int(differs.int().argmax()) if bool(differs.any()) else 0
    if bool(differs.any()):
        detail = f"entry {where} of {left.numel():,} differs"
    measured, predicted = (_shown(side.flatten()[where].item()) for side in (left, right))
    return Evidence(
        not differs.any(), "exact", measured, predicted, detail=detail or f"{left.numel():,} values", proof=exhaustive
    )


def _comparable(value: Any) -> Any:
    """Lists of numbers compare as tensors; a tensor of one number as that number does."""
    if isinstance(value, numpy.ndarray):
        value = torch.as_tensor(value)
    if isinstance(value, list | tuple) and value and all(isinstance(v, bool | int) for v in value):
        big = any(abs(v) >= 2**62 for v in value)
        return tuple(value) if big else torch.tensor([int(v) for v in value])
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, bool):
        return int(value)
    return _comparable(value.item()) if isinstance(value, Tensor) and value.dim() == 0 else value


def _as_tensors(left: Any, right: Any) -> tuple[Any, Any]:
    """A tensor against a list of numbers: two tensors. Against anything else they differ as they stand."""
    try:
        return torch.as_tensor(left, dtype=_dtype(left)), torch.as_tensor(right, dtype=_dtype(right))
    except (TypeError, ValueError):
        return str(left), right


def _dtype(value: Any) -> torch.dtype:
    return value.dtype if isinstance(value, Tensor) else torch.float64


def _condition(case: Any) -> bool:
    if case is None or (isinstance(case, int | float | str) and not isinstance(case, bool)):
        raise TypeError(f"always takes booleans, got {case!r}: compare first")
    if isinstance(case, Tensor) and case.dtype != torch.bool:
        raise TypeError(f"always takes booleans, got {case.dtype}: compare first")
    return bool(case)


def _shown(value: Any) -> Any:
    if isinstance(value, int | float | str) and len(str(value)) <= 60:
        return value
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
