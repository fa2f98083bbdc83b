"""What became of the mutants of a file, as data, as text and as JSON."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lemmata.judge.fingerprint import PACKAGE
from lemmata.testing.mutations import Mutant

__all__ = ["MutationReport", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: the claim that noticed it and how, or nobody."""

    mutant: Mutant
    by: str = ""
    how: str = ""

    @property
    def killed(self) -> bool:
        return bool(self.by)


@dataclass
class MutationReport:
    """The mutants of one file: which claims were run, which could not be and why, and what became of each mutant."""

    path: Path
    mutants: int
    claims: list[str] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.path.relative_to(PACKAGE).as_posix() if PACKAGE in self.path.parents else os.path.relpath(self.path)

    @property
    def killed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.killed]

    @property
    def explained(self) -> list[Outcome]:
        """Survivors for which a comment in the source says why no claim can notice them."""
        return [outcome for outcome in self.outcomes if not outcome.killed and outcome.mutant.explained]

    @property
    def survivors(self) -> list[Outcome]:
        """Those that nothing explains."""
        return [outcome for outcome in self.outcomes if not outcome.killed and not outcome.mutant.explained]

    @property
    def score(self) -> float:
        return score([self])

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"file": self.label, "claims": self.claims, "unused": self.unused, "score": self.score}
        told |= {"mutants": self.mutants, "killed": len(self.killed), "explained": len(self.explained)}
        return told | {"survivors": [_survivor(each) for each in self.survivors + self.explained]}


def score(reports: Sequence[MutationReport]) -> float:
    """Killed, out of those that can be: what a comment explains counts for neither side."""
    killed = sum(len(report.killed) for report in reports)
    survived = sum(len(report.survivors) for report in reports)
    return killed / (killed + survived) if killed + survived else 1.0


def counts(reports: Sequence[MutationReport]) -> str:
    """The numbers of some files together in a line."""
    kinds = ("killed", "explained", "survivors")
    killed, explained, survived = (sum(len(getattr(report, kind)) for report in reports) for kind in kinds)
    ran, total = killed + explained + survived, sum(report.mutants for report in reports)
    if not total:
        return "nothing to mutate"
    parts = [f"{total} mutants", f"{killed} killed", f"{explained} explained", f"{survived} survived"]
    if ran < total:
        parts.append(f"{total - ran} not run")
    if ran:
        parts.append(f"killed {killed / ran:.3f}, killed or explained {(killed + explained) / ran:.3f}")
    return f"{', '.join(parts)}, score {score(reports):.3f}"


def lines(report: MutationReport) -> list[str]:
    """A file's numbers, the claims that could not be run, and each survivor with its line and its change."""
    told = [f"{report.label}: {counts([report])}"]
    told += [f"  not run: {id}: {why}" for id, why in report.unused.items()]
    for outcome in report.survivors + report.explained:
        mutant = outcome.mutant
        why = f"explained: {mutant.explained}" if mutant.explained else outcome.how
        told.append(f"  {mutant.line}:{mutant.column} {mutant.operator}{f' ({why})' if why else ''}")
        told.append(f"      {mutant.row}")
        told.append(f"      {_short(mutant.before)}  ->  {_short(mutant.after)}")
    return told


def _survivor(outcome: Outcome) -> dict[str, Any]:
    mutant = outcome.mutant
    place = {"id": mutant.id, "line": mutant.line, "column": mutant.column, "operator": mutant.operator}
    return place | {"before": mutant.before, "after": mutant.after, "how": outcome.how, "explained": mutant.explained}


def _short(text: str, width: int = 100) -> str:
    return text if len(text) <= width else f"{text[: width // 2 - 2]} ... {text[3 - width // 2 :]}"
