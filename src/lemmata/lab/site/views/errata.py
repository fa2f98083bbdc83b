"""Every remark on the sources: what is printed beside what is right, and how the remark was settled."""

import csv
import io
from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from lemmata.catalog.search import fits, searchable, words_of
from lemmata.catalog.settlement import contract
from lemmata.catalog.statements import Erratum, Statement
from lemmata.lab.site.knowledge import SETTLEMENTS, Snapshot, known
from lemmata.lab.site.pages import page
from lemmata.lab.site.verdicts import shown

router = APIRouter()

Word = Annotated[str, Query(max_length=200)]


@router.get("/errata")
def errata(request: Request, q: Word = "", source: Word = "", settled: Word = "") -> HTMLResponse:
    """The whole list, or what the filters leave of it."""
    return page(request, "errata.html", **errata_context(known(), {"q": q, "source": source, "settled": settled}))


@router.get("/errata.csv")
def errata_csv(q: Word = "", source: Word = "", settled: Word = "") -> Response:
    """The same as a table for a spreadsheet."""
    text = csv_text(known(), {"q": q, "source": source, "settled": settled})
    named = {"content-disposition": 'attachment; filename="lemmata-errata.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=named)


def errata_context(snapshot: Snapshot, wanted: dict[str, str]) -> dict[str, Any]:
    """Everything the page shows for these filters."""
    found = chosen(snapshot, wanted)
    return {
        "wanted": wanted,
        "narrowed": any(wanted.values()),
        "total": sum(1 for _ in snapshot.errata()),
        "found": [_erratum_view(snapshot, statement, erratum) for statement, erratum in found],
        "tally": Counter(snapshot.standing(statement.id, erratum) for statement, erratum in found),
        "meanings": SETTLEMENTS,
        "choices": {
            "source": {code: f"{code} {note['title']}" for code, note in snapshot.sources.items()},
            "settled": {word: shown(word) for word in SETTLEMENTS},
        },
        "command": "lemmata errata" + (f" --source {wanted['source']}" if wanted["source"] in snapshot.sources else ""),
    }


def chosen(snapshot: Snapshot, wanted: dict[str, str]) -> list[tuple[Statement, Erratum]]:
    """The remarks that pass every filter."""
    words = words_of(wanted["q"])
    return [
        (statement, erratum)
        for statement, erratum in snapshot.errata()
        if wanted["source"] in ("", erratum.source)
        and wanted["settled"] in ("", snapshot.standing(statement.id, erratum))
        and fits(words, _search_text(statement, erratum))
    ]


def csv_text(snapshot: Snapshot, wanted: dict[str, str]) -> str:
    """The remarks as CSV, in the columns of `lemmata errata --json`."""
    rows = [contract(snapshot.catalog, snapshot.results, s.id, erratum) for s, erratum in chosen(snapshot, wanted)]
    text = io.StringIO()
    heads = ["id", "source", "number", "printed", "problem", "correct", "settled"]
    writer = csv.DictWriter(text, heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _erratum_view(snapshot: Snapshot, statement: Statement, erratum: Erratum) -> dict[str, Any]:
    result = snapshot.results.get(statement.id)
    heard = [lie for lie in result.lies if lie["printed"] == erratum.key and lie["rejected"]] if result else []
    standing = snapshot.standing(statement.id, erratum)
    return {"statement": statement, "erratum": erratum, "standing": standing, "how": heard[0]["how"] if heard else ""}


def _search_text(statement: Statement, erratum: Erratum) -> str:
    text = " ".join([statement.title, erratum.key, erratum.printed, erratum.problem, erratum.correct])
    return searchable(statement.id, text, "")
