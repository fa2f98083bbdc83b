"""Probing a claim: the same check, from the same draw, with one argument at a value of the reader's choice."""

import inspect
import math
import time
from dataclasses import dataclass
from typing import Any

from lemmata.judge.decorators import Claim, Lie
from lemmata.judge.evidence import Evidence
from lemmata.judge.runner import attempt, gap, place
from lemmata.judge.statistics import cost_class

__all__ = ["Dial", "dials", "probe_claim"]

# How far beyond truth and lie a value may lie, as a share of the way between them.
BEYOND = 0.1
# A slider computes its value, so its ends miss truth and lie by a rounding error, which must not decide anything.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Dial:
    """What a reader can turn on one lie: a number from truth to lie, or a switch between them (0 and 1)."""

    argument: str
    kind: str  # "whole", "real" or "switch"
    truth: float
    lie: float
    low: float
    high: float


def dials(claim: Claim) -> list[Dial]:
    """One for each lie, in their order."""
    return [_dial(lie.argument, truth_of(claim, lie), lie.value) for lie in claim.lies]


def probe_claim(claim: Claim, lie: int, value: float, seed: int = 0, cost: str | None = None) -> dict[str, Any]:
    """Run the check once with the lie's argument at `value`; on a switch 0 is the truth and 1 the lie.

    The outcome is "still holds", "rejected" or "undecided"; at the lie's own value it is what the judge finds.

    >>> from lemmata.judge import claim, close, lie
    >>> @claim("mine.circle")
    ... @lie("rounded to a whole number", pi=3.0)
    ... def circle(draw, pi=math.pi):
    ...     return close(math.sin(pi), 0.0, within=1e-9)
    >>> [probe_claim(circle, 0, value)["outcome"] for value in (math.pi, 3.1, 3.0)]
    ['still holds', 'rejected', 'rejected']
    """
    if not 0 <= lie < len(claim.lies):
        raise ValueError(f"lie must be from 0 to {len(claim.lies) - 1}, got {lie}")
    told = claim.lies[lie]
    tried = _setting(claim, told, value)
    token, started = cost_class.set(cost or claim.cost), time.perf_counter()
    try:
        found = attempt(claim, seed, {told.argument: tried})
    finally:
        cost_class.reset(token)
    seconds = round(time.perf_counter() - started, 4)
    return {"argument": told.argument, "value": value, "seconds": seconds} | _outcome(found, told)


def _outcome(found: Any, lie: Lie) -> dict[str, Any]:
    if not isinstance(found, Evidence):
        outcome = "rejected" if lie.raises and type(found) is lie.raises else "undecided"
        how = place(found) if isinstance(found, BaseException) else "the check returned no evidence"
        return {"outcome": outcome, "how": how, "evidence": None}
    outcome = "undecided" if found.undecided or found.weak else "still holds" if found.holds else "rejected"
    return {"outcome": outcome, "how": found.weak or gap(found), "evidence": found.to_json()}


# --- From truth to lie ---


def _dial(argument: str, truth: Any, lie: Any) -> Dial:
    if not (is_number(truth) and is_number(lie)):
        return Dial(argument, "switch", 0, 1, 0, 1)
    low, high = min(truth, lie), max(truth, lie)
    beyond = BEYOND * (high - low)
    if isinstance(truth, int) and isinstance(lie, int):
        beyond = math.ceil(beyond)
        return Dial(argument, "whole", truth, lie, low - beyond, high + beyond)
    return Dial(argument, "real", float(truth), float(lie), low - beyond, high + beyond)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def truth_of(claim: Claim, lie: Lie) -> Any:
    return inspect.signature(claim.function).parameters[lie.argument].default


def _setting(claim: Claim, lie: Lie, value: float) -> Any:
    """What the argument becomes; the truth and the lie themselves where the value is theirs."""
    truth = truth_of(claim, lie)
    dial = _dial(lie.argument, truth, lie.value)
    if not dial.low <= value <= dial.high:  # also refuses NaN
        raise ValueError(f"{dial.argument} must be from {dial.low:.6g} to {dial.high:.6g}, got {value}")
    for known, itself in ((dial.truth, truth), (dial.lie, lie.value)):
        if abs(value - known) <= ROUNDING * abs(dial.lie - dial.truth):
            return itself
    if dial.kind == "switch":
        raise ValueError(f"{dial.argument} is a switch: value must be 0 for the truth or 1 for the lie, got {value}")
    if dial.kind == "whole" and not float(value).is_integer():
        raise ValueError(f"{dial.argument} must be a whole number, got {value}")
    return int(value) if dial.kind == "whole" else float(value)
