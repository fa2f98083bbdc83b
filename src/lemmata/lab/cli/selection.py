"""From words on the command line to claims: ids, patterns, chapters, or files."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lemmata.catalog import Catalog, ClaimEntry, read_claims
from lemmata.lab.cli.terminal import did_you_mean
from lemmata.statements import Statement


@dataclass
class Selection:
    """What was asked for: claims to judge, ids that are stated but open, and what could not be found."""

    claims: dict[str, ClaimEntry] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [*self.claims, *self.open]


def select(catalog: Catalog, words: Sequence[str]) -> Selection:
    """Every claim for no words; else those that a word names. What is unknown becomes a fault, the rest is kept."""
    chosen = Selection()
    files = [word for word in words if word.endswith(".py") or Path(word).is_file()]
    for word in dict.fromkeys(files):
        _file(Path(word), catalog, chosen)
    own = dict(chosen.claims)
    picked = [word for word in words if word in own]
    if picked:  # `check mine.py mine.first`: of the file, only that
        chosen.claims = {id: own[id] for id in picked}
    for word in [word for word in words if word not in files and word not in own] if words else ["*"]:
        ids = matching(catalog, word)
        if not ids:
            known = {*own, *catalog.statements, *(s.chapter for s in catalog.statements.values())}
            chosen.faults.append(f"unknown id {word!r}{did_you_mean(word, known)}")
        for id in ids:
            if id in catalog.claims:
                chosen.claims.setdefault(id, catalog.claims[id])
            elif id not in chosen.open:
                chosen.open.append(id)
    return chosen


def matching(catalog: Catalog, word: str) -> list[str]:
    """Ids equal to the word, matching it as a pattern, below it as a topic, or in the chapter of that name."""

    def fits(id: str, statement: Statement) -> bool:
        return fnmatch.fnmatchcase(id, word) or id.startswith(word + ".") or statement.chapter == word

    return [id for id, statement in catalog.statements.items() if fits(id, statement)]


def _file(path: Path, catalog: Catalog, chosen: Selection) -> None:
    if not path.is_file():
        chosen.faults.append(f"there is no file {path}: give the path of a Python file with claims")
        return
    problems: list[str] = []
    found = list(read_claims(path, path.stem, problems))
    chosen.faults += problems
    if not found and not problems:
        chosen.faults.append(f"{path} has no claims: decorate a function with @claim from lemmata.judge")
    for claim in found:
        if claim.id in catalog.statements:
            chosen.faults.append(
                f"{path}:{claim.line}: {claim.id!r} is a statement of lemmata: choose an id of your own"
            )
        elif claim.id in chosen.claims:
            chosen.faults.append(f"{path}:{claim.line}: duplicate id {claim.id!r}: give each claim its own")
        else:
            chosen.claims[claim.id] = claim
