"""Exact evidence: equality without tolerance, enumeration, symbolic identity."""

import math
import random
from collections.abc import Iterable, Sized
from typing import Any

import numpy
import torch
from torch import Tensor

from lemmata.figure import Figure, Line
from lemmata.judge import pictures
from lemmata.judge.evidence import Evidence, proved
from lemmata.judge.numeric import rounding_unit
from lemmata.judge.pictures import while_watched

__all__ = ["always", "exactly", "symbolic"]


def exactly(measured: Any, predicted: Any, *, detail: str = "") -> Evidence:
    """Equal to the last bit: integers, booleans, fractions, strings, tuples, tensors.

    >>> exactly(torch.tensor([6, 8, 22]), torch.tensor([6, 8, 23])).detail
    '1 of 3 values differ'
    """
    rounding_unit("exactly", measured=measured, predicted=predicted)
    left, right = _comparable_value(measured), _comparable_value(predicted)
    if isinstance(left, Tensor) != isinstance(right, Tensor):
        left, right = _as_tensors(left, right)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return _compare_tensors(left, right, detail)
    if isinstance(left, Sized) and isinstance(right, Sized) and not len(left) + len(right):
        raise ValueError("exactly was given nothing on either side: draw at least one instance")
    if any(isinstance(side, tuple) and any(v != v for v in side if isinstance(v, float)) for side in (left, right)):
        return Evidence(
            "exact", math.nan, math.nan, detail="NaN among the values"
        )  # a tuple takes the same NaN as equal
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right) and left != right:
        where = next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
        left, right, detail = left[where], right[where], f"entry {where} of {len(left)} differs"
    return Evidence("exact", *_shown_sides(left, right), detail=detail)


def always(conditions: Tensor | Iterable[Any], *, detail: str = "") -> Evidence:
    """True in every case that is given; an empty list of cases proves nothing and is an error.

    >>> always([True, True, False]).holds
    False
    """
    cases = conditions
    if not isinstance(cases, Tensor):
        cases = torch.tensor([condition(c) for c in cases], dtype=torch.bool)
    if cases.dtype != torch.bool:
        raise TypeError(f"a condition must be a boolean, got {cases.dtype}: compare first")
    if cases.numel() == 0:
        raise ValueError("always was given no case: draw at least one instance")
    true, count = int(cases.sum()), cases.numel()
    evidence = Evidence("exact", true, count, detail=detail or f"{true:,} of {count:,} cases")
    return while_watched(evidence, lambda: pictures.cases(true, count))


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
    rest = sympy.simplify(difference)
    symbols = sorted(sympy.sympify(left).free_symbols | sympy.sympify(right).free_symbols, key=str)
    rng = random.Random(str(difference))  # the points depend on the expression alone
    gaps = []
    for _ in range(points if symbols else 1):
        at = {symbol: _random_value(symbol, rng) for symbol in symbols}
        scale = sum(abs(sympy.N(side.subs(at), 30)) for side in map(sympy.sympify, (left, right))) + 1
        gaps.append(float(abs(sympy.N(difference.subs(at), 30)) / scale))
    if any(math.isnan(gap) for gap in gaps):
        raise ArithmeticError("a side is not defined at a random point: give the symbols their domain, positive=True")
    equal = max(gaps) < 1e-20
    if rest == 0 and not equal:
        raise ArithmeticError(f"sympy simplifies the difference to 0, yet at a random point it is {max(gaps):.1e}")
    if equal and rest != 0:
        raise ArithmeticError("the sides agree at random points, but sympy cannot prove it: help it with a rewrite")
    found = f"{len(gaps)} random points agree" if equal else f"they differ by {max(gaps):.2g} at a random point"
    detail = f"both sides as symbols, {found}"
    evidence = Evidence("exact", 0 if rest == 0 else _shorten_text(rest), 0, detail=detail)
    return while_watched(proved(evidence), lambda: _side_curves(left, right, symbols))


def _side_curves(left: Any, right: Any, symbols: list[Any]) -> Figure | None:
    """Both sides as functions of their symbol; of several, the others stay where they are."""
    import sympy

    if not symbols:
        return None
    rng = random.Random(0)
    symbol, others = symbols[0], {other: _random_value(other, rng) for other in symbols[1:]}
    at = [sympy.Rational(k, 10) for k in range(1 if symbol.is_nonnegative else -30, 31)]
    at = list(range(1, 10)) if symbol.is_integer else [-x for x in at if x > 0] if symbol.is_nonpositive else at
    lines = []
    for side, name in ((left, "left side"), (right, "right side")):
        values = [sympy.N(sympy.sympify(side).subs(others | {symbol: x})) for x in at]
        heights = [float(value) if value.is_real and value.is_finite else math.nan for value in values]
        lines.append(Line([float(x) for x in at], heights, name))
    return Figure("Both sides of the equation", str(symbol), marks=lines)


