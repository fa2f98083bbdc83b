"""Runs of the page: how one goes or went, its pictures, going on with it, and its checkpoint to take away."""

from typing import Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from markupsafe import Markup

from lemmata.lab.site.figures import draw
from lemmata.lab.site.job import Job
from lemmata.lab.site.pages import page, render
from lemmata.lab.site.rights import needs_cookie, needs_token, ticketed
from lemmata.lab.site.runs import NAME, Trained, find_run, packed_checkpoint
from lemmata.lab.site.views.jobs import started

router = APIRouter()

LONGEST = 8 * 3600.0  # seconds of one training
NO_RUN = "there is no run of this name"
OWN = [Depends(needs_token)]


@router.get("/runs/{run}", dependencies=[Depends(needs_cookie)])
def run(request: Request, run: str) -> Response:
    """The page of one run. A browser that opens an address shows no token: what is the user's own comes after it."""
    if not NAME.fullmatch(run):
        raise HTTPException(404, NO_RUN)
    return page(request, "training.html", run=run)


@router.get("/runs/{run}/panel", dependencies=OWN)
def panel(request: Request, run: str) -> Response:
    """How a run goes or went, as a part of a page."""
    return HTMLResponse(_run_panel(request, _find_run(run)))


@router.get("/runs/{run}/curve", dependencies=OWN)
def curve(run: str) -> Response:
    """Its curves so far, as a part of the page."""
    return HTMLResponse(_run_curves(_find_run(run)))


@router.get("/runs/{run}/picture/{step:int}", dependencies=OWN)
def picture(run: str, step: int) -> Response:
    """The picture of one step, as a part of the page."""
    drawn = _run_image(_find_run(run), step)
    if not drawn:
        raise HTTPException(404, "there is no such picture, or none that can be drawn")
    return HTMLResponse(drawn)


@router.get("/runs/{run}/checkpoint", dependencies=OWN)
def checkpoint(run: str) -> Response:
    """A zip that `lemmata predict` and `lemmata.load` take once it is unpacked."""
    found = _find_run(run)
    if not found.weights:
        raise HTTPException(404, "this run has no checkpoint yet")
    headers = {"content-disposition": f'attachment; filename="{found.name}.zip"'}
    return StreamingResponse(packed_checkpoint(found), media_type="application/zip", headers=headers)


@router.post("/runs/{run}/resume")
async def resume(request: Request, run: str) -> Response:
    """Go on with a run that was stopped."""
    found = await run_in_threadpool(_find_run, run)
    able = await run_in_threadpool(lambda: found.can_go_on)
    if job_of(request, found.name):  # from here on without a pause, or two could go on
        raise HTTPException(409, "this run goes on already")
    if not able:
        raise HTTPException(409, "this run is finished" if found.result else "this run has no checkpoint to go on from")
    return JSONResponse(begin(request, {"run": found.name, "resume": True}), 202)


def begin(request: Request, parameters: dict[str, Any]) -> dict[str, str]:
    """Start the job of a run and remember which it is."""
    job = request.app.state.jobs.start("train", parameters, LONGEST)
    _training_jobs(request)[parameters["run"]] = job.id
    return {"run": parameters["run"], **started(request, job)}


def job_of(request: Request, run: str) -> Job | None:
    """The job that trains this run now or waits to."""
    job = request.app.state.jobs.get(_training_jobs(request).get(run, ""))
    return job if job and not job.over.is_set() else None


def _run_panel(request: Request, run: Trained) -> str:
    job, last = job_of(request, run.name), request.app.state.jobs.get(_training_jobs(request).get(run.name, ""))
    pictures = run.pictures
    context = {
        "run": run,
        "job": started(request, job) if job else {"job": "", "events": ""},
        "checkpoint": ticketed(request, f"/runs/{run.name}/checkpoint"),
        "fault": last.message if last and last.state == "failed" else "",
        "state": "training" if job else "finished" if run.result else "stopped",
        "curves": _run_curves(run),
        "pictures": pictures,
        "picture": _run_image(run, pictures[-1]) if pictures else "",
    }
    return render("run.html", **context)


def _find_run(name: str) -> Trained:
    found = find_run(name)
    if found is None:
        raise HTTPException(404, NO_RUN)
    return found


def _run_curves(run: Trained) -> Markup:
    return Markup("").join(draw(drawn) for drawn in run.curves())


def _run_image(run: Trained, step: int) -> Markup:
    try:
        return draw(found) if (found := run.picture(step)) else Markup("")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # a file that somebody else wrote
        return Markup("")


def _training_jobs(request: Request) -> dict[str, str]:
    state = request.app.state
    if not hasattr(state, "trainings"):
        state.trainings = {}
    return state.trainings
