"""How sharp a check is: how far a number must move from the truth before the check notices.

A lie that is rejected at its own value says little about the values in between. For every argument that some lie
moves as a number, the nearest value that is noticed is found by bisection, on the lie's side and on the other one.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

from lemmata.judge.decorators import Claim, Lie
from lemmata.judge.dial import is_number
from lemmata.judge.evidence import Evidence
from lemmata.judge.moved_claim import truth_of
from lemmata.judge.runner import attempt
from lemmata.judge.statistics import cost_class
from lemmata.judge.verdict import ENOUGH

__all__ = ["notices", "sharpen"]

# Closer than a millionth nobody asks.
FINEST = 1e-6
# How exactly the first noticed value is found: to a tenth where it is large, to a factor of two where it is small.
RATIO, SMALL_RATIO = 1.1, 2.0

Accepts = Callable[[float], bool]


def sharpen(claim: Claim, lies: list[dict[str, Any]], seed: int, cost: str | None) -> list[dict[str, Any]]:
    """The judged lies, each with what `notices` found for it."""
    found = notices(claim, seed, cost)
    return [told | {"notices": each} for told, each in zip(lies, found, strict=True)]


def notices(claim: Claim, seed: int = 0, cost: str | None = None) -> list[dict[str, Any] | None]:
    """For each lie the first value that is noticed towards it and away from it; None where it moves no number.

    >>> from lemmata.judge import claim, close, is_blunt, lie
    >>> @claim("mine.circle")
    ... @lie("rounded to an integer", pi=3.0)
    ... def circle(draw, pi=math.pi):
    ...     return close(math.sin(pi), 0.0, within=0.03)
    >>> [found] = notices(circle)
    >>> round(found["from"], 1), round(found["other"], 1), is_blunt(found)
    (3.1, 3.2, False)
    """
    token = cost_class.set(cost or claim.cost)
    try:
        tried: dict[tuple[str, float], bool] = {}
        return [_notice_of_value(claim, lie, seed, tried) for lie in claim.lies]
    finally:
        cost_class.reset(token)


def _notice_of_value(claim: Claim, lie: Lie, seed: int, tried: dict[tuple[str, float], bool]) -> dict[str, Any] | None:
    truth = truth_of(claim, lie)
    if not (is_number(truth) and is_number(lie.value)) or lie.raises:
        return None
    whole = isinstance(truth, int) and isinstance(lie.value, int)

    def accepts(value: float) -> bool:
        value = int(value) if whole else value
        if (lie.argument, value) not in tried:
            tried[lie.argument, value] = _accepts_value(claim, lie.argument, value, seed)
        return tried[lie.argument, value]

    first = _first_whole if whole else _first_real
    own = first(truth, lie.value, accepts)
    other = first(truth, 2 * truth - lie.value, accepts)
    scale = max(abs(truth), 1.0)
    away, away_other = (None if v is None else _distance_away(abs(v - truth), scale, whole) for v in (own, other))
    return {
        "argument": lie.argument, "truth": truth, "from": own, "other": other, "away": away, "away_other": away_other,
        "regime": lie.regime, "loose": lie.loose,
    }  # fmt: skip


def _accepts_value(claim: Claim, argument: str, value: float, seed: int) -> bool:
    """Whether the check takes this value for true. A value that the code refuses is noticed; NaN notices nothing."""
    outcome = attempt(claim, seed, {argument: value})
    return isinstance(outcome, Evidence) and (outcome.holds or outcome.undecided or bool(outcome.weak))


def _distance_away(distance: float, scale: float, whole: bool) -> float:
    """The distance in units of the truth; one step is the finest that an integer can take."""
    return 0.0 if whole and distance <= 1 else round(distance / scale, 9)


def _first_whole(truth: int, end: int, accepts: Accepts) -> int | None:
    if accepts(end):
        return None
    step = 1 if end > truth else -1
    low, high = 0, abs(end - truth)  # accepted at low steps, noticed at high ones
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts(truth + step * middle) else (low, middle)
    return truth + step * high


def _first_real(truth: float, end: float, accepts: Accepts) -> float | None:
    far, side = abs(end - truth), math.copysign(1.0, end - truth)
    scale = max(abs(truth), 1.0)
    at = functools.partial(_moved_value, truth, side)
    if not accepts(at(min(FINEST * scale, far))):
        return at(min(FINEST * scale, far))
    near, ratio = FINEST * scale, SMALL_RATIO
    if far > ENOUGH * scale and accepts(at(ENOUGH * scale)):
        near, ratio = ENOUGH * scale, RATIO
    elif far > ENOUGH * scale:
        far = ENOUGH * scale
    if accepts(at(far)):
        return None
    while far / near > ratio:
        middle = math.sqrt(far * near)
        near, far = (middle, far) if accepts(at(middle)) else (near, middle)
    return at(far)


def _moved_value(truth: float, side: float, distance: float) -> float:
    return truth + side * distance
