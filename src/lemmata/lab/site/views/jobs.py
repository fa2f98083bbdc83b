"""Jobs as the page sees them: judging a claim again, the news of a job as a stream, and stopping it."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from lemmata import catalog
from lemmata.lab.site.job import Job, JobFailed
from lemmata.lab.site.rights import needs_token, ticketed

router = APIRouter()

ALMOST_DONE = 1.0  # seconds granted to work that nobody waits for any more
# What a stream tells of a result; the rest is on the page that is fetched then.
TOLD = ("verdict", "run", "scores", "stopped")


class Judging(BaseModel):
    """How to judge; a long claim must be asked for by name, since it takes minutes."""

    model_config = ConfigDict(extra="forbid", strict=True)
    seed: Annotated[int, Field(ge=0, le=0)] = 0  # pages show the verdict under seed 0
    long: bool = False


@router.post("/claim/{id}/judge")
async def judge(request: Request, id: str, asked: Judging) -> Response:
    """Judge a claim again: the truth and every lie, kept as `lemmata check --fresh` keeps it."""
    claim = catalog.load().claims.get(id)
    if claim is None:
        raise HTTPException(404, "there is no claim of this name that can be judged")
    if claim.cost == "long" and not asked.long:
        raise HTTPException(409, "a long claim, which takes minutes: ask for it with long = true")
    job = request.app.state.jobs.start("judge", {"id": id, "seed": asked.seed})
    return JSONResponse(started(request, job), 202)


@router.get("/jobs/{job}/events", dependencies=[Depends(needs_token)])
async def events(request: Request, job: str, last_event_id: Annotated[str, Header(max_length=40)] = "0") -> Response:
    """What a job tells, from the beginning or after the event that the browser saw last."""
    found = _find_job(request, job)
    after = int(last_event_id) if last_event_id.isascii() and last_event_id.isdigit() else 0
    if found.over.is_set() and (not found.events or found.events[-1]["id"] <= after):
        return Response(status_code=204)  # nothing will come: the browser must not ask again
    return StreamingResponse(_event_stream(found, after), media_type="text/event-stream")


@router.post("/jobs/{job}/cancel")
async def cancel(request: Request, job: str) -> Response:
    """Stop a job and wait until its process is gone."""
    found = _find_job(request, job)
    await request.app.state.jobs.cancel(found.id)
    return JSONResponse({"state": found.state})


def started(request: Request, job: Job) -> dict[str, str]:
    """What a page is told of a job: its name, and where its news are; EventSource sends no token, so with a ticket."""
    return {"job": job.id, "events": ticketed(request, f"/jobs/{job.id}/events")}


async def while_wanted(request: Request, answer: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """The answer of a `Jobs.call`, ended soon after the browser that asked has gone or cancelled.

    Not at once: what is nearly done costs less than the process that would be ended with it.
    """
    task, gone = asyncio.ensure_future(answer), asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=ALMOST_DONE)
        if not task.done():
            raise JobFailed("cancelled")
        return await task
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _find_job(request: Request, id: str) -> Job:
    found = request.app.state.jobs.get(id)
    if found is None:
        raise HTTPException(404, "there is no such job; it may have ended long ago")
    return found


async def _event_stream(job: Job, after: int) -> AsyncIterator[str]:
    async for event in job.follow(after):
        told = {key: value for key, value in event.items() if key != "result"}
        told |= {"result": _short_result(event["result"])} if event.get("result") else {}
        yield f"id: {event['id']}\ndata: {json.dumps(told)}\n\n"


def _short_result(result: dict[str, Any]) -> dict[str, Any]:
    return {key: result[key] for key in TOLD if key in result}
