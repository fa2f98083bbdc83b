"""What became of the mutants of a file, as data, as text and as JSON."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lemmata.judge.loaded import PACKAGE
from mutation.mutants import Mutant

__all__ = ["MutationReport", "Outcome"]

MOST_UNUSED = 10  # lines of a file's report on what could not be run


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: the claim or the test that noticed it and how, or nobody."""

    mutant: Mutant
    kind: Literal["claim", "test", ""] = ""
    by: str = ""
    how: str = ""

    @property
    def killed(self) -> bool:
        return bool(self.kind)


@dataclass
class MutationReport:
    """The mutants of one file: which claims and tests were run, which could not be and why, what became of each mutant.

    `found` counts all mutants of the file (of its changed lines), `mutants` those that were to be tried.
    """

    path: Path
    found: int
    mutants: int
    claims: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.path.relative_to(PACKAGE).as_posix() if PACKAGE in self.path.parents else os.path.relpath(self.path)

    @property
    def killed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.killed]

    @property
    def survivors(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.killed]

    @property
    def not_tried(self) -> int:
        """How many were to be tried when the time was up."""
        return self.mutants - len(self.outcomes)

    @property
    def score(self) -> float:
        return score([self])

    def to_json(self) -> dict[str, Any]:
        told = {"file": self.label, "claims": self.claims, "tests": self.tests, "unused": self.unused}
        return told | totals([self]) | {"survivors": [_survivor(self.label, each) for each in self.survivors]}


def score(reports: Sequence[MutationReport]) -> float:
    """Killed, by whomever, out of those that were tried."""
    tried = sum(len(report.outcomes) for report in reports)
    return sum(len(report.killed) for report in reports) / tried if tried else 1.0


def spread(reports: Sequence[MutationReport]) -> float:
    """The standard error of the score where not every mutant was tried: that of a share in a random sample."""
    tried, found = (sum(n) for n in zip(*((len(r.outcomes), r.found) for r in reports), strict=True))
    if not tried or tried == found:
        return 0.0
    share = (score(reports) * tried + 1) / (tried + 2)  # so that a sample without a survivor does not claim certainty
    return math.sqrt(share * (1 - share) / tried * (1 - tried / found))


def totals(reports: Sequence[MutationReport]) -> dict[str, Any]:
    """The numbers of some files together, for JSON."""
    kinds = [outcome.kind for report in reports for outcome in report.outcomes]
    told = {"mutants": sum(report.found for report in reports), "tried": len(kinds)}
    told |= {"killed_by_claims": kinds.count("claim"), "killed_by_tests": kinds.count("test")}
    told |= {"survived": kinds.count(""), "not_tried": sum(report.not_tried for report in reports)}
    return told | {"score": score(reports), "standard_error": spread(reports)}


def counts(reports: Sequence[MutationReport]) -> str:
    """The numbers of some files together in a line."""
    if not any(report.found for report in reports):
        return "nothing to mutate"
    told = totals(reports)
    parts = [f"{told['mutants']} mutants", f"{told['killed_by_claims']} killed by claims"]
    parts += [f"{told['killed_by_tests']} by tests", f"{told['survived']} survived"]
    parts += [f"{told['not_tried']} not tried"] if told["not_tried"] else []
    if told["tried"]:
        error = f" +- {told['standard_error']:.3f}" if told["standard_error"] else ""
        parts.append(f"score {told['score']:.3f}{error} of {told['tried']} tried")
    return ", ".join(parts)


def lines(report: MutationReport) -> list[str]:
    """A file's numbers, what could not be run, and each survivor with its line and its change."""
    told = [f"{report.label}: {counts([report])}"]
    told += [f"  not run: {name}: {why}" for name, why in list(report.unused.items())[:MOST_UNUSED]]
    if len(report.unused) > MOST_UNUSED:
        told.append(f"  not run: {len(report.unused) - MOST_UNUSED} more, named by --json")
    for outcome in report.survivors:
        mutant = outcome.mutant
        why = f" ({outcome.how})" if outcome.how else ""
        told.append(f"  {report.label}:{mutant.line}:{mutant.column} {mutant.operator}{why}")
        told.append(f"      {mutant.row}")
        told.append(f"      {_short(mutant.before)}  ->  {_short(mutant.after)}")
    return told


def _survivor(label: str, outcome: Outcome) -> dict[str, Any]:
    mutant = outcome.mutant
    place = {"id": mutant.id, "file": label, "line": mutant.line, "column": mutant.column, "operator": mutant.operator}
    return place | {"row": mutant.row, "before": mutant.before, "after": mutant.after, "how": outcome.how}


def _short(text: str, width: int = 100) -> str:
    return text if len(text) <= width else f"{text[: width // 2 - 2]} ... {text[3 - width // 2 :]}"
