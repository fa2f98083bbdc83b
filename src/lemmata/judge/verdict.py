"""Verdicts, and the result of judging one claim. Plain data: no torch, and JSON both ways."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lemmata.judge.evidence import consistent

__all__ = ["ENOUGH", "VERDICTS", "Result", "is_blunt", "merge"]

# What each verdict means, from the best to the worst.
VERDICTS = {
    "holds": "the truth held and every lie was rejected",
    "skipped": "needs something this machine lacks",
    "open": "stated, no check yet",
    "weak": "a lie was accepted, or there is none",
    "refuted": "the truth failed",
    "error": "the check itself broke",
}

# An equality must notice a change of two hundredths of the truth, or of one where the truth is smaller.
ENOUGH = 0.02


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
    truth_only: bool = False  # the lies were not asked for: enough for another seed, too little to be remembered

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Result":
        """The result that was written, or ValueError: what comes from a disk or a pipe may be anything."""
        known = _typed_data("a result", data, FIELDS)
        if unknown := known.keys() - FIELDS:
            raise ValueError(f"a result has no field {min(unknown)!r}")
        result = cls(**known)
        if result.verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {result.verdict!r}")
        if result.seed < 0 or not 0 <= result.seconds < math.inf:
            raise ValueError(f"seed and seconds must be >= 0, got {result.seed} and {result.seconds}")
        if result.evidence is not None:
            _typed_data("evidence", result.evidence, EVIDENCE)
        for lie in result.lies:
            _typed_data("a lie", lie, LIE)
            if lie.get("notices") is not None:
                _typed_data("what a lie notices", lie["notices"], NOTICE)
        if result.verdict == "holds" and not result.is_founded:
            raise ValueError("a verdict that holds needs evidence that holds and lies that were rejected")
        return result

    @property
    def is_founded(self) -> bool:
        """Whether it may say that a claim holds: its numbers hold, and those of every lie that was asked for do not."""
        held = self.evidence is not None and self.evidence["holds"] and _evidence_says(self.evidence, True)
        if self.truth_only:
            return held
        return (
            held
            and bool(self.lies)
            and all(lie["rejected"] and _evidence_says(lie.get("evidence"), False) for lie in self.lies)
        )


def _evidence_says(evidence: Any, holds: bool) -> bool:
    """Whether evidence says so when it is computed again; a lie that is rejected by an exception has none."""
    try:
        return not holds if evidence is None else consistent(evidence, holds)
    except (TypeError, KeyError, AttributeError, RecursionError):  # nothing like evidence
        return False


# The types that JSON gives each value; of a bool one can compute, but it is no number.
ANY = (str, int, float, bool, dict, list, type(None))
FIELDS = {"id": (str,), "verdict": (str,), "by": (str,), "seconds": (int, float), "reason": (str,), "seed": (int,)}
FIELDS |= {"evidence": (dict, type(None)), "lies": (list,), "truth_only": (bool,)}
EVIDENCE = {"holds": (bool,), "by": (str,), "measured": ANY, "predicted": ANY, "margin": (int, float, str)}
EVIDENCE |= {"alpha": (int, float), "detail": (str,), "proof": (bool,), "weak": (str,), "relation": (str,)}
EVIDENCE |= {"figure": (dict, type(None)), "unmet": (str,), "parts": (list,)}
LIE = {"text": (str,), "printed": (str,), "rejected": (bool, type(None)), "how": (str,)}
LIE |= {"evidence": (dict, type(None)), "notices": (dict, type(None))}
NOTICE = {"argument": (str,), "regime": (str,), "loose": (str,), "truth": (int, float)}
NOTICE |= dict.fromkeys(("from", "other", "away", "away_other"), (int, float, type(None)))
OPTIONAL = {"evidence", "notices", "parts", "truth_only", "unmet"}


def _typed_data(what: str, data: Any, types: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """The data, if it is an object with all that it needs, every value of its type and every text fit to print."""
    if not isinstance(data, dict):
        raise ValueError(f"{what} must be an object, got {type(data).__name__}")
    if missing := [name for name in types if name not in data and name not in OPTIONAL]:
        raise ValueError(f"{what} has no {missing[0]}")
    for name, value in data.items():
        if type(value) not in types.get(name, ANY):
            raise ValueError(f"{name} of {what} cannot be of type {type(value).__name__}")
        if isinstance(value, str):
            value.encode()  # a lone surrogate is a ValueError here, and one of whoever prints it otherwise
    return data


def is_blunt(notice: dict[str, Any] | None) -> bool:
    """Whether a change of more than two hundredths goes unnoticed, and the lie does not say why."""
    if notice is None:
        return False
    late, late_other = (notice[key] is None or notice[key] > ENOUGH for key in ("away", "away_other"))
    return (late and not notice["regime"]) or (late_other and not notice["loose"])


def merge(results: Sequence[Result]) -> Result:
    """Several seeds of one claim: the worst verdict speaks for all."""
    if len(results) == 1:
        return results[0]
    worst = max(results, key=lambda result: list(VERDICTS).index(result.verdict))
    reason = worst.reason if worst.verdict == "holds" else f"seed {worst.seed}: {worst.reason}"
    fallen = [r.seed for r in results if r is not worst and r.verdict in ("weak", "refuted", "error")]
    if fallen:
        reason += f" ({'seeds' if len(fallen) > 1 else 'seed'} {', '.join(map(str, fallen))} fell too)"
    return dataclasses.replace(worst, reason=reason, seconds=sum(result.seconds for result in results))
