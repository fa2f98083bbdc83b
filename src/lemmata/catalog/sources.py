"""The sets of notes that everything comes from, and what each of them states."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lemmata.catalog.entries import Catalog
from lemmata.catalog.statements import Statement

__all__ = ["cited", "invented_places", "sources"]

SOURCES = Path(__file__).parents[1] / "sources.yaml"


def sources() -> dict[str, dict[str, str]]:
    """Key -> title and author of every set of notes."""
    return {key: {"title": note["title"], "author": note["author"]} for key, note in _read_notes(SOURCES).items()}


def invented_places(catalog: Catalog, file: Path) -> Iterator[str]:
    """What statements say of sources that are not in the file, or of sections that these do not have."""
    notes = _read_notes(file) if file.exists() else {}
    for statement in catalog.statements.values() if notes else ():
        where = f"{statement.chapter}: {statement.id}"
        for key in sorted({entry["source"] for entry in statement.sources} | {e.source for e in statement.errata}):
            if key not in notes:
                yield f"{where} names the source {key!r}: {file.name} has {', '.join(notes)}"
        for entry in statement.sources:
            if entry["source"] in notes and _section_place(entry["where"]) not in map(
                str, notes[entry["source"]]["places"]
            ):
                known = f"{file.name} lists the sections and headings of {entry['source']}"
                yield f"{where} is said to stand in {entry['source']} under {entry['where']!r}: {known}"


def cited(catalog: Catalog, source: str) -> list[tuple[str, Statement]]:
    """(place, statement) by the source's own section numbers, where it has them; else in the order of the course."""
    rows = [(s["where"], st) for st in catalog.statements.values() for s in st.sources if s["source"] == source]
    return sorted(rows, key=lambda row: _section_numbers(row[0]))


def _read_notes(file: Path) -> dict[str, dict[str, Any]]:
    import yaml

    return yaml.safe_load(file.read_text(encoding="utf-8"))


def _section_place(where: str) -> str:
    """The number of the section that a place begins with, or its heading: what stands before a bracket or a comma."""
    number = re.match(r"\d+(\.\d+)*", where)
    return number.group() if number else re.split(r" ?[(/;,:]", where)[0].strip()


def _section_numbers(where: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", where)
    return tuple(int(part) for part in found.group().split(".")) if found else ()
