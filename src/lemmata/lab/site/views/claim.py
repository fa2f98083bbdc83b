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
from lemmata.catalog.dials import dials_in
from lemmata.catalog.statements import Statement
from lemmata.judge.dial import Dial
from lemmata.judge.evidence_words import sentence
from lemmata.lab.site.code import coloured, source_of
from lemmata.lab.site.dials import guess, reader_view
from lemmata.lab.site.figures import figure_csv, figure_svg
from lemmata.lab.site.job import JobError
from lemmata.lab.site.knowledge import SETTLEMENTS, Snapshot, known
from lemmata.lab.site.labs import labs
from lemmata.lab.site.pages import page
from lemmata.lab.site.rights import for_a_reader, needs_cookie
from lemmata.lab.site.views.slider import SECONDS, dials_of, probed, word_of
from lemmata.lab.words import seconds, sharpness_words

router = APIRouter()

Lie = Annotated[int | None, Query(ge=0, le=999)]
At = Annotated[int, Query(ge=0, le=999)]

PATIENCE = 2.0  # seconds that a page waits for a child process to tell what can be turned
LONGEST = "takes seconds to minutes"  # a long check that was never run on this machine
OUTCOMES = {True: "rejected", False: "accepted", None: "not run"}


@router.get("/claim/{id}")
async def show(
    request: Request,
    id: str,
    lie: Lie = None,
    at: At = 0,
    run: str = "",
) -> HTMLResponse:
    """The page of one statement; with `lie`, that one to turn, and with `at` at this position.

    A long check is run only where the form asks for it, by `run`.
    """
    found = catalog.load()
    if id not in found.statements:
        raise HTTPException(404, "there is no statement of this name")
    dials, shown, claim = [], None, found.claims.get(id)
    moved = claim is not None and lie is not None and at > 0
    if claim and (request.state.live or moved):
        dials = await for_a_reader(request, lambda: _asked_dials(request, claim)) or []
    if claim and lie is not None and moved:
        if claim.cost != "long" or run:
            shown = await for_a_reader(request, lambda: _probe_answer(request, id, lie, at))
        shown = shown or {"at": at, "outcome": "", "word": "", "evidence": "", "figure": None}

    def made() -> HTMLResponse:
        context = claim_context(known(), id, dials, lie, shown)
        return page(request, "claim.html", **context | {"reading": moved})

    return await run_in_threadpool(made)


@router.get("/claim/{id}/figure.csv")
async def csv_file(request: Request, id: str, lie: Lie = None, at: At = 0) -> Response:
    """The data of the figure; with `lie`, of that which the check draws at this position."""
    return _attached_response(
        figure_csv(await _claim_figure(request, id, lie, at)), "text/csv; charset=utf-8", f"{id}.csv"
    )


@router.get("/claim/{id}/figure.svg")
async def svg_file(request: Request, id: str, lie: Lie = None, at: At = 0) -> Response:
    """The same figure as a drawing by itself."""
    return _attached_response(figure_svg(await _claim_figure(request, id, lie, at)), "image/svg+xml", f"{id}.svg")


