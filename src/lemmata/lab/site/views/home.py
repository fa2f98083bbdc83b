"""The first page: what this is in ten seconds, and one misprint refuted while you watch."""

from collections import Counter
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from lemmata.lab.site.knowledge import Snapshot, known
from lemmata.lab.site.labs import labs
from lemmata.lab.site.pages import page
from lemmata.lab.site.views.atlas import chapter_views
from lemmata.lab.site.views.claim import lie_views, truth_shown

router = APIRouter()

# One sign turned, in the best known formula of its chapter, and quick to check.
SHOWCASE = "hopfield.energy"


@router.get("/")
def home(request: Request) -> HTMLResponse:
    """The first page."""
    return page(request, "home.html", **home_context(known()))


def home_context(snapshot: Snapshot) -> dict[str, Any]:
    """Everything the first page shows."""
    results = snapshot.results.values()
    standing = Counter(snapshot.standing(statement.id, erratum) for statement, erratum in snapshot.errata())
    return {
        "chapters": chapter_views(snapshot, snapshot.statements()),
        "statements": len(snapshot.catalog.statements),
        "judged": len(results),
        "holding": sum(result.verdict == "holds" for result in results),
        "lies": sum(len(claim.lies) for claim in snapshot.catalog.claims.values()),
        "remarks": standing.total(),
        "refuted": standing["refuted"],
        "systems": len(snapshot.catalog.systems),
        "experiments": len(labs()),
        "demo": demonstration(snapshot),
        "command": "lemmata check",
    }


def demonstration(snapshot: Snapshot) -> dict[str, Any] | None:
    """A misprint whose lie is a number: the chosen one, else the first there is."""
    for id in dict.fromkeys([SHOWCASE, *snapshot.catalog.claims]):
        claim, statement = snapshot.catalog.claims.get(id), snapshot.catalog.statements.get(id)
        if not claim or not statement:
            continue
        for lie in lie_views(snapshot, claim):
            erratum = next((e for e in statement.errata if e.key == lie["printed"]), None)
            if erratum and lie["kind"] == "real":
                facts = {"statement": statement, "erratum": erratum, "lie": lie}
                return facts | {"source": snapshot.sources.get(erratum.source), "shown": truth_shown(snapshot, id)}
    return None
