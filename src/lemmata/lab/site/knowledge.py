"""What the pages know: the catalog and the verdicts of the ledger, read again only where something changed.

With 700 claims, asking the ledger for each takes most of a second; seeing that no folder changed takes a millisecond.
"""

import functools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lemmata import catalog as catalogs
from lemmata.catalog import CHAPTERS, Catalog
from lemmata.catalog.settlement import settlement
from lemmata.catalog.sources import sources
from lemmata.catalog.statements import READINGS, Erratum, Statement
from lemmata.judge.fingerprint import closure, fingerprints
from lemmata.judge.ledger import Ledger
from lemmata.judge.loaded import place
from lemmata.judge.verdict import Result

__all__ = ["SETTLEMENTS", "Knowledge", "Snapshot", "known"]

Stamps = dict[Path, int]
# What the words for a remark on a source mean, as a page says them.
SETTLEMENTS = {
    "refuted": "false as printed; the check that accepts the correct form rejects this one",
    **READINGS,
    "not run yet": "taken for false as printed; the check that would refute it was not run on this machine yet",
    "open": "not settled yet",
}


@dataclass(frozen=True)
class Snapshot:
    """The catalog with its verdicts at one moment: a page is made from one of these."""

    catalog: Catalog
    results: dict[str, Result]
    sources: dict[str, dict[str, str]]

    def verdict(self, id: str) -> str:
        """The last verdict; "open" where there is no check, "not judged" where it was never run on this code."""
        if id not in self.catalog.claims:
            return "open"
        return self.results[id].verdict if id in self.results else "not judged"

    def settled(self, id: str, erratum: Erratum) -> str:
        """How a misprint is settled: refuted, one of READINGS, or open."""
        return settlement(self.catalog, self.results, id, erratum)

    def standing(self, id: str, erratum: Erratum) -> str:
        """The same for a reader: a refutation that never ran on this machine is "not run yet"."""
        settled = self.settled(id, erratum)
        return "not run yet" if settled == "refuted" and id not in self.results else settled

    def chapters(self) -> dict[str, list[Statement]]:
        """Chapter -> its statements, in the order of the course."""
        found: dict[str, list[Statement]] = {}
        for statement in self.catalog.statements.values():
            found.setdefault(statement.chapter, []).append(statement)
        return {name: found[name] for name in dict.fromkeys([*(c for c in CHAPTERS if c in found), *found])}

    def statements(self) -> list[Statement]:
        """Every statement, in the order of the course."""
        return [statement for chapter in self.chapters().values() for statement in chapter]

    def errata(self) -> Iterator[tuple[Statement, Erratum]]:
        """Every misprint with the statement it belongs to, in the order of the course."""
        return ((statement, erratum) for statement in self.statements() for erratum in statement.errata)


class Knowledge:
    """Keeps the latest snapshot; safe to ask from several threads."""

    def __init__(self, catalog: Catalog, ledger: Ledger):
        self.catalog, self.ledger, self.sources = catalog, ledger, sources()
        self._lock = threading.Lock()
        self._code: Stamps = {}
        self._shelves: Stamps = {}
        self._keys: dict[str, str] = {}
        self._results: dict[str, Result] = {}

    def now(self) -> Snapshot:
        """What is known at this moment, for the code as it stands on the disk."""
        with self._lock:
            if unsure := self._unsure_claims():
                asked = {id: self.ledger.get(self._keys[id], place(self.catalog.claims[id].path)) for id in unsure}
                kept = {id: result for id, result in self._results.items() if id not in unsure}
                self._results = kept | {id: result for id, result in asked.items() if result}
            return Snapshot(self.catalog, self._results, self.sources)

    def _unsure_claims(self) -> set[str]:
        """The claims whose verdict must be looked up again; from here on they count as known."""
        before, self._shelves = self._shelves, _path_stamps(_ledger_folders(self.ledger.folder))
        if not self._keys or _path_stamps(self._code) != self._code:
            self._keys = fingerprints(self.catalog.claims.values(), 0)
            paths = {claim.path for claim in self.catalog.claims.values()}
            self._code = _path_stamps(set().union(*map(closure, paths)))
            self._results = {}
            return set(self._keys)
        changed = {shelf.name for shelf, stamp in self._shelves.items() if before.get(shelf) != stamp}
        return {id for id, key in self._keys.items() if key[:2] in changed}


@functools.cache
def _load_knowledge(ledger: Path) -> Knowledge:
    return Knowledge(catalogs.load(), Ledger(ledger))


def known() -> Snapshot:
    """What this process knows now."""
    return _load_knowledge(Ledger().folder).now()


def _ledger_folders(folder: Path) -> list[Path]:
    """The folders in which the ledger keeps its entries: an entry arrives by a rename, which changes its folder."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _path_stamps(paths: Iterable[Path]) -> Stamps:
    found: Stamps = {}
    for path in paths:
        try:
            found[path] = path.stat().st_mtime_ns
        except OSError:
            found[path] = -1
    return found
