"""From words on the command line to claims: ids, patterns, chapters, text, or files and folders with claims."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lemmata.catalog.entries import Catalog, ClaimEntry
from lemmata.catalog.reading import read_claims
from lemmata.catalog.search import did_you_mean, nearest_words, search
from lemmata.catalog.statements import Statement

__all__ = ["Selection", "matching", "select"]


@dataclass
class Selection:
    """What was asked for: claims to judge, ids that are stated but open, and what could not be found."""

    claims: dict[str, ClaimEntry] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [*self.claims, *self.open]

    def add(self, catalog: Catalog, ids: Iterable[str]) -> None:
        for id in ids:
            if id in catalog.claims:
                self.claims.setdefault(id, catalog.claims[id])
            elif id not in self.open:
                self.open.append(id)


def select(catalog: Catalog, words: Sequence[str], text: bool = False) -> Selection:
    """Every claim for no words; else those that a word names. What is unknown becomes a fault, the rest is kept.

    With `text`, words that name nothing are looked for together in the statements, as the page's search does.
    """
    chosen = Selection()
    paths = [word for word in dict.fromkeys(words) if word.endswith(".py") or _is_path(catalog, word)]
    for word in paths:
        _read_claim_files(Path(word), catalog, chosen)
    own = dict(chosen.claims)
    picked = [word for word in words if word in own]
    if picked:  # `check mine.py mine.first`: of the file, only that
        chosen.claims = {id: own[id] for id in picked}
    unknown = []
    for word in [word for word in words if word not in paths and word not in own] if words else ["*"]:
        ids = matching(catalog, word)
        chosen.add(catalog, ids)
        unknown += [] if ids else [word]
    found = search(catalog, " ".join(unknown)) if text and unknown else []
    chosen.add(catalog, found)
    stated = catalog.statements.values()
    known = {*own, *catalog.statements, *(s.chapter for s in stated), *(s.room for s in stated)} - {""}
    for word in [] if found else unknown:
        hint = nearest_words(catalog, word) if text else did_you_mean(word, known)
        chosen.faults.append(f"{'no statement has the id or word' if text else 'unknown id'} {word!r}{hint}")
    return chosen


def matching(catalog: Catalog, word: str) -> list[str]:
    """Ids equal to the word, matching it as a pattern, below it as a topic, or in the chapter of that name."""

    def fits(id: str, statement: Statement) -> bool:
        return fnmatch.fnmatchcase(id, word) or id.startswith(word + ".") or word in (statement.chapter, statement.room)

    return [id for id, statement in catalog.statements.items() if fits(id, statement)]


def _is_path(catalog: Catalog, word: str) -> bool:
    """Whether a word is a file or folder; `recurrent` is the chapter, `./recurrent` or `recurrent/` a folder."""
    return Path(word).is_file() or (Path(word).is_dir() and not matching(catalog, word))


def _read_claim_files(path: Path, catalog: Catalog, chosen: Selection) -> None:
    """The claims of a file, or of every file below a folder that has some."""
    if not path.exists():
        chosen.faults.append(f"there is no file {path}: give the path of a Python file with claims")
        return
    problems: list[str] = []
    files = [path] if path.is_file() else [file for file in sorted(path.rglob("*.py")) if _may_have_claims(file, path)]
    found = [claim for file in files for claim in read_claims(file, file.stem, problems)]
    chosen.faults += problems
    if not found and not problems:
        chosen.faults.append(f"{path} has no claims: decorate a function with @claim from lemmata.judge")
    for claim in found:
        if claim.id in catalog.statements:
            why = f"{claim.id!r} is a statement of lemmata: choose an id of your own"
            chosen.faults.append(f"{claim.path}:{claim.line}: {why}")
        elif claim.id in chosen.claims:
            chosen.faults.append(f"{claim.path}:{claim.line}: duplicate id {claim.id!r}: give each claim its own")
        else:
            chosen.claims[claim.id] = claim


def _may_have_claims(file: Path, folder: Path) -> bool:
    """Whether a file below a folder is worth reading: hidden folders and files that never say `claim` are not."""
    if any(part.startswith(".") for part in file.relative_to(folder).parts):
        return False
    try:
        return "@claim" in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
