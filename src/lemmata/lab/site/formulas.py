r"""Formulas on the page: MathML from the table that was made with the assets, else one line of Unicode.

The table maps LaTeX to MathML, once for the running line and once for a line of its own. Whatever it lacks (assets that
were never built, a statement written since) is shown as Unicode, marked so that Temml can improve it in the browser.

In a statement, `\dial{name}{value}` stands for an argument of the check. It is set as a row of the class `dial`, whose
`data-dial` is the name and whose `data-as` says how a moved value is written there: see dials.py and static/probe.js.
"""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup, escape

from lemmata.catalog.dials import DIAL, NEUTRAL, number_in, without_dials
from lemmata.catalog.unicode_math import FORMULA, unicode_math
from lemmata.lab.site.words import words

__all__ = ["ASSETS", "formula", "inside", "pieces", "prose", "stated", "style_of", "table_version", "with_classes"]

ASSETS = Path(__file__).parent / "assets"
RELATION = re.compile(r"[=<>≤≥≈≡≐∼∝⇒⇔⇐→∈⊆≠≻⪰]")
# From this many letters and signs on, a formula that relates two things deserves a line of its own in a statement.
LONG = 17


def pieces(text: str) -> Iterator[tuple[str, str, str]]:
    r"""(text before, LaTeX, "block" or "inline") for each formula of a text, and what follows the last.

    >>> list(pieces(r"at most $R^2$ updates"))
    [('at most ', 'R^2', 'inline'), (' updates', '', '')]
    """
    last = 0
    for found in FORMULA.finditer(text):
        yield text[last : found.start()], found[1] or found[2], "block" if found[1] else "inline"
        last = found.end()
    yield text[last:], "", ""


def formula(latex: str, style: str = "inline") -> Markup:
    r"""One formula: MathML, or Unicode where the table lacks it.

    >>> print(formula(r"\alpha^{unheard}"))
    <span class="tex" data-tex="\alpha^{unheard}">α^unheard</span>
    """
    latex = latex.strip()
    found = _formula_table().get(style, {}).get(latex)
    return Markup(found) if found else Markup(_fallback_markup(latex, style))


def prose(text: str) -> Markup:
    """Text with `$formulas$`, safe to put on a page."""
    return _set_prose(" ".join(text.split()), table_version(), False)


def stated(text: str) -> Markup:
    """The same for a statement: a long formula stands on a line of its own, with the comma or stop that follows it."""
    return _set_prose(" ".join(text.split()), table_version(), True)


def inside(label: str) -> str:
    r"""What a label, plain words or `$LaTeX$`, is inside a formula: MathML without its root.

    >>> inside("the mean")
    '<mtext>the mean</mtext>'
    """
    latex = label[1:-1] if len(label) > 2 and label[0] == label[-1] == "$" else ""
    found = re.search(r"<semantics>(.*)<annotation", str(formula(latex)), re.S) if latex else None
    return found[1] if found else f"<mtext>{escape(unicode_math(label))}</mtext>"


def style_of(shown: str) -> str:
    r"""How a dial in a formula is written when it moves, by what it shows at the truth.

    >>> [style_of(text) for text in (r"\tfrac12", "-", "", r"\min", "/", "-0")]
    ['number', 'sign', 'nothing', 'label', 'divisor', 'subtrahend']
    """
    text = shown.strip()
    if text in NEUTRAL:
        return {"": "nothing", "/": "divisor", "-0": "subtrahend"}[text]
    return "sign" if text in "+-" else "number" if number_in(text) is not None else "label"


def with_classes(latex: str) -> str:
    r"""LaTeX whose dials Temml understands, each as a class with its name and style.

    >>> with_classes(r"R^{\dial{power}{2}}")
    'R^{\\class{dial power number}{2}}'
    """

    def classed(found: re.Match[str]) -> str:
        text = "" if found[2].strip() in NEUTRAL else found[2]
        return rf"\class{{dial {found[1]} {style_of(found[2])}}}{{{text}}}"

    return DIAL.sub(classed, latex)


@functools.lru_cache(8192)
def _set_prose(text: str, version: tuple[int, int], displayed: bool) -> Markup:
    parts: list[str] = []
    for before, latex, style in pieces(text):
        stop = re.match(r"[.,;:]+", before) if parts and parts[-1].endswith("</math></span>") else None
        if stop:
            parts[-1] = parts[-1].removesuffix("</span>") + f'<span class="stop">{stop[0]}</span></span>'
        parts.append(words(before[stop.end() :] if stop else before))
        if displayed and _deserves_a_line(latex):
            style = "block"
        if latex:
            set_ = formula(latex, style)
            parts.append(f'<span class="display">{set_}</span>' if style == "block" else str(set_))
    return Markup("".join(parts))


def _deserves_a_line(latex: str) -> bool:
    """Whether a formula is long and relates two things; the table must have it in this style."""
    found = _formula_table().get("block", {}).get(latex.strip(), "") if latex else ""
    signs = re.findall(r"<m[ino][^>]*>([^<]+)</m[ino]>", found)
    return len(signs) >= LONG and any(RELATION.search(sign) for sign in signs)


def _fallback_markup(latex: str, style: str) -> str:
    plain = without_dials(latex)
    told = unicode_math(f"${plain}$")
    block = ' data-block=""' if style == "block" else ""
    block += f' data-dialled="{escape(with_classes(latex))}"' if plain != latex else ""
    return f'<span class="tex" data-tex="{escape(plain)}"{block}>{escape(told)}</span>'


def table_version() -> tuple[int, int]:
    """Changes when the table does, so that what was set with the old one is not kept."""
    try:
        status = (ASSETS / "formulas.json").stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def _formula_table() -> dict[str, dict[str, str]]:
    return _read_table(table_version())


@functools.lru_cache(1)
def _read_table(version: tuple[int, int]) -> dict[str, dict[str, str]]:
    try:
        table = json.loads((ASSETS / "formulas.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
