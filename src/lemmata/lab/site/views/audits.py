"""The audit of a run: asked for, told while it goes on, and read."""

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import UndefinedError

from lemmata.audit.report import AuditReport
from lemmata.lab.site.audit_page import facts_part, findings_part
from lemmata.lab.site.pages import page, render
from lemmata.lab.site.reading import read_json
from lemmata.lab.site.rights import needs_cookie, needs_token
from lemmata.lab.site.runs import NAME, Trained, find_run
from lemmata.lab.site.views.jobs import started
from lemmata.lab.site.views.runs import NO_RUN

router = APIRouter()

BUDGET = 45.0  # seconds of one audit
LONGEST = 3 * BUDGET  # with reading the run, on a machine that does other things
MOST = 16 << 20  # bytes of a report
# What a file that somebody else wrote makes of us.
BROKEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, UndefinedError)


@router.get("/runs/{run}/audit", dependencies=[Depends(needs_cookie)])
def audit(request: Request, run: str) -> Response:
    """The page of an audit; what is the user's own comes after it."""
    if not NAME.fullmatch(run):
        raise HTTPException(404, NO_RUN)
    return page(request, "audit.html", run=run)


@router.get("/runs/{run}/audit/report", dependencies=[Depends(needs_token)])
def report(run: str) -> Response:
    """What was found, or that nobody has asked yet, as a part of the page."""
    found = _find_audit(run)
    return HTMLResponse(render("audit_run.html", run=found, **_report_parts(found)))


@router.post("/runs/{run}/audit")
async def begin(request: Request, run: str) -> Response:
    """Audit the run as it is now."""
    found = await run_in_threadpool(_find_audit, run)
    if not await run_in_threadpool(lambda: found.weights):
        raise HTTPException(409, "this run has no weights yet: let it train for a while")
    job = request.app.state.jobs.start("audit", {"run": found.name, "budget": BUDGET}, LONGEST)
    return JSONResponse(started(request, job), 202)


def _report_parts(run: Trained) -> dict[str, str]:
    data = read_json(run.folder / "audit.json", MOST)
    try:
        kept = AuditReport.from_json(data) if data else None
        return {"facts": facts_part(kept), "findings": findings_part(kept, linked=True)} if kept else _NOTHING
    except BROKEN:
        return _NOTHING


_NOTHING = {"facts": "", "findings": ""}


def _find_audit(name: str) -> Trained:
    found = find_run(name)
    if found is None:
        raise HTTPException(404, NO_RUN)
    return found
