"""The slider: one check, run at once with one argument at a value between truth and lie."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from lemmata import catalog
from lemmata.catalog import ClaimEntry
from lemmata.lab.site.figures import draw
from lemmata.lab.site.pages import evidence_line, mark
from lemmata.lab.site.rights import needs_cookie

router = APIRouter()

# How long one run of the check may take at most, by the cost of the whole claim; the first one imports it, too.
SECONDS = {"instant": 20.0, "quick": 30.0, "long": 120.0}


class Probing(BaseModel):
    """Which lie, at which value; on a lie that is no number 0 stands for the truth and 1 for the lie."""

    model_config = ConfigDict(extra="forbid", strict=True)
    lie: Annotated[int, Field(ge=0, le=999)]
    value: Annotated[float, Field(allow_inf_nan=False, ge=-1e16, le=1e16)]
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


@router.get("/claim/{id}/dials", dependencies=[Depends(needs_cookie)])
async def dials(request: Request, id: str) -> Response:
    """What there is to turn: for each lie its kind ("whole", "real", "switch"), truth, lie and bounds."""
    return JSONResponse(await dials_of(request, id))


@router.post("/claim/{id}/probe")
async def probe(request: Request, id: str, asked: Probing) -> Response:
    """Run the check; the answer has the pieces that the page shows: verdict mark, line of evidence, figure."""
    found = await probed(request, id, asked.lie, asked.value, asked.seed)
    drawn = str(await run_in_threadpool(draw, found["figure"])) if found["figure"] else ""
    return JSONResponse(found | {"verdict": str(mark(found["outcome"])), "figure": drawn})


async def dials_of(request: Request, id: str) -> list[dict[str, Any]]:
    """The dials of a claim's lies in their order, asked once of the code itself.

    Whoever gives up waiting does not end the question: that would cost a child process, and the next one asks again.
    """
    claim, asked = _claim(id), _asked(request)
    if id not in asked or (asked[id].done() and (asked[id].cancelled() or asked[id].exception())):
        asked[id] = asyncio.create_task(request.app.state.jobs.call("probe", {"id": id}, SECONDS[claim.cost]))
    found = await asyncio.shield(asked[id])
    return found["dials"]


async def probed(request: Request, id: str, lie: int, value: float, seed: int = 0) -> dict[str, Any]:
    """What the check finds: "still holds", "rejected" or "undecided", one line of evidence, the data of a figure."""
    claim = _claim(id)
    asked = {"id": id, "lie": lie, "value": value, "seed": seed}
    found = await request.app.state.jobs.call("probe", asked, SECONDS[claim.cost])
    if "problem" in found:
        raise HTTPException(422, found["problem"])
    evidence = found["evidence"]
    line = found["how"] if evidence is None or evidence["weak"] else evidence_line(evidence)
    shown = {"evidence": line, "figure": evidence and evidence["figure"]}
    return shown | {key: found[key] for key in ("outcome", "value", "seconds")}


def _claim(id: str) -> ClaimEntry:
    claim = catalog.load().claims.get(id)
    if claim is None:
        raise HTTPException(404, "there is no claim of this name that can be probed")
    return claim


def _asked(request: Request) -> dict[str, "asyncio.Task[dict[str, Any]]"]:
    state = request.app.state
    if not hasattr(state, "dials"):
        state.dials = {}
    return state.dials
