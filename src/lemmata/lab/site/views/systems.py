"""What is built: a list by chapter, and a page for each system, from which it can be trained."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from lemmata import catalog
from lemmata.catalog import CHAPTERS, SystemEntry
from lemmata.lab.recipe_choice import data_of
from lemmata.lab.site.code import coloured
from lemmata.lab.site.docstrings import describe
from lemmata.lab.site.knowledge import Snapshot, known
from lemmata.lab.site.pages import page, render
from lemmata.lab.site.rights import needs_cookie, needs_token
from lemmata.lab.site.runs import NAME, list_runs, new_run
from lemmata.lab.site.views.runs import begin

router = APIRouter()

# The options that most people turn; the others are folded away. The second lot says something to gradient descent only.
FIRST = ("epochs", "batch_size", "lr", "optimizer", "schedule", "seed")
GRADIENT = "optimizer lr weight_decay momentum schedule warmup clip accumulate ema_decay precision".split()
SECONDS = 30.0  # to build a system without training it; the first time its chapter is imported, too
RESERVED = ("data", "run")  # in the address beside the values of the form

Word = Annotated[str, StringConstraints(max_length=40)]
Value = Annotated[str, StringConstraints(max_length=200)]


class Choice(BaseModel):
    """What to train on, and the values that differ from the recipe's own, as text."""

    model_config = ConfigDict(extra="forbid", strict=True)
    data: Word
    chosen: Annotated[dict[Word, Value], Field(max_length=64)] = {}


@router.get("/systems")
def systems(request: Request) -> Response:
    """Every system, by chapter."""
    return page(request, "systems.html", **systems_context(known()))


@router.get("/systems/{id}")
def system(request: Request, id: str) -> Response:
    """One system: what it is, what is claimed of it, its source, and a form to train it.

    The page waits for no child process: a form that needs one comes after it. So do the runs, which are for the token
    only, and no browser shows that when it opens an address.
    """
    _find_system(id)
    context = system_context(known(), id)
    names, asked, values = context["data"], request.query_params, _form_values(request)
    data = asked["data"] if asked.get("data") in names else next(iter(names), "")
    if names and request.state.live:
        usual = None if values else _kept_forms(request).get((id, data))
        context["form"] = _fill_form(id, data, {}, usual, usual) if usual else ""
        context["load"] = f"/systems/{id}/form?{urlencode({'data': data} | values)}"
        context["run"] = asked["run"] if NAME.fullmatch(asked.get("run", "")) else ""
    return page(request, "system.html", **context)


def systems_context(now: Snapshot) -> dict[str, Any]:
    """Everything the list of systems shows."""
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in now.catalog.systems.values():
        row = {"entry": entry, "description": describe(entry), "data": data_of(now.catalog, entry.id)}
        found.setdefault(entry.chapter, []).append(row | {"claims": _claim_rows(now, entry)})
    order = dict.fromkeys([*(c for c in CHAPTERS if c in found), *found])
    chapters = {name: catalog.by_room(found[name], lambda row: row["entry"].room) for name in order}
    return {"chapters": chapters, "command": "lemmata systems"}


def system_context(now: Snapshot, id: str) -> dict[str, Any]:
    """Everything the page of a system shows where nothing can be run: the server adds form, runs and the run shown."""
    entry = now.catalog.systems[id]
    return {
        "entry": entry,
        "stated": entry.chapter in now.chapters(),  # else the atlas has nothing of it
        "description": describe(entry),
        "claims": _claim_rows(now, entry),
        "data": data_of(now.catalog, id),
        "coloured": coloured,
        "form": "",
        "load": "",
        "run": "",
        "command": f"lemmata systems {id}",
    }


@router.get("/systems/{id}/runs", dependencies=[Depends(needs_token)])
def runs(request: Request, id: str) -> Response:
    """The runs of a system, as a part of its page."""
    _find_system(id)
    return HTMLResponse(render("runs.html", id=id, runs=list_runs(id)[:20]))


