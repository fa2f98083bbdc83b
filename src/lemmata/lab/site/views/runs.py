"""Runs of the page: how one goes or went, its pictures, going on with it, and its checkpoint to take away."""

import tempfile
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from markupsafe import Markup

from lemmata.lab.site.figures import draw, figure_csv, figure_svg
from lemmata.lab.site.job import Job
from lemmata.lab.site.pages import page, render
from lemmata.lab.site.runs import Trained, find_run, pack_checkpoint

router = APIRouter()

LONGEST = 8 * 3600.0  # seconds of one training


@router.get("/runs/{run}")
async def run(request: Request, run: str) -> Response:
    """The page of one run, going on or over."""
    found = _find(run)
    command = f"lemmata predict {found.folder}"
    return page(request, "training.html", run=found, panel=panel(request, found), command=command)


@router.get("/runs/{run}/curve")
def curve(run: str) -> Response:
    """Its curves so far, as a part of the page."""
    return HTMLResponse(_curves(_find(run)))


@router.get("/runs/{run}/picture/{step:int}")
def picture(run: str, step: int) -> Response:
    """The picture of one step, as a part of the page."""
    drawn = _picture(_find(run), step)
    if not drawn:
        raise HTTPException(404, "there is no such picture")
    return HTMLResponse(drawn)


@router.get("/runs/{run}/picture/{step:int}.{kind}")
def picture_file(run: str, step: int, kind: str) -> Response:
    """The same as a file."""
    drawn = _find(run).picture(step)
    if drawn is None or kind not in ("csv", "svg"):
        raise HTTPException(404, "there is no such picture")
    text = figure_csv(drawn) if kind == "csv" else figure_svg(drawn.to_json())
    return Response(text, media_type={"csv": "text/csv", "svg": "image/svg+xml"}[kind])


@router.get("/runs/{run}/checkpoint")
def checkpoint(run: str) -> Response:
    """A zip that `lemmata predict` and `lemmata.load` take once it is unpacked."""
    found = _find(run)
    if not found.weights:
        raise HTTPException(404, "this run has no checkpoint yet")
    headers = {"content-disposition": f'attachment; filename="{found.name}.zip"'}
    return StreamingResponse(_packed(found), media_type="application/zip", headers=headers)


@router.post("/runs/{run}/resume")
async def resume(request: Request, run: str) -> Response:
    """Go on with a run that was stopped."""
    found = _find(run)
    if job_of(request, found.name):
        raise HTTPException(409, "this run goes on already")
    if not found.can_go_on:
        raise HTTPException(409, "this run is finished" if found.result else "this run has no checkpoint to go on from")
    return JSONResponse(begin(request, {"run": found.name, "resume": True}), 202)


def begin(request: Request, parameters: dict[str, Any]) -> dict[str, str]:
    """Start the job of a run and remember which it is."""
    job = request.app.state.jobs.start("train", parameters, LONGEST)
    _trainings(request)[parameters["run"]] = job.id
    return {"run": parameters["run"], "job": job.id}


def job_of(request: Request, run: str) -> Job | None:
    """The job that trains this run now or waits to."""
    job = request.app.state.jobs.get(_trainings(request).get(run, ""))
    return job if job and not job.over.is_set() else None


def panel(request: Request, run: Trained) -> Markup:
    """How a run goes or went, as a part of a page."""
    job, last = job_of(request, run.name), request.app.state.jobs.get(_trainings(request).get(run.name, ""))
    pictures = run.pictures
    context = {
        "run": run,
        "job": job.id if job else "",
        "fault": last.message if last and last.state == "failed" else "",
        "state": "training" if job else "finished" if run.result else "stopped",
        "curves": _curves(run),
        "pictures": pictures,
        "picture": _picture(run, pictures[-1]) if pictures else "",
        "live": bool(getattr(request.state, "token", None)),
    }
    return Markup(render("run.html", **context))


def _find(name: str) -> Trained:
    found = find_run(name)
    if found is None:
        raise HTTPException(404, "there is no run of this name")
    return found


def _curves(run: Trained) -> Markup:
    return Markup("").join(draw(drawn) for drawn in run.curves())


def _picture(run: Trained, step: int) -> Markup:
    drawn = run.picture(step)
    return draw(drawn, f"/runs/{run.name}/picture/{step}") if drawn else Markup("")


def _trainings(request: Request) -> dict[str, str]:
    state = request.app.state
    if not hasattr(state, "trainings"):
        state.trainings = {}
    return state.trainings


def _packed(run: Trained) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as file:
        pack_checkpoint(run, file)
        file.seek(0)
        while chunk := file.read(1 << 16):
            yield chunk