def _random_value(symbol: Any, rng: random.Random) -> Any:
    import sympy

    value = sympy.Integer(rng.randint(1, 9)) if symbol.is_integer else sympy.Rational(rng.randint(1, 999), 500)
    if symbol.is_nonpositive:
        return -value
    return value if symbol.is_nonnegative or symbol.is_integer or rng.random() < 0.5 else -value


def _compare_tensors(left: Tensor, right: Tensor, detail: str) -> Evidence:
    if left.shape != right.shape:
        return Evidence("exact", f"shape {tuple(left.shape)}", f"shape {tuple(right.shape)}", detail="shapes differ")
    if left.numel() == 0:
        raise ValueError("exactly was given empty tensors: draw at least one instance")
    if bool(torch.isnan(left).any() or torch.isnan(right).any()):
        return Evidence("exact", float("nan"), float("nan"), detail="NaN among the values")
    unequal = differs(left, right).flatten()
    where = int(unequal.int().argmax())  # the first, or 0 where none differs
    detail = f"{int(unequal.sum()):,} of {left.numel():,} values differ" if bool(unequal.any()) else detail
    measured, predicted = (side.flatten()[where].item() for side in (left, right))
    evidence = Evidence("exact", *_shown_sides(measured, predicted), detail=detail or f"{left.numel():,} values")
    return while_watched(evidence, lambda: pictures.two_sides(left, right, unequal))


def differs(left: Tensor, right: Tensor) -> Tensor:
    """Entry by entry, by value. Torch compares integers with floats in float32, where 2^24 + 1 equals 2^24."""
    if left.is_floating_point() == right.is_floating_point() or left.is_complex() or right.is_complex():
        return left != right
    whole, real = (right, left) if left.is_floating_point() else (left, right)
    real = real.double()
    within = (real.abs() < 2**63) & (real == real.trunc())
    return ~within | (whole.long() != torch.where(within, real, 0.0).long())


def _comparable_value(value: Any) -> Any:
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
    return _comparable_value(value.item()) if isinstance(value, Tensor) and value.dim() == 0 else value


def _as_tensors(left: Any, right: Any) -> tuple[Any, Any]:
    """A tensor against a list of numbers: two tensors. Against anything else they differ as they stand."""
    try:
        return torch.as_tensor(left, dtype=_dtype_of(left)), torch.as_tensor(right, dtype=_dtype_of(right))
    except (TypeError, ValueError):
        return str(left), right


def _dtype_of(value: Any) -> torch.dtype:
    return value.dtype if isinstance(value, Tensor) else torch.float64


def condition(case: Any) -> bool:
    """A condition that was computed, as a bool: the truth of a number or of nothing at all is not one."""
    if case is None or (isinstance(case, int | float | str) and not isinstance(case, bool)):
        raise TypeError(f"a condition must be a boolean, got {case!r}: compare first")
    if isinstance(case, Tensor) and case.dtype != torch.bool:
        raise TypeError(f"a condition must be a boolean, got {case.dtype}: compare first")
    return bool(case)


def _shown_sides(left: Any, right: Any) -> tuple[Any, Any]:
    """Both sides for the reader: equal if the values are, and different, however long, if they are not."""
    if any(isinstance(v, float) and math.isnan(v) for v in (left, right)):
        return math.nan, math.nan
    if all(isinstance(v, int | float | complex | str) and len(str(v)) <= 60 for v in (left, right)):
        return left, right  # numbers by value: a lie must not fall for giving 5.0 where the truth gives 5
    if left == right:
        return _shorten_text(right), _shorten_text(right)
    one, other = str(left), str(right)
    if one == other:  # a fraction and the text of it, say
        one, other = (f"{type(v).__name__} {v!r}" for v in (left, right))
    if one == other:
        other = f"another {other}"
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if start >= 50:  # what they have in common tells nothing
        one, other = ("..." + text[start - 9 :] for text in (one, other))
    return _shorten_text(one), _shorten_text(other)


def _shorten_text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
