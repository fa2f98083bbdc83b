"""The slider: one check, run at once with one argument at a position between truth and lie."""

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from lemmata import catalog
from lemmata.catalog import ClaimEntry
from lemmata.judge.dial import Dial
from lemmata.judge.evidence import failed_part
from lemmata.judge.evidence_words import sentence
from lemmata.lab.site.figures import sketch
from lemmata.lab.site.formulas import prose
from lemmata.lab.site.job import JobFailed
from lemmata.lab.site.knowledge import known
from lemmata.lab.site.rights import needs_cookie
from lemmata.lab.site.verdicts import mark, reason

router = APIRouter()

# How long one run of the check may take at most, by the cost of the whole claim; the first one imports it, too.
SECONDS = {"instant": 20.0, "quick": 30.0, "long": 120.0}


LISTENING = 0.2  # seconds between two looks at whether the reader is still there

Answer = dict[str, Any]


class Probing(BaseModel):
    """Which lie, at which position of its dial: 0 is the truth, the last one the lie."""

    model_config = ConfigDict(extra="forbid", strict=True)
    lie: Annotated[int, Field(ge=0, le=999)]
    at: Annotated[int, Field(ge=0, le=999)]
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0
    narrow: bool = False  # a figure for a phone


@router.get("/claim/{id}/dials", dependencies=[Depends(needs_cookie)])
async def dials(request: Request, id: str) -> Response:
    """What there is to turn: for each lie its kind ("whole", "real", "switch"), truth and lie."""
    return JSONResponse([asdict(dial) for dial in await dials_of(request, id)])


@router.post("/claim/{id}/probe")
async def probe(request: Request, id: str, asked: Probing) -> Response:
    """Run the check; the answer has the pieces that the page shows: verdict mark, line of evidence, figure."""
    found = await _while_asked(request, probed(request, id, asked.lie, asked.at, asked.seed))
    drawn, place = "", (asked.narrow, f"/claim/{id}/figure", f"lie={asked.lie}&at={asked.at}")
    if found["figure"]:
        drawn = str(await run_in_threadpool(sketch, found["figure"], *place))
    told = {"verdict": str(mark(found["outcome"], found["word"])), "evidence": str(prose(found["evidence"]))}
    return JSONResponse(found | told | {"figure": drawn})


async def dials_of(request: Request, id: str) -> list[Dial]:
    """The dials of a claim's lies in their order, asked once of the code itself.

    Whoever gives up waiting does not end the question: that would cost a child process, and the next one asks again.
    """
    claim, asked = _find_claim(id), _asked_dials(request)
    if id not in asked or (asked[id].done() and (asked[id].cancelled() or asked[id].exception())):
        asked[id] = asyncio.create_task(request.app.state.jobs.call("probe", {"id": id}, SECONDS[claim.cost]))
    found = await asyncio.shield(asked[id])
    return [Dial(**dial) for dial in found["dials"]]


async def probed(request: Request, id: str, lie: int, at: int, seed: int = 0) -> dict[str, Any]:
    """What the check finds: "still holds", "rejected" or "undecided", one line of evidence, the data of a figure."""
    claim = _find_claim(id)
    asked = {"id": id, "lie": lie, "at": at, "seed": seed, "part": await run_in_threadpool(_rejecting_judge, id, lie)}
    found = await request.app.state.jobs.call("probe", asked, SECONDS[claim.cost])
    if "problem" in found:
        raise HTTPException(422, found["problem"])
    evidence = found["evidence"]
    line = reason(found["how"]) if evidence is None or evidence["weak"] else sentence(evidence)
    word = word_of(catalog.load().statements[id].kind, found["outcome"], at)
    shown = {"evidence": line, "figure": evidence and evidence["figure"], "word": word}
    return shown | {"at": at} | {key: found[key] for key in ("outcome", "value", "seconds")}


async def _while_asked(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """What the work comes to; it ends with its child process when the reader lets go of the question."""
    task = asyncio.create_task(work)
    while not (await asyncio.wait({task}, timeout=LISTENING))[0]:
        if await request.is_disconnected():
            task.cancel()
            await asyncio.wait({task})
            raise JobFailed("stopped")
    return task.result()


def _rejecting_judge(id: str, lie: int) -> list[int]:
    """The judge that rejects this lie, as far as is remembered: its picture is the one to watch."""
    result = known().results.get(id)
    return failed_part(result.lies[lie].get("evidence")) if result and lie < len(result.lies) else []


def word_of(kind: str, outcome: str, at: int) -> str:
    """What the stage says in large letters: a statement that nobody moved "holds", a definition "matches" the code."""
    if at or outcome != "still holds":
        return outcome
    return "matches" if kind == "definition" else "holds"


def _find_claim(id: str) -> ClaimEntry:
    claim = catalog.load().claims.get(id)
    if claim is None:
        raise HTTPException(404, "there is no claim of this name that can be probed")
    return claim


def _asked_dials(request: Request) -> dict[str, "asyncio.Task[dict[str, Any]]"]:
    state = request.app.state
    if not hasattr(state, "dials"):
        state.dials = {}
    return state.dials
