r"""The answers of all probes to one model, the most important first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lemmata.audit.finding import SEVERITIES, AuditFinding

__all__ = ["AuditReport"]

FORMAT = 1


@dataclass(frozen=True)
class AuditReport:
    """What was found about a model. `findings` are sorted: alarms, hints, what is fine, what was skipped."""

    subject: str
    findings: Sequence[AuditFinding]
    facts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    budget: float = 0.0

    def __post_init__(self) -> None:
        order = sorted(self.findings, key=lambda one: (SEVERITIES.index(one.severity), -one.weight))
        object.__setattr__(self, "findings", tuple(order))

    def of(self, severity: str) -> list[AuditFinding]:
        """The findings of one severity: alarm, hint, fine or skipped."""
        return [finding for finding in self.findings if finding.severity == severity]

    @property
    def alarms(self) -> list[AuditFinding]:
        """What is wrong."""
        return self.of("alarm")

    @property
    def most_important(self) -> list[AuditFinding]:
        """The three findings to read first."""
        return [finding for finding in self.findings if finding.severity in ("alarm", "hint")][:3]

    def __getitem__(self, name: str) -> AuditFinding:
        """The finding of a name; the most severe where there are several."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"no finding {name!r} among {', '.join(dict.fromkeys(one.name for one in self.findings))}")

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        own = {"format": FORMAT, "subject": self.subject, "facts": dict(self.facts)}
        times = {"seconds": self.seconds, "budget": self.budget}
        return own | times | {"findings": [finding.to_json() for finding in self.findings]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AuditReport":
        """What `to_json` wrote."""
        findings = [AuditFinding.from_json(one) for one in data["findings"]]
        return cls(data["subject"], findings, data["facts"], data["seconds"], data["budget"])

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.of(one))} {one}" for one in SEVERITIES if self.of(one))
        rows = [f"{self.subject}: {counts} ({self.seconds:.1f} s)"]
        for finding in self.findings:
            rows.append(f"{finding.severity:7}  {finding.name}: {finding.verdict}")
            if finding.advice and finding.severity in ("alarm", "hint"):
                rows.append(f"         -> {finding.advice}")
        return "\n".join(rows)
