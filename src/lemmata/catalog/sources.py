"""The sets of notes that everything comes from, and what each of them states."""

import re
from pathlib import Path

from lemmata.catalog.entries import Catalog
from lemmata.catalog.statements import Statement

__all__ = ["cited", "sources"]


def sources() -> dict[str, dict[str, str]]:
    """Key -> title and author of every set of notes."""
    import yaml

    return yaml.safe_load(Path(__file__).parents[1].joinpath("sources.yaml").read_text(encoding="utf-8"))


def cited(catalog: Catalog, source: str) -> list[tuple[str, Statement]]:
    """(place, statement) by the source's own section numbers, where it has them; else in the order of the course."""
    rows = [(s["where"], st) for st in catalog.statements.values() for s in st.sources if s["source"] == source]
    return sorted(rows, key=lambda row: _section(row[0]))


def _section(where: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", where)
    return tuple(int(part) for part in found.group().split(".")) if found else ()
