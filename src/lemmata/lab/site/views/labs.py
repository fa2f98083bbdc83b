"""The labs: a list, and for each a page whose whole state is its address. Their work is done in child processes.

Nothing here knows any lab: see `lemmata.lab.site.labs` for what makes one.
"""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from lemmata.lab.site.job import JobError
from lemmata.lab.site.knowledge import known
from lemmata.lab.site.labs import Lab, labs
from lemmata.lab.site.pages import page
from lemmata.lab.site.rights import for_a_reader, needs_token
from lemmata.lab.site.views.jobs import started, while_wanted

router = APIRouter()

PATIENCE = 2.0  # seconds that a page waits for its first picture; the script asks again
FOR_THUMBNAIL = 0.3  # seconds; the script asks again, since a browser has few connections and other pages need them
LONGEST = 180.0  # seconds of one training

Word = Annotated[str, StringConstraints(max_length=40)]
Value = Annotated[str, StringConstraints(max_length=6000)]


class Asked(BaseModel):
    """The state of a lab, as in its address; the lab's own model says what may stand in it.

    While a hand drags, `brief` names the one drawing that is looked at.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    state: Annotated[dict[Word, Value], Field(max_length=40)]
    brief: Literal["", "wide", "narrow"] = ""


@router.get("/labs")
def listing(request: Request) -> HTMLResponse:
    """Every lab there is."""
    return page(request, "labs.html", labs=list(labs().values()), command="lemmata serve")


@router.get("/labs/{name}")
async def lab(request: Request, name: str) -> HTMLResponse:
    """One lab in the state of its address. Without that, or where it cannot be shown, how it begins, found once."""
    found, given = _find_lab(name), dict(request.query_params)
    patience = PATIENCE if request.state.live else found.seconds  # no script of a reader's page may ask again
    shown = await for_a_reader(request, lambda: _first_figure(request, found, given, patience)) if given else {}
    if not given or (shown is None and not request.state.live):
        shown, given = await _first_figure(request, found, {}), {}
    shown = shown or {}
    if "problem" in shown:  # of the address: the lab begins as usual, and says so
        shown, given = (await _first_figure(request, found, {}) or {}) | {"problem": shown["problem"]}, {}
    return await run_in_threadpool(lambda: page(request, f"lab_{name}.html", **lab_context(found, shown, given)))


@router.get("/labs/{name}/thumbnail.svg")
async def thumbnail(request: Request, name: str) -> Response:
    """A small picture of a lab, drawn by the library once for each start of the server; 202 while it is drawn."""
    found = _find_lab(name)
    shown = await _kept_answer(request, f"{name} small", found, dict(found.thumbnail), "thumbnail", FOR_THUMBNAIL)
    if not shown:
        return Response(status_code=202, headers={"cache-control": "no-store"})
    if "thumbnail" not in shown:
        raise HTTPException(404, "there is no picture of this lab")
    headers = {"cache-control": "max-age=600"}
    return Response(shown["thumbnail"], media_type="image/svg+xml", headers=headers)


@router.post("/labs/{name}/show")
async def show(request: Request, name: str, asked: Asked) -> Response:
    """What a state looks like, its figures drawn. Whoever does not wait for it any more ends it."""
    found = _find_lab(name)
    told = {"lab": found.name, "state": asked.state, "brief": asked.brief}
    shown = await while_wanted(request, request.app.state.jobs.call("lab", told, found.seconds))
    if "problem" in shown:
        raise HTTPException(422, shown["problem"])
    return JSONResponse(shown)


@router.post("/labs/{name}/run")
async def run(request: Request, name: str, asked: Asked) -> Response:
    """Start what takes longer; /jobs/JOB/events tells of it."""
    told = {"lab": _find_lab(name).name, "state": asked.state, "brief": asked.brief, "run": True}
    return JSONResponse(started(request, request.app.state.jobs.start("lab", told, LONGEST)), 202)


@router.get("/labs/{name}/jobs/{job}/figures", dependencies=[Depends(needs_token)])
def figures(request: Request, name: str, job: str) -> Response:
    """The figures of a job that is over, whole."""
    found = request.app.state.jobs.get(job)
    if found is None or found.kind != "lab" or found.parameters["lab"] != _find_lab(name).name:
        raise HTTPException(404, "there is no such job; it may have ended long ago")
    return JSONResponse({key: (found.result or {}).get(key, {}) for key in ("figures", "curves")})


def lab_context(found: Lab, shown: dict[str, Any], state: dict[str, str] | None = None) -> dict[str, Any]:
    """Everything the page of a lab shows; without a picture if there is none yet."""
    now = known()
    statements = [now.catalog.statements[id] for id in found.claims if id in now.catalog.statements]
    return {
        "lab": found,
        "figures": {name: Markup(drawn) for name, drawn in shown.get("figures", {}).items()},
        "still": Markup(shown.get("still", "")),
        "facts": {key: value for key, value in shown.items() if key not in ("figures", "still", "problem")},
        "problem": shown.get("problem", ""),
        "claims": [{"statement": each, "verdict": now.verdict(each.id)} for each in statements],
        "systems": [now.catalog.systems[id] for id in found.systems if id in now.catalog.systems],
        "state": state or {},
        "command": found.command,
        "stated": found.chapter in now.chapters(),  # else the atlas has nothing of it
    }


async def _first_figure(
    request: Request, found: Lab, given: dict[str, str], patience: float = PATIENCE
) -> dict[str, Any] | None:
    """The picture that a page comes with, if it is there soon; how a lab begins is found once."""
    if len(given) > 40 or any(len(key) > 40 or len(value) > 6000 for key, value in given.items()):
        return {"problem": "this address is too long for a lab"}
    return await _kept_answer(request, "" if given else found.name, found, given, "still", patience)


async def _kept_answer(
    request: Request, name: str, found: Lab, state: dict[str, str], what: str, patience: float = PATIENCE
) -> dict[str, Any] | None:
    """An answer that is kept under a name, if there is one. Whoever leaves does not end the question."""
    kept = _lab_tasks(request)
    task = kept.get(name) if name else None
    if task is None or (task.done() and (task.cancelled() or task.exception())):
        told = {"lab": found.name, "state": state, what: True}
        task = asyncio.create_task(request.app.state.jobs.call("lab", told, found.seconds))
        kept[name or str(id(task))] = task  # what nobody holds may vanish before it is done
        if not name:
            task.add_done_callback(lambda done: kept.pop(str(id(done)), None))
    await asyncio.wait([task], timeout=patience)
    if not task.done() or task.cancelled() or isinstance(task.exception(), JobError):
        return None
    return task.result()


def _find_lab(name: str) -> Lab:
    found = labs().get(name)
    if found is None:
        raise HTTPException(404, "there is no lab of this name")
    return found


def _lab_tasks(request: Request) -> "dict[str, asyncio.Task[dict[str, Any]]]":
    state = request.app.state
    if not hasattr(state, "labs"):
        state.labs = {}
    return state.labs
