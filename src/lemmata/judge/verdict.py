"""Verdicts, and the result of judging one claim. Plain data: no torch, and JSON both ways."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Result":
        result = cls(**data)
        if result.verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {result.verdict!r}")
        return result


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
    return dataclasses.replace(worst, reason=reason, seconds=sum(result.seconds for result in results))