@router.get("/systems/{id}/form", dependencies=[Depends(needs_cookie)])
async def form(request: Request, id: str) -> Response:
    """The form alone, which needs a child process and may come after the page."""
    data = _find_data(id, request.query_params.get("data") or next(iter(data_of(catalog.load(), id)), ""))
    return HTMLResponse(await _training_form(request, id, data, _form_values(request)))


@router.post("/systems/{id}/choice")
async def choice(request: Request, id: str, asked: Choice) -> Response:
    """What the chosen values come to: parameters, the command and the Python that do the same; or what is wrong."""
    found = await _ask_recipe(request, id, _find_data(id, asked.data), asked.chosen)
    return JSONResponse({key: found[key] for key in found if key not in ("config", "options")} | {"size": size(found)})


@router.post("/systems/{id}/train")
async def train(request: Request, id: str, asked: Choice) -> Response:
    """Start a training; its run has a folder and a name at once."""
    data = _find_data(id, asked.data)
    found = await _ask_recipe(request, id, data, asked.chosen)
    if found["problem"]:
        raise HTTPException(422, found["problem"])
    told = {"system": id, "data": data, "chosen": asked.chosen, "resume": False}
    return JSONResponse(begin(request, told | {"run": await run_in_threadpool(new_run, id, data)}), 202)


def size(found: dict[str, Any]) -> str:
    """How much is learnt, and from how much."""
    if found["problem"]:
        return ""
    counted = f"{found['stored']:,} stored numbers" if found["stored"] else "weights that a fit finds"
    counted = f"{found['parameters']:,} parameters" if found["parameters"] else counted
    return f"{counted}, {found['examples']['train']:,} examples, {found['examples']['test']:,} for the test"


# --- Parts ---


def _find_system(id: str) -> SystemEntry:
    entry = catalog.load().systems.get(id)
    if entry is None:
        raise HTTPException(404, "there is no system of this name")
    return entry


def _find_data(id: str, name: str) -> str:
    _find_system(id)
    if name not in data_of(catalog.load(), id):
        raise HTTPException(422, "this system is not trained on data of this name")
    return name


def _claim_rows(now: Snapshot, entry: SystemEntry) -> list[dict[str, Any]]:
    stated = [now.catalog.statements[id] for id in entry.claims if id in now.catalog.statements]
    return [{"statement": statement, "verdict": now.verdict(statement.id)} for statement in stated]


def _form_values(request: Request) -> dict[str, str]:
    given = [(name, value) for name, value in request.query_params.items() if name not in RESERVED]
    return {name[:40]: value[:200] for name, value in given[:64]}


async def _ask_recipe(request: Request, id: str, data: str, chosen: dict[str, str]) -> dict[str, Any]:
    return await request.app.state.jobs.call("recipe", {"system": id, "data": data, "chosen": chosen}, SECONDS)


async def _training_form(request: Request, id: str, data: str, chosen: dict[str, str]) -> Markup:
    """The form with the chosen values in it; of the usual values the answer is kept."""
    kept = _kept_forms(request)
    if (id, data) not in kept:
        kept[id, data] = await _ask_recipe(request, id, data, {})
    usual = kept[id, data]
    found = await _ask_recipe(request, id, data, chosen) if chosen else usual
    return await run_in_threadpool(_fill_form, id, data, chosen, usual, found)


def _fill_form(id: str, data: str, chosen: dict[str, str], usual: dict[str, Any], found: dict[str, Any]) -> Markup:
    shown = [field for field in usual["options"] if usual.get("gradient", True) or field["name"] not in GRADIENT]
    groups = {
        "config": usual["config"],
        "first": [field for field in shown if field["name"] in FIRST],
        "rest": [field for field in shown if field["name"] not in FIRST],
    }
    context = {
        "id": id,
        "data": data,
        "names": data_of(catalog.load(), id),
        "chosen": chosen,
        "found": found,
        "groups": groups,
    }
    return Markup(render("form.html", size=size(found), **context))


def _kept_forms(request: Request) -> dict[tuple[str, str], dict[str, Any]]:
    state = request.app.state
    if not hasattr(state, "forms"):
        state.forms = {}
    return state.forms
