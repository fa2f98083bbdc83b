"""How a page is made: one Jinja environment, its filters, and `page()`, which every view ends with."""

import functools
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import lemmata
from lemmata.catalog.statements import READINGS
from lemmata.judge.words import sentence
from lemmata.lab.site.changes import compared
from lemmata.lab.site.figures import draw
from lemmata.lab.site.formulas import ASSETS, formula, prose, stated
from lemmata.lab.words import GROUNDS, count, number, seconds

__all__ = ["environment", "ground", "mark", "page", "render", "shown"]

HERE = Path(__file__).parent

# A verdict is a word and a shape; colour only repeats it. Drawn here, so that no font decides how they look.
RING = '<circle cx="8" cy="8" r="6.6" fill="none" stroke="currentColor" stroke-width="1.6"{}/>'
SHAPES = {
    "holds": '<circle cx="8" cy="8" r="7.4" fill="currentColor"/>'
    '<path class="cut" d="M4.4 8.4 7 11l4.8-5.6" fill="none" stroke-width="2"/>',
    "refuted": '<path d="M3 3l10 10M13 3L3 13" fill="none" stroke="currentColor" stroke-width="2.7"/>',
    "weak": RING.format("") + '<path d="M8 1.4a6.6 6.6 0 0 0 0 13.2z" fill="currentColor"/>',
    "open": RING.format(""),
    "settled": '<circle cx="8" cy="8" r="3.6" fill="currentColor"/>',
    "not judged": RING.format(' stroke-dasharray="2.2 2.5"'),
    "skipped": '<path d="M2.5 8h11" fill="none" stroke="currentColor" stroke-width="2.4"/>',
    "error": '<path d="M8 1.6 15 14.2H1z" fill="none" stroke="currentColor" stroke-width="1.6" '
    'stroke-linejoin="round"/><path d="M8 5.8v4.4M8 11.3v1.5" stroke="currentColor" stroke-width="1.7"/>',
}
# What other words are drawn as.
ALIKE = {"rejected": "refuted", "accepted": "weak", "not run": "not judged", **dict.fromkeys(READINGS, "settled")}
ALIKE |= {"not run yet": "not judged", "still holds": "holds", "undecided": "weak", "proved": "holds"}


@functools.lru_cache(256)
def mark(verdict: str, word: str = "") -> Markup:
    """A verdict, a lie's outcome or a settlement as shape and word.

    >>> "holds" in mark("holds") and "<svg" in mark("holds")
    True
    """
    shape = ALIKE.get(verdict, verdict)
    word = word or shown(verdict)
    drawn = (
        f'<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{SHAPES.get(shape, SHAPES["open"])}</svg>'
    )
    return Markup(f'<span class="verdict {escape(shape.replace(" ", "-"))}">{drawn} {escape(word)}</span>')


def shown(word: str) -> str:
    """A verdict or a settlement in the words of a page."""
    return "text extraction" if word == "extraction" else word


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
    made.filters |= {"mark": mark, "figure": draw, "evidence": sentence, "ground": ground}
    made.globals |= {"mark": mark, "compared": compared, "count": count, "asset": asset, "shown": shown}
    made.globals |= {"command_line": command_line, "version": lemmata.__version__}
    return made


def command_line(command: str) -> Markup:
    """A command for the terminal, with a button that copies it."""
    button = '<button type="button" class="quiet" data-copy hidden>Copy</button>'
    return Markup("<code data-command>{}</code> ").format(command) + Markup(button)


def asset(name: str) -> str:
    """The address of something fetched from others, or nothing where it was not: a page must do without."""
    return f"/assets/{name}" if (ASSETS / name).is_file() else ""


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
