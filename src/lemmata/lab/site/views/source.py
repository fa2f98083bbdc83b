"""One source: every statement it makes, in its own order, with verdicts and remarks; and the list of sources."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse

from lemmata.catalog.sources import cited
from lemmata.lab.site.knowledge import Snapshot, known
from lemmata.lab.site.pages import page

router = APIRouter()


@router.get("/source")
def sources(request: Request) -> HTMLResponse:
    """The list of sources."""
    return page(request, "sources.html", **sources_context(known()))


@router.get("/source/{code}")
def source(request: Request, code: str) -> HTMLResponse:
    """One source from its beginning to its end."""
    snapshot = known()
    if code not in snapshot.sources:
        raise HTTPException(404, "there is no source of this number")
    return page(request, "source.html", **source_context(snapshot, code))


def sources_context(snapshot: Snapshot) -> dict[str, Any]:
    """Everything the list shows."""
    rows = [
        {
            "code": code,
            **note,
            "statements": len({statement.id for _, statement in cited(snapshot.catalog, code)}),
            "remarks": sum(erratum.source == code for _, erratum in snapshot.errata()),
        }
        for code, note in snapshot.sources.items()
    ]
    return {"rows": rows, "command": "lemmata source"}


def source_context(snapshot: Snapshot, code: str) -> dict[str, Any]:
    """Everything the page of one source shows."""
    rows = []
    for where, statement in cited(snapshot.catalog, code):
        errata = [(erratum, snapshot.standing(statement.id, erratum)) for erratum in statement.errata]
        rows.append(
            {
                "where": where if not rows or rows[-1]["place"] != where else "",
                "place": where,
                "statement": statement,
                "again": any(row["statement"].id == statement.id for row in rows),  # said in two places
                "verdict": snapshot.verdict(statement.id),
                "errata": [(erratum, standing) for erratum, standing in errata if erratum.source == code],
            }
        )
    return {"code": code, "note": snapshot.sources[code], "rows": rows, "command": f"lemmata source {code}"}
