"""Verdicts on a page, of claims and of audits: a word and a shape."""

import functools
import re

from markupsafe import Markup, escape

from lemmata.catalog.statements import READINGS

__all__ = ["mark", "reason", "shown"]

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
ALIKE |= {"alarm": "refuted", "hint": "weak", "fine": "holds"}  # of an audit


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


def reason(how: str) -> str:
    """Why a check came to its end, without the names of exceptions and files, which are for a terminal.

    >>> reason("ValueError: the ring has no such eigenvalue (eigenvalue_ring.py:92)")
    'it cannot be computed: the ring has no such eigenvalue'
    >>> reason("TypeError: Process.__init__() missing 1 required positional argument: 'environment' (pdp.py:20)")
    'it cannot be computed without environment'
    """
    missing = re.search(r"\w+\(\) missing \d+ required [\w -]+: (.+?)(?: \([\w.]+:\d+\))?$", how)
    if missing:  # Python's words for a call that leaves an argument out
        names = missing[1].replace("'", "")
        return f"it cannot be computed without {names}"
    raised = re.fullmatch(r"(?:[\w.]*(?:Error|Exception|Degenerate|Warning)): (.*?)(?: \([\w.]+:\d+\))?", how, re.S)
    if not raised:
        return how
    return "it cannot be computed" + ("" if raised[1] == "without a message" else f": {raised[1]}")


def shown(word: str) -> str:
    """A verdict or a settlement in the words of a page."""
    return "text extraction" if word == "extraction" else word
