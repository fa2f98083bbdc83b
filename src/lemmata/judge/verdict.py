"""Verdicts, and the result of judging one claim. Plain data: no torch, and JSON both ways."""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["VERDICTS", "Result", "merge"]

# What each verdict means, from the best to the worst.
VERDICTS = {
    "holds": "the truth held and every lie was rejected",
    "skipped": "needs something this machine lacks",
    "open": "stated, no check yet",
    "weak": "a lie was accepted, or there is none",
    "refuted": "the truth failed",
    "error": "the check itself broke",
}


@dataclass(frozen=True)
class Result:
    """The verdict on one claim with everything it rests on."""

    id: str
    verdict: str
    by: str = ""
    seconds: float = 0.0
    reason: str = ""
    evidence: dict[str, Any] | None = None
    lies: list[dict[str, Any]] = field(default_factory=list)
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Result":
        """The result that was written, or ValueError: what comes from a disk or a pipe may be anything."""
        known = _typed("a result", data, FIELDS, ("id", "verdict"))
        if unknown := known.keys() - FIELDS:
            raise ValueError(f"a result has no field {min(unknown)!r}")
        result = cls(**known)
        if result.verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {result.verdict!r}")
        if result.seed < 0 or not 0 <= result.seconds < math.inf:
            raise ValueError(f"seed and seconds must be >= 0, got {result.seed} and {result.seconds}")
        if result.evidence is not None:
            _typed("evidence", result.evidence, EVIDENCE, EVIDENCE.keys())
        for lie in result.lies:
            _typed("a lie", lie, LIE, LIE.keys())
        if result.verdict == "holds" and not result.is_founded:
            raise ValueError("a verdict that holds needs evidence that holds and lies that were rejected")
        return result

    @property
    def is_founded(self) -> bool:
        """Whether it has what it takes to say that a claim holds."""
        return bool(self.evidence and self.evidence["holds"] and self.lies and all(x["rejected"] for x in self.lies))


# The types that JSON gives each value; of a bool one can compute, but it is no number.
ANY = (str, int, float, bool, dict, list, type(None))
FIELDS = {"id": (str,), "verdict": (str,), "by": (str,), "seconds": (int, float), "reason": (str,), "seed": (int,)}
FIELDS |= {"evidence": (dict, type(None)), "lies": (list,)}
EVIDENCE = {"holds": (bool,), "by": (str,), "measured": ANY, "predicted": ANY, "margin": (int, float, str)}
EVIDENCE |= {"alpha": (int, float), "detail": (str,), "proof": (bool,), "weak": (str,), "relation": (str,)}
EVIDENCE |= {"figure": (dict, type(None))}
LIE = {"text": (str,), "printed": (str,), "rejected": (bool, type(None)), "how": (str,)}


def _typed(what: str, data: Any, types: Mapping[str, tuple[type, ...]], needed: Collection[str]) -> dict[str, Any]:
    """The data, if it is an object with all that is needed, every value of its type and every text fit to print."""
    if not isinstance(data, dict):
        raise ValueError(f"{what} must be an object, got {type(data).__name__}")
    if missing := [name for name in needed if name not in data]:
        raise ValueError(f"{what} has no {missing[0]}")
    for name, value in data.items():
        if type(value) not in types.get(name, ANY):
            raise ValueError(f"{name} of {what} cannot be of type {type(value).__name__}")
        if isinstance(value, str):
            value.encode()  # a lone surrogate is a ValueError here, and one of whoever prints it otherwise
    return data


def merge(results: Sequence[Result]) -> Result:
    """Several seeds of one claim: the worst verdict speaks for all."""
    if len(results) == 1:
        return results[0]
    worst = max(results, key=lambda result: list(VERDICTS).index(result.verdict))
    reason = worst.reason if worst.verdict == "holds" else f"seed {worst.seed}: {worst.reason}"
    return dataclasses.replace(worst, reason=reason, seconds=sum(result.seconds for result in results))
