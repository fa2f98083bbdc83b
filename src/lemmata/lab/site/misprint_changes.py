r"""A misprint beside its correction, with the parts that differ marked, inside the formulas too.

Both texts become words and the leaves of their MathML (letters, numbers, signs); what the longest common order of the
two leaves out is what changed. Marking leaves never breaks a formula, which cutting up LaTeX would.
"""

import functools
import html
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from markupsafe import Markup

from lemmata.lab.site.formulas import formula, pieces, table_version
from lemmata.lab.site.words import words

__all__ = ["compared"]

LEAVES = {"mi", "mn", "mo", "mtext"}
SAME = {"≐": "=", "≔": "=", ":=": "="}  # ways to write one thing
ALIKE = 0.6  # below this the two say different things, and marks on nearly everything would tell nothing


@dataclass(eq=False)
class _Word:
    """A word, a sign or a blank of plain text, and the tag that marks it."""

    text: str
    tag: str = ""


def compared(printed: str, correct: str) -> tuple[Markup, Markup]:
    """Both texts for the page, each with what the other lacks marked."""
    return _compare_texts(" ".join(printed.split()), " ".join(correct.split()), table_version())


@functools.lru_cache(4096)
def _compare_texts(printed: str, correct: str, version: object) -> tuple[Markup, Markup]:
    left, right = _text_parts(printed), _text_parts(correct)
    before, after = _formula_leaves(left), _formula_leaves(right)
    matcher = SequenceMatcher(
        None, [_leaf_sign(leaf) for leaf in before], [_leaf_sign(leaf) for leaf in after], autojunk=False
    )
    if matcher.ratio() >= ALIKE:
        for kind, i, j, k, m in matcher.get_opcodes():
            if kind != "equal":
                _mark_leaves(before[i:j], "del")
                _mark_leaves(after[k:m], "ins")
            if kind == "insert":  # something is missing: mark the place
                _mark_leaves([_largest_part(leaf, left) for leaf in before[i : i + 1]], "gap")
    return _join_parts(left), _join_parts(right)


def _text_parts(text: str) -> list[_Word | Element]:
    """The text in words and formulas; a formula that the table lacks is taken sign by sign."""
    parts: list[_Word | Element] = []
    for before, latex, style in pieces(text):
        parts += [_Word(word) for word in re.findall(r"\s+|[\w’'^-]+|[^\w\s]", before)]
        shown = str(formula(latex, style)) if latex else ""
        if shown.startswith("<math"):
            parts.append(ElementTree.fromstring(shown))
        elif latex:
            parts += [_Word(sign) for sign in html.unescape(re.sub(r"<[^>]+>", "", shown))]
    return parts


def _formula_leaves(parts: list[_Word | Element]) -> list[_Word | Element]:
    found: list[_Word | Element] = []
    for part in parts:
        inner = [part] if isinstance(part, _Word) else [leaf for leaf in part.iter() if leaf.tag in LEAVES]
        found += [
            leaf for leaf in inner if _leaf_sign(leaf).strip(" \u00a0\u2061")
        ]  # blanks, also of applied functions
    return found


def _largest_part(leaf: _Word | Element, parts: list[_Word | Element]) -> _Word | Element:
    """The largest part of a formula that begins with this leaf, such as a fraction with its numerator."""
    for part in parts:
        parents = {child: parent for parent in part.iter() for child in parent} if isinstance(part, Element) else {}
        while isinstance(leaf, Element) and leaf in parents:
            above = parents[leaf]
            if above[0] is not leaf or above.tag in ("semantics", "math") or (above.tag == "mrow" and len(above) > 1):
                break
            leaf = above
    return leaf


def _leaf_sign(leaf: _Word | Element) -> str:
    text = leaf.text or ""
    return text.lower() if isinstance(leaf, _Word) else SAME.get(text, text)


def _mark_leaves(leaves: list[_Word | Element], tag: str) -> None:
    for leaf in leaves:
        if isinstance(leaf, _Word):
            leaf.tag = tag
        else:
            leaf.set("class", f"{leaf.get('class', '')} {tag}".strip())


def _join_parts(parts: list[_Word | Element]) -> Markup:
    told = [
        _word_markup(part) if isinstance(part, _Word) else ElementTree.tostring(part, encoding="unicode")
        for part in parts
    ]
    return Markup(re.sub(r"</(del|ins)>(\s*)<\1>", r"\2", "".join(told)))  # neighbours share one mark


def _word_markup(word: _Word) -> str:
    text = words(word.text)
    if word.tag == "gap":
        return f'<span class="gap">{text}</span>'
    return f"<{word.tag}>{text}</{word.tag}>" if word.tag else text
