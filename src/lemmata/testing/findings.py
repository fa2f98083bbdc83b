"""What the conformance suites share: checks that pass, fail or do not apply, and the report of them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

__all__ = ["Finding", "Nonconforming", "Report"]


class Broken(Exception):
    """A check failed; the sentence says how."""


class Undecided(Exception):
    """A check does not apply; the sentence says why."""


class Finding(NamedTuple):
    """What became of one check: passed, failed or skipped, and why, in one sentence."""

    check: str
    outcome: Literal["passed", "failed", "skipped"]
    why: str = ""


@dataclass(frozen=True)
class Report:
    """The findings about one object, in the order of the checks."""

    subject: str
    findings: list[Finding]

    def named(self, outcome: str) -> list[str]:
        """The checks with this outcome: passed, failed or skipped."""
        return [finding.check for finding in self.findings if finding.outcome == outcome]

    @property
    def passed(self) -> bool:
        """No check failed."""
        return not self.named("failed")

    def __str__(self) -> str:
        width = max(len(finding.check) for finding in self.findings)
        rows = [f"{f.check:{width}}  {f.outcome}{': ' + f.why if f.why else ''}" for f in self.findings]
        return "\n".join([f"{self.subject}: {len(self.named('failed'))} of {len(rows)} checks failed", *rows])


class Nonconforming(AssertionError):
    """An object that failed a check of its suite; `report` holds all findings."""

    def __init__(self, report: Report) -> None:
        why = "\n".join(f"- {f.check}: {f.why}" for f in report.findings if f.outcome == "failed")
        super().__init__(
            f"{report.subject} failed {len(report.named('failed'))} of {len(report.findings)} checks\n{why}"
        )
        self.report = report


Checks = Mapping[str, tuple[Callable[[Any], None], Sequence[str]]]  # each with the checks that it needs passed


def asked(checks: Checks, skip: Sequence[str], on_fail: str) -> None:
    """Refuse words that no suite knows."""
    if on_fail not in ("raise", "report"):
        raise ValueError(f"on_fail must be 'raise' or 'report', got {on_fail!r}")
    if unknown := sorted(set(skip) - set(checks)):
        raise ValueError(f"skip must name checks among {', '.join(checks)}, got {', '.join(unknown)}")


def found(checks: Checks, subject: Any, skip: Sequence[str], what: str) -> list[Finding]:
    """Run the checks one after another; `what` is the word for their object."""
    findings: dict[str, Finding] = {}
    for name, (check, needs) in checks.items():
        if name in skip:
            continue
        missing = [need for need in needs if need in findings and findings[need].outcome != "passed"]
        if missing:
            findings[name] = Finding(name, "skipped", f"it needs {missing[0]}, which did not pass")
            continue
        try:
            check(subject)
            findings[name] = Finding(name, "passed")
        except Broken as broken:
            findings[name] = Finding(name, "failed", str(broken))
        except Undecided as undecided:
            findings[name] = Finding(name, "skipped", str(undecided))
        except Exception as error:
            findings[name] = Finding(name, "failed", f"the {what} raised {told(error)}")
    return list(findings.values())


def told(error: Exception) -> str:
    """An error in one line."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"
