"""The lab's server put together: the guard around everything, pages found in `views/`, jobs, and errors in a line."""

import contextlib
import importlib
import pkgutil
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from lemmata import catalog
from lemmata.lab.site import files, views
from lemmata.lab.site.guard import Guard
from lemmata.lab.site.job import JobError, JobsFull, UnknownJob
from lemmata.lab.site.jobs import Jobs
from lemmata.lab.site.pages import page
from lemmata.lab.site.session import Session
from lemmata.lab.site.views import atlas

__all__ = ["PORT", "Settings", "create_app", "routers"]

PORT = 8417
# The script keeps the token and goes on. Without scripts there are no buttons, and the cookie is enough for sliders.
OPENED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>lemmata</title>
<meta name="lemmata-token" content="{}"><link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<script src="/static/open.js" defer></script><noscript><meta http-equiv="refresh" content="0; url=/"></noscript></head>
<body><p>The lab is open: <a href="/">go on</a>.</p></body>
</html>"""
USED = "this link was used already; the terminal of lemmata serve shows a new one"


@dataclass(frozen=True)
class Settings:
    """What a start of the lab decides."""

    port: int = PORT
    jobs: Callable[[], Jobs] = Jobs
    announce: Callable[[str], None] = field(default=lambda link: None)
    """Shows a fresh link to the person at the terminal, when the first one was opened twice."""


def create_app(settings: Settings | None = None) -> FastAPI:
    """The lab as an ASGI app. Views find `app.state.jobs`, and in `request.state` what the guard knows of a browser."""
    settings = settings or Settings()
    # No /docs, no /openapi.json: they would load scripts from elsewhere, and tell what nobody needs.
    app = FastAPI(
        title="lemmata",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=_app_lifespan,
    )
    app.state.settings = settings
    app.state.session = Session(settings.port, settings.announce)
    app.state.jobs = settings.jobs()
    app.add_middleware(Guard, session=app.state.session)
    for kind, handler in (
        (RequestValidationError, _answer_malformed),
        (HTTPException, _answer_http_error),
        (JobError, _answer_job_error),
    ):
        app.add_exception_handler(kind, handler)
    for router in routers():
        app.router.routes.extend(router.routes)  # as they are: include_router would build each of them once more
    return app


def routers() -> list[APIRouter]:
    """The link, the files, and every page group: each file of `views/` has a `router`."""
    names = sorted(module.name for module in pkgutil.iter_modules(views.__path__))
    groups = [importlib.import_module(f"{views.__name__}.{name}") for name in names]
    return [opening, files.router, *(group.router for group in groups)]


@contextlib.asynccontextmanager
async def _app_lifespan(app: FastAPI) -> AsyncIterator[None]:
    await run_in_threadpool(catalog.load)  # views that wait for children use it in the thread that answers everybody
    threading.Thread(target=atlas.warm, daemon=True).start()  # while the browser is still opening
    app.state.jobs.open()
    yield
    await app.state.jobs.close()


opening = APIRouter()


@opening.get("/open")
async def open_link(request: Request, key: str = "") -> Response:
    """Exchange a key for cookie and token. Whoever has the cookie may open a used link again, and gets no token.

    Not a redirect: a browser that came here from another site would leave a Strict cookie out of the next request.
    """
    session: Session = request.app.state.session
    admitted = session.admits(key)
    if not admitted and not request.state.live:
        session.renew(key)
        raise HTTPException(403, USED)
    answer = HTMLResponse(OPENED.format(session.token if admitted else ""))
    answer.set_cookie(session.cookie_name, session.cookie, path="/", httponly=True, samesite="strict")
    return answer


# --- Errors: one line each, as a page for a reader and as JSON for a script ---


async def _answer_malformed(request: Request, error: Exception) -> Response:
    """What was sent is not repeated: it may be long, not be text at all, or somebody else's script."""
    return _line_response(request, 422, "the request does not have the form that this address expects")


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _line_response(request, error.status_code, str(error.detail), error.headers)


async def _answer_job_error(request: Request, error: Exception) -> Response:
    status = {JobsFull: 429, UnknownJob: 404}.get(type(error), 422)
    return _line_response(request, status, str(error), {"retry-after": "5"} if status == 429 else None)


def _line_response(request: Request, status: int, line: str, headers: Mapping[str, str] | None = None) -> Response:
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        answer: Response = page(request, "error.html", status=status, message=line)
        answer.status_code = status
    else:
        answer = JSONResponse({"error": line}, status)
    answer.headers.update(headers or {})
    return answer
