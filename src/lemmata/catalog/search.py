"""Finding statements by words, and names by what was nearly typed."""

import difflib
import functools
import re
from collections.abc import Iterable

from lemmata.catalog.entries import Catalog
from lemmata.catalog.unicode_math import unicode_math

__all__ = ["did_you_mean", "search", "searchable", "words_of"]


def search(catalog: Catalog, text: str) -> list[str]:
    """Ids of the statements in which every word occurs, in the order of the course."""
    words = words_of(text)

    def fits(id: str) -> bool:
        statement = catalog.statements[id]
        return all(word in searchable(id, statement.title, statement.statement) for word in words)

    return [id for id in catalog.statements if words and fits(id)]


def words_of(text: str) -> list[str]:
    """What was typed into a search, word by word."""
    return text.casefold().split()[:12]


@functools.lru_cache(8192)
def searchable(id: str, title: str, statement: str) -> str:
    """All that a search looks at. Formulas as they are written and as they are read: γ is found by γ and by gamma.

    Once more without blanks and braces: `tr(AB)` is found however it is spaced.
    """
    text = f"{title} {statement}"
    read = unicode_math(text)
    close = re.sub(r"[\s{}$\\]", "", f"{statement} {read}")
    return f"{id} {text} {read} {close}".casefold()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ ": did you mean a, b?" or nothing."""
    near = difflib.get_close_matches(word, list(known), n=3, cutoff=0.5)
    return f": did you mean {', '.join(near)}?" if near else ""
