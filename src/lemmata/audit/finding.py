r"""What a probe says: measured, predicted, the verdict in one sentence, what to do, and the claims it rests on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lemmata.figure import Figure

__all__ = ["AuditFinding"]

Severity = Literal["alarm", "hint", "fine", "skipped"]
SEVERITIES: tuple[Severity, ...] = ("alarm", "hint", "fine", "skipped")


@dataclass(frozen=True)
class AuditFinding:
    """One answer of a probe.

    An `alarm` says that something is wrong and costs accuracy or convergence; a `hint`, that something could be better
    or should be known; `fine`, that theory and measurement agree; `skipped`, that nothing was asked, and why. `name`
    says in a few fixed words what was looked at, the same in every report. Among findings of one severity, those of
    larger `weight` come first.
    """

    severity: Severity
    name: str
    verdict: str
    measured: str = ""
    predicted: str = ""
    advice: str = ""
    claims: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    where: Sequence[str] = ()
    weight: float = 1.0
    probe: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data; numbers that are not finite are None, as JSON knows no others."""
        numbers = {name: float(value) if math.isfinite(value) else None for name, value in self.numbers.items()}
        parts = {name: list(getattr(self, name)) for name in ("claims", "where")}
        figures = [figure.to_json() for figure in self.figures]
        return {**vars(self), **parts, "numbers": numbers, "figures": figures}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AuditFinding":
        """What `to_json` wrote."""
        numbers = {name: math.nan if value is None else value for name, value in data["numbers"].items()}
        return cls(**{**data, "figures": [Figure.from_json(one) for one in data["figures"]], "numbers": numbers})


def alarm(name: str, verdict: str, **more: Any) -> AuditFinding:
    """Something is wrong."""
    return AuditFinding("alarm", name, verdict, **more)


def hint(name: str, verdict: str, **more: Any) -> AuditFinding:
    """Something could be better."""
    return AuditFinding("hint", name, verdict, **more)


def fine(name: str, verdict: str, **more: Any) -> AuditFinding:
    """As theory wants it."""
    return AuditFinding("fine", name, verdict, **more)


def skipped(name: str, why: str, **more: Any) -> AuditFinding:
    """Nothing was asked."""
    return AuditFinding("skipped", name, why, **more)
