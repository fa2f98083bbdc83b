"""The atlas: every statement in the order of the course, with search and filters, all of it in the address."""

import contextlib
from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from lemmata import catalog as catalogs
from lemmata.catalog.search import fits as found_in
from lemmata.catalog.search import statement_text, words_of
from lemmata.catalog.statements import KINDS, Statement
from lemmata.judge.verdict import VERDICTS
from lemmata.lab.site.knowledge import Snapshot, known
from lemmata.lab.site.pages import page

router = APIRouter()

# With so few left, each is shown with its formula; a list of 700 formulas would be slow and tell nothing.
IN_FULL = 60
Word = Annotated[str, Query(max_length=200)]


@router.get("/atlas")
def atlas(
    request: Request, q: Word = "", chapter: Word = "", kind: Word = "", source: Word = "", verdict: Word = ""
) -> HTMLResponse:
    """The whole list, or what the filters leave of it."""
    wanted = {"q": q, "chapter": chapter, "kind": kind, "source": source, "verdict": verdict}
    return page(request, "atlas.html", **atlas_context(known(), wanted))


def atlas_context(snapshot: Snapshot, wanted: dict[str, str]) -> dict[str, Any]:
    """Everything the atlas shows for these filters."""
    found = [statement for statement in snapshot.statements() if fits(snapshot, statement, wanted)]
    narrowed = any(wanted.values())
    return {
        "wanted": wanted,
        "narrowed": narrowed,
        "found": len(found),
        "total": len(snapshot.catalog.statements),
        "in_full": narrowed and len(found) <= IN_FULL,
        "chapters": chapter_views(snapshot, found),
        "choices": {
            "chapter": {name: name.capitalize() for name in snapshot.chapters()},
            "kind": {kind: kind for kind in KINDS},
            "source": {code: f"{code} {note['title']}" for code, note in snapshot.sources.items()},
            "verdict": {word: word for word in [*VERDICTS, "not judged"]},
        },
        "command": " ".join(["lemmata claims", *filter(None, (wanted["chapter"], wanted["q"]))]),
    }


def fits(snapshot: Snapshot, statement: Statement, wanted: dict[str, str]) -> bool:
    """Whether a statement passes every filter; each word of the search must occur somewhere in it."""
    text = statement_text(snapshot.catalog, statement.id)
    return (
        wanted["chapter"] in ("", statement.chapter)
        and wanted["kind"] in ("", statement.kind)
        and (not wanted["source"] or any(place["source"] == wanted["source"] for place in statement.sources))
        and wanted["verdict"] in ("", snapshot.verdict(statement.id))
        and found_in(words_of(wanted["q"]), text)
    )


def chapter_views(snapshot: Snapshot, statements: list[Statement]) -> list[dict[str, Any]]:
    """The chapters of these statements with their counts."""
    chapters: dict[str, list[dict[str, Any]]] = {}
    for statement in statements:
        settled = [snapshot.settled(statement.id, erratum) for erratum in statement.errata]
        entry = {"statement": statement, "verdict": snapshot.verdict(statement.id), "settled": settled}
        chapters.setdefault(statement.chapter, []).append(entry)
    return [_chapter_entry(name, entries) for name, entries in chapters.items()]


def _chapter_entry(name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    tally = Counter(entry["verdict"] for entry in entries)
    settled = [word for entry in entries for word in entry["settled"]]
    number = catalogs.CHAPTERS.index(name) + 1 if name in catalogs.CHAPTERS else ""
    counts = {verdict: tally[verdict] for verdict in [*VERDICTS, "not judged"] if tally[verdict]}
    remarks = {"settled": sum(word != "open" for word in settled), "all": len(settled)}
    rooms = catalogs.by_room(entries, lambda entry: entry["statement"].room)
    found = {"name": name, "number": number, "entries": entries, "rooms": rooms}
    return found | {"counts": counts, "remarks": remarks}


def warm() -> None:
    """Do once what the first reader, and the first search, would wait for: two seconds with 700 statements."""
    with contextlib.suppress(Exception):  # the first page will say what is wrong; nobody need if the lab is closing
        catalog = known().catalog
        for id in catalog.statements:
            statement_text(catalog, id)
