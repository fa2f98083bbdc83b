"""One statement: what it says, how it was judged, what the sources misprint, and the slider that breaks it."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse

import lemmata
from lemmata import catalog
from lemmata.catalog import ClaimEntry
from lemmata.catalog.statements import Statement
from lemmata.lab.site.code import coloured, source_of
from lemmata.lab.site.dials import guess, scale
from lemmata.lab.site.figures import figure_csv, figure_svg
from lemmata.lab.site.job import JobError
from lemmata.lab.site.knowledge import SETTLEMENTS, Snapshot, known
from lemmata.lab.site.pages import evidence_line, page
from lemmata.lab.site.views.probe import dials_of, probed
from lemmata.lab.words import sharpness_words

router = APIRouter()

PATIENCE = 2.0  # seconds that a page waits for a child process to tell what can be turned
OUTCOMES = {True: "rejected", False: "accepted", None: "not run"}


@router.get("/claim/{id}")
async def show(
    request: Request,
    id: str,
    lie: Annotated[int | None, Query(ge=0, le=999)] = None,
    value: Annotated[float | None, Query(allow_inf_nan=False, ge=-1e16, le=1e16)] = None,
) -> HTMLResponse:
    """The page of one statement; with `lie` and `value`, one of its sliders at that place."""
    found = catalog.load()
    if id not in found.statements:
        raise HTTPException(404, "there is no statement of this name")
    dials, shown = [], None
    if request.state.live and (claim := found.claims.get(id)):
        dials = await _asked(request, claim)
        shown = await _probed(request, id, lie, value) if lie is not None and value is not None else None

    def made() -> HTMLResponse:
        return page(request, "claim.html", **claim_context(known(), id, dials), lie=lie, shown=shown)

    return await run_in_threadpool(made)


@router.get("/claim/{id}/figure.csv")
def csv_file(id: str) -> Response:
    """The data of the figure."""
    return _attached(figure_csv(_figure(id)), "text/csv; charset=utf-8", f"{id}.csv")


@router.get("/claim/{id}/figure.svg")
def svg_file(id: str) -> Response:
    """The figure as a drawing by itself."""
    return _attached(figure_svg(_figure(id)), "image/svg+xml", f"{id}.svg")


def claim_context(snapshot: Snapshot, id: str, dials: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything the page of a statement shows. `dials`: what can be turned, where its source does not tell."""
    statement, claim = snapshot.catalog.statements[id], snapshot.catalog.claims.get(id)
    result, lies = snapshot.results.get(id), lie_views(snapshot, claim, dials) if claim else []
    errata = [
        {
            "erratum": erratum,
            "standing": (standing := snapshot.standing(id, erratum)),
            "meaning": SETTLEMENTS[standing],
            "source": snapshot.sources.get(erratum.source, {}),
            "lies": [lie for lie in lies if lie["printed"] == erratum.key],
        }
        for erratum in statement.errata
    ]
    order = list(snapshot.statements())
    place = order.index(statement)
    return {
        "statement": statement,
        "claim": claim,
        "verdict": snapshot.verdict(id),
        "result": result,
        "figure": (result.evidence or {}).get("figure") if result else None,
        "errata": errata,
        "lies": [lie for lie in lies if lie["printed"] not in {e.key for e in statement.errata}],
        "places": _places(snapshot, statement),
        "code": _code(claim) if claim else None,
        "previous": order[place - 1] if place else None,
        "next": order[place + 1] if place + 1 < len(order) else None,
        "systems": [entry for entry in snapshot.catalog.systems.values() if id in entry.claims],
        "command": f"lemmata show {id}",
    }


def lie_views(snapshot: Snapshot, claim: ClaimEntry, dials: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """Each lie with its outcome and, where it can be turned, the dial for it."""
    result = snapshot.results.get(claim.id)
    views = []
    for index, lie in enumerate(claim.lies):
        heard = result.lies[index] if result and index < len(result.lies) else None
        dial = guess(lie) or (dials[index] if dials and index < len(dials) else None)
        view = {key: getattr(lie, key) for key in ("text", "printed", "argument", "truth", "value", "raises")}
        view |= {"index": index, "outcome": OUTCOMES[heard["rejected"] if heard else None]}
        view |= {"how": heard["how"] if heard else "", "kind": dial["kind"] if dial else ""}
        view |= {"notices": sharpness_words(heard.get("notices")) if heard else ""}
        views.append(view | {"dial": scale(dial) if dial else None})
    return views


def truth_shown(snapshot: Snapshot, lie: dict[str, Any], id: str) -> dict[str, Any] | None:
    """A slider before it is touched: at the truth, with the verdict that is remembered."""
    result = snapshot.results.get(id)
    if not result or not result.evidence or not lie["dial"]:
        return None
    word = "still holds" if result.evidence["holds"] else "rejected"
    facts = {"value": lie["dial"]["truth"], "outcome": word, "evidence": evidence_line(result.evidence)}
    return facts | {"figure": result.evidence.get("figure")}


async def _asked(request: Request, claim: ClaimEntry) -> list[dict[str, Any]]:
    """The dials from the code itself, if some lie's source does not tell; nothing while no child is ready."""
    if all(guess(lie) for lie in claim.lies):
        return []
    try:
        return await asyncio.wait_for(dials_of(request, claim.id), PATIENCE)
    except (TimeoutError, JobError):
        return []


async def _probed(request: Request, id: str, lie: int, value: float) -> dict[str, Any] | None:
    """A slider where the address puts it, for a browser without JavaScript and for a link that was passed on."""
    try:
        return await probed(request, id, lie, value)
    except (HTTPException, JobError) as problem:
        told = problem.detail if isinstance(problem, HTTPException) else str(problem)
        return {"value": value, "outcome": "undecided", "evidence": told, "figure": None}


def _places(snapshot: Snapshot, statement: Statement) -> list[dict[str, Any]]:
    """Source by source, where it says this."""
    found: dict[str, list[str]] = {}
    for place in statement.sources:
        found.setdefault(place["source"], []).append(place["where"])
    return [{"code": code, "where": where, **snapshot.sources.get(code, {})} for code, where in found.items()]


def _code(claim: ClaimEntry) -> dict[str, Any]:
    source, first, last = source_of(claim)
    root = Path(lemmata.__file__).parents[1]
    path = claim.path.relative_to(root) if root in claim.path.parents else Path(claim.path.name)
    return {"html": coloured(source), "path": path.as_posix(), "first": first, "last": last}


def _figure(id: str) -> dict[str, Any]:
    result = known().results.get(id)
    found = (result.evidence or {}).get("figure") if result else None
    if not found:
        raise HTTPException(404, "there is no figure: the claim was not judged yet, or has none")
    return found


def _attached(text: str, kind: str, name: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
