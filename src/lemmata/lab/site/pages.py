"""How a page is made: one Jinja environment, its filters, and `page()`, which every view ends with."""

import functools
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import lemmata
from lemmata.catalog.unicode_math import unicode_math
from lemmata.judge.evidence_words import sentence
from lemmata.lab.site.figures import draw
from lemmata.lab.site.files import assets_edition
from lemmata.lab.site.formulas import ASSETS, formula, prose, stated
from lemmata.lab.site.misprint_changes import compared
from lemmata.lab.site.verdicts import mark, reason, shown
from lemmata.lab.words import GROUNDS, count, number, seconds

__all__ = ["environment", "ground", "page", "render"]

HERE = Path(__file__).parent


def ground(result: Any) -> str:
    """What a verdict rests on; "proved" is said of exhaustive or symbolic evidence only."""
    if not result or not result.by:
        return ""
    word = "proved" if (result.evidence or {}).get("proof") else "checked"
    return f"{word} {GROUNDS[result.by]} in {seconds(result.seconds)}"


@functools.cache
def environment() -> Environment:
    """The templates with everything they may call."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {"prose": prose, "stated": stated, "formula": formula, "number": number, "seconds": seconds}
    made.filters |= {
        "plain": unicode_math,
        "reason": reason,
        "mark": mark,
        "figure": draw,
        "evidence": sentence,
        "ground": ground,
    }
    made.globals |= {"mark": mark, "compared": compared, "count": count, "asset": asset, "shown": shown}
    made.globals |= {"command_line": command_line, "version": lemmata.__version__}
    return made


def command_line(command: str) -> Markup:
    """A command for the terminal, with a button that copies it."""
    button = '<button type="button" class="quiet" data-copy hidden>Copy</button>'
    return Markup("<code data-command>{}</code> ").format(command) + Markup(button)


def asset(name: str) -> str:
    """The address of something fetched from others, or nothing where it was not: a page must do without.

    The address changes with the assets, so that a browser keeps what it has of them and need not ask.
    """
    if not (ASSETS / name).is_file():
        return ""
    edition = assets_edition(ASSETS)
    return f"/assets/{edition}/{name}" if edition else f"/assets/{name}"


def render(template: str, **context: Any) -> str:
    """A page as text. `path` is its address, `live` whether its buttons work, `command` what reproduces it.

    `static` makes it a page of a report, which no server answers: without forms, and without what leads to the labs.
    """
    given = {"path": "", "live": False, "static": False, "command": "", "description": ""} | context
    return environment().get_template(template).render(given)


def page(request: Request, template: str, **context: Any) -> HTMLResponse:
    """A page for this request: with buttons for the browser that opened the printed link."""
    given = {"path": request.url.path, "live": request.state.live} | context
    return HTMLResponse(render(template, **given))
