"""Probing a claim: the same check, from the same draw, with one argument at a value of the reader's choice."""

import inspect
import time
from collections.abc import Sequence
from typing import Any

from lemmata.judge.decorators import Claim, Lie
from lemmata.judge.dial import Dial, dial_of
from lemmata.judge.evidence import Evidence
from lemmata.judge.evidence_words import sentence
from lemmata.judge.pictures import figure_of, watched
from lemmata.judge.runner import attempt, place
from lemmata.judge.statistics import cost_class

__all__ = ["dials", "probe_claim"]


def dials(claim: Claim) -> list[Dial]:
    """One for each lie, in their order."""
    return [dial_of(lie.argument, truth_of(claim, lie), lie.value) for lie in claim.lies]


def probe_claim(
    claim: Claim, lie: int, value: float, seed: int = 0, cost: str | None = None, part: Sequence[int] = ()
) -> dict[str, Any]:
    """Run the check once with the lie's argument at `value`; on a switch 0 is the truth and 1 the lie.

    The outcome is "still holds", "rejected" or "undecided"; at the lie's own value it is what the judge finds. The
    evidence has a figure, drawn by the claim or by its judge; `part` says of which judge, as in `figure_of`.

    >>> import math
    >>> from lemmata.judge import claim, close, lie
    >>> @claim("mine.circle")
    ... @lie("rounded to an integer", pi=3.0)
    ... def circle(draw, pi=math.pi):
    ...     return close(math.sin(pi), 0.0, within=1e-9)
    >>> [probe_claim(circle, 0, value)["outcome"] for value in (math.pi, 3.1, 3.0)]
    ['still holds', 'rejected', 'rejected']
    """
    if not 0 <= lie < len(claim.lies):
        raise ValueError(f"lie must be from 0 to {len(claim.lies) - 1}, got {lie}")
    told = claim.lies[lie]
    tried = _argument_setting(claim, told, value)
    token, started = cost_class.set(cost or claim.cost), time.perf_counter()
    try:
        with watched():
            found = attempt(claim, seed, {told.argument: tried})
    finally:
        cost_class.reset(token)
    seconds = round(time.perf_counter() - started, 4)
    if isinstance(found, Evidence):
        found = found.showing(figure_of(found, part))
    return {"argument": told.argument, "value": value, "seconds": seconds} | _outcome_entry(found, told)


def _outcome_entry(found: Any, lie: Lie) -> dict[str, Any]:
    if not isinstance(found, Evidence):
        outcome = "rejected" if lie.raises and type(found) is lie.raises else "undecided"
        how = place(found) if isinstance(found, BaseException) else "the check returned no evidence"
        return {"outcome": outcome, "how": how, "evidence": None}
    outcome = "undecided" if found.undecided or found.weak else "still holds" if found.holds else "rejected"
    return {"outcome": outcome, "how": found.weak or sentence(vars(found)), "evidence": found.to_json()}


def truth_of(claim: Claim, lie: Lie) -> Any:
    return inspect.signature(claim.function).parameters[lie.argument].default


def _argument_setting(claim: Claim, lie: Lie, value: float) -> Any:
    """What the argument becomes; the truth and the lie themselves where the value is theirs."""
    truth = truth_of(claim, lie)
    dial = dial_of(lie.argument, truth, lie.value)
    if value in (dial.truth, dial.lie):
        return truth if value == dial.truth else lie.value
    low, high = sorted((dial.truth, dial.lie))
    if dial.kind == "switch":
        raise ValueError(f"{dial.argument} is a switch: value must be 0 for the truth or 1 for the lie, got {value}")
    if not low <= value <= high:  # also refuses NaN
        raise ValueError(f"{dial.argument} must be from {low:.6g} to {high:.6g}, got {value}")
    if dial.kind == "whole" and not float(value).is_integer():
        raise ValueError(f"{dial.argument} must be an integer, got {value}")
    return int(value) if dial.kind == "whole" else float(value)