def claim_context(
    snapshot: Snapshot, id: str, dials: list[Dial], lie: int | None = None, shown: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Everything the page of a statement shows.

    `dials`: what can be turned, where its source does not tell; `lie`: which of them to begin with; `shown`: what the
    check found there, if it was run for this page.
    """
    statement, claim = snapshot.catalog.statements[id], snapshot.catalog.claims.get(id)
    result, lies = snapshot.results.get(id), lie_views(snapshot, claim, dials) if claim else []
    turned = [view for view in lies if view["dial"]]
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
    long = claim is not None and claim.cost == "long"
    expected = result.seconds / (1 + len(lies)) if result else SECONDS["long"] if long else 0.0
    order = list(snapshot.statements())
    place = order.index(statement)
    return {
        "statement": statement,
        "claim": claim,
        "verdict": snapshot.verdict(id),
        "result": result,
        "figure": (result.evidence or {}).get("figure") if result else None,
        "errata": errata,
        "lies": lies,
        "turned": turned,
        "chosen": (chosen := _chosen_lie(turned, lie)),
        "shown": _within_dial(chosen, lie, shown) or truth_shown(snapshot, id),
        "seconds_expected": expected,
        "takes": f"about {seconds(expected)}" if result and expected >= 1 else LONGEST if long else "",
        "reading": False,
        "places": _source_places(snapshot, statement),
        "code": _claim_code(claim) if claim else None,
        "previous": order[place - 1] if place else None,
        "next": order[place + 1] if place + 1 < len(order) else None,
        "systems": [entry for entry in snapshot.catalog.systems.values() if id in entry.claims],
        # A report of a part of the course has not all of them.
        "builds_on": [ground for each in statement.builds_on if (ground := snapshot.catalog.statements.get(each))],
        "leads_to": [snapshot.catalog.statements[each] for each in snapshot.catalog.built_on.get(id, ())],
        "labs": [lab for lab in labs().values() if id in lab.claims],
        "command": f"lemmata show {id}",
    }


def lie_views(snapshot: Snapshot, claim: ClaimEntry, dials: list[Dial] | None = None) -> list[dict[str, Any]]:
    """Each lie with its outcome and, where it can be turned, the dial for it."""
    result, statement = snapshot.results.get(claim.id), snapshot.catalog.statements[claim.id]
    in_formula = [name for name, _ in dials_in(statement.dialled)]
    colours = {name: k for k, name in enumerate(dict.fromkeys([*in_formula, *(lie.argument for lie in claim.lies)]))}
    views = []
    for index, lie in enumerate(claim.lies):
        heard = result.lies[index] if result and index < len(result.lies) else None
        dial = guess(lie) or (dials[index] if dials and index < len(dials) else None)
        view = {key: getattr(lie, key) for key in ("text", "printed", "argument", "truth", "value", "raises")}
        view |= {"index": index, "outcome": OUTCOMES[heard["rejected"] if heard else None]}
        view |= {"how": heard["how"] if heard else "", "kind": dial.kind if dial else ""}
        view |= {"notices": sharpness_words(heard.get("notices")) if heard else ""}
        view |= {"colour": colours.get(lie.argument, 0), "in_formula": lie.argument in in_formula}
        views.append(view | {"dial": reader_view(dial, lie, statement) if dial else None})
    return views


def truth_shown(snapshot: Snapshot, id: str) -> dict[str, Any] | None:
    """The stage before anything is touched: at the truth, with the verdict that is remembered."""
    result = snapshot.results.get(id)
    if not result or not result.evidence:
        return None
    word = "still holds" if result.evidence["holds"] else "rejected"
    said = word_of(snapshot.catalog.statements[id].kind, word, 0)
    facts = {"at": 0, "outcome": word, "word": said, "evidence": sentence(result.evidence)}
    return facts | {"figure": result.evidence.get("figure")}


def _chosen_lie(turned: list[dict[str, Any]], lie: int | None) -> dict[str, Any] | None:
    """The lie to begin with: the one asked for, else one that moves a number of the formula, else any."""
    asked = [view for view in turned if view["index"] == lie]
    moving = [view for view in turned if view["in_formula"] and view["kind"] != "switch"]
    return next(iter([*asked, *moving, *turned]), None)


def _within_dial(chosen: dict[str, Any] | None, lie: int | None, shown: dict[str, Any] | None) -> dict[str, Any] | None:
    """What is shown of a lie, unless it has no dial; where its dial has no such position, at the truth."""
    if not shown or chosen is None or chosen["index"] != lie:
        return None
    return shown if shown["at"] <= chosen["dial"]["last"] else shown | {"at": 0, "outcome": ""}


async def _asked_dials(request: Request, claim: ClaimEntry) -> list[Dial]:
    """The dials from the code itself, if some lie's source does not tell; nothing while no child is ready."""
    if all(guess(lie) for lie in claim.lies):
        return []
    try:
        return await asyncio.wait_for(dials_of(request, claim.id), PATIENCE)
    except (TimeoutError, JobError):
        return []


async def _probe_answer(request: Request, id: str, lie: int, at: int) -> dict[str, Any] | None:
    """A slider where the address puts it, for a browser without JavaScript and for a link that was passed on."""
    try:
        return await probed(request, id, lie, at)
    except (HTTPException, JobError) as problem:
        told = problem.detail if isinstance(problem, HTTPException) else str(problem)
        return {"at": at, "outcome": "", "word": "", "evidence": told, "figure": None}


def _source_places(snapshot: Snapshot, statement: Statement) -> list[dict[str, Any]]:
    """Source by source, where it says this."""
    found: dict[str, list[str]] = {}
    for place in statement.sources:
        found.setdefault(place["source"], []).append(place["where"])
    return [{"code": code, "where": where, **snapshot.sources.get(code, {})} for code, where in found.items()]


def _claim_code(claim: ClaimEntry) -> dict[str, Any]:
    source, first, last = source_of(claim)
    root = Path(lemmata.__file__).parents[1]
    path = claim.path.relative_to(root) if root in claim.path.parents else Path(claim.path.name)
    return {"html": coloured(source), "path": path.as_posix(), "first": first, "last": last}


async def _claim_figure(request: Request, id: str, lie: int | None, at: int) -> dict[str, Any]:
    if lie is not None:
        await needs_cookie(request)
        found = (await probed(request, id, lie, at))["figure"]
    else:
        result = (await run_in_threadpool(known)).results.get(id)
        found = (result.evidence or {}).get("figure") if result else None
    if not found:
        raise HTTPException(404, "there is no figure: the claim was not judged yet, or has none")
    return found


def _attached_response(text: str, kind: str, name: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
