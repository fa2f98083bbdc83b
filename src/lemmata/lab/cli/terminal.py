"""What all commands share on the screen: one console, verdict marks, numbers, formulas, JSON."""

import json
import os
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from lemmata.catalog.unicode_math import unicode_math

# A verdict is a word and a shape; colour only repeats it.
MARKS = {"holds": "✔", "refuted": "✘", "weak": "◐", "open": "○", "skipped": "–", "error": "!"}
PLAIN_MARKS = {"holds": "+", "refuted": "x", "weak": "~", "open": "o", "skipped": "-", "error": "!"}
STYLES = {
    "holds": "green",
    "refuted": "bold red",
    "weak": "yellow",
    "open": "dim",
    "skipped": "dim",
    "error": "bold red",
}
SPELLED = {"≤": "<=", "≥": ">=", "±": "+-", "²": "^2", "γ": "gamma", "λ": "lambda", "−": "-", "·": "."}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # `lemmata errata | head` is no failure; rich would exit with 1


def console(stderr: bool = False) -> Console:
    """A console that is plain when nobody is watching. Off a terminal, lines are as long as they are."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100
    return _Console(stderr=stderr, highlight=False, width=width, soft_wrap=False, emoji=False)


def unicode_works() -> bool:
    return (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "") in ("utf8", "utf16", "utf32")


def maths(text: str) -> str:
    """Prose with formulas, as the terminal can show it, safe inside rich markup: γ[w,b] is no style."""
    return escape(unicode_math(" ".join(text.split()), plain=not unicode_works()))


def words(text: str) -> str:
    """Plain text, with its signs spelled out where the terminal lacks them, safe inside rich markup."""
    return escape(
        text if unicode_works() else text.translate({ord(sign): spelled for sign, spelled in SPELLED.items()})
    )


def mark(verdict: str) -> Text:
    """The verdict's shape and word."""
    return Text(f"{shape_of(verdict)} {verdict}", style=STYLES[verdict])


def shape_of(verdict: str) -> str:
    return (MARKS if unicode_works() else PLAIN_MARKS)[verdict]


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))
