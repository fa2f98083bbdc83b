"""Finding statements and systems by words, authors or formulas, and names by what was nearly typed."""

import difflib
import functools
import re
import unicodedata
from collections.abc import Iterable

from lemmata.catalog.entries import Catalog, SystemEntry
from lemmata.catalog.unicode_math import unicode_math

__all__ = ["did_you_mean", "nearest_words", "search", "search_systems", "searchable", "statement_text", "words_of"]

# Words that a question has and no statement needs.
FILLER = set("a an and are do does for how i in is it of on or the to what when where which why with".split())
# What the same thing is called elsewhere: whoever types the left is looking for the right.
SYNONYMS = {
    "kullback": "kl",
    "leibler": "kl",
    "novikov": "novikoff",
    "overfitting": "generalis",
    "overfit": "generalis",
    "lagrangian": "lagrange",
    "seq2seq": "sequence to sequence",
    "batchnorm": "batch norm",
    "layernorm": "layer norm",
    "resnet": "residual network",
    "word2vec": "skip-gram",
}


def search(catalog: Catalog, text: str) -> list[str]:
    """Ids of the statements in which every word occurs, in course order, those with a word in their title first."""
    words = words_of(text)
    if not words:
        return []
    texts = {id: statement_text(catalog, id) for id in catalog.statements}
    found = [id for id, text in texts.items() if fits(words, text)]
    if not found and (begun := [word.rstrip(")]}") for word in words]) != words and all(begun):
        found = [id for id, text in texts.items() if fits(begun, text)]  # tr(AB), where a statement has tr(ABC)
    return sorted(found, key=lambda id: -_in_title(words, f"{id} {catalog.statements[id].title}"))


def search_systems(catalog: Catalog, text: str) -> list[str]:
    """Ids of the systems in whose name, title, first sentence, source or promised claims every word occurs."""
    words = words_of(text)
    found = [id for id, entry in catalog.systems.items() if words and fits(words, _system_text(catalog, entry))]
    return sorted(found, key=lambda id: -_in_title(words, f"{id} {catalog.systems[id].title}"))


def words_of(text: str) -> list[str]:
    """What was typed into a search, word by word, as `searchable` writes it, without filler if anything is left."""
    words = _fold_spelling(text).split()[:12]
    return [word for word in words if word not in FILLER] or words


def fits(words: list[str], text: str) -> bool:
    """Whether each word, or what we call it, occurs in what `searchable` made of a text."""
    return all(word in text or SYNONYMS.get(word, word) in text for word in words)


def statement_text(catalog: Catalog, id: str) -> str:
    """All that a search for statements looks at: the statement, and the sources of the systems that it is about."""
    statement = catalog.statements[id]
    place = f"{statement.chapter} {statement.room} {catalog.authors.get(id, '')}".replace("_", " ")
    return f"{searchable(id, statement.title, statement.statement)} {_fold_spelling(place)}"


@functools.lru_cache(8192)
def searchable(id: str, title: str, statement: str) -> str:
    """A text as a search reads it. Formulas as they are written and as they are read: γ is found by γ and by gamma.

    Once more without blanks and braces: `tr(AB)` is found however it is spaced.
    """
    text = f"{title} {statement}"
    read = unicode_math(text)
    close = re.sub(r"[\s{}$\\]", "", f"{statement} {read}")
    return _fold_spelling(f"{id} {text} {read} {close}")


def nearest_words(catalog: Catalog, text: str) -> str:
    """ ": did you mean a, b?" or nothing, for words that occur nowhere: ids, and words that do occur."""
    known = {*catalog.statements, *(statement.chapter for statement in catalog.statements.values())}
    for statement in catalog.statements.values():
        known |= set(re.findall(r"[a-z]{4,}", _fold_spelling(statement.title)))
    return did_you_mean(text, known, cutoff=0.7)


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """ ": did you mean a, b?" or nothing."""
    near = difflib.get_close_matches(word, list(known), n=3, cutoff=cutoff)
    return f": did you mean {', '.join(near)}?" if near else ""


def _in_title(words: list[str], title: str) -> int:
    """How many of the words begin a word of the title: `adam` is Adam before it is the Hadamard product."""
    title = _fold_spelling(title)

    def begins(word: str) -> bool:
        return bool(re.search(rf"(?<![a-z0-9]){re.escape(word)}", title))

    return sum(begins(word) or begins(SYNONYMS.get(word, word)) for word in words)


def _system_text(catalog: Catalog, entry: SystemEntry) -> str:
    titles = " ".join(catalog.statements[id].title for id in entry.claims if id in catalog.statements)
    told = f"{entry.name} {entry.title} {entry.chapter} {entry.room} {entry.source} {' '.join(entry.claims)} {titles}"
    return f"{searchable(entry.id, told, entry.sentence)} {entry.id.replace('_', ' ')}"


def _fold_spelling(text: str) -> str:
    """One spelling for all: no capitals, no accents, -ise and -isation for -ize and -ization."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()
    return re.sub(r"iz(?=(e|es|ed|er|ing|ation|ations)\b)", "is", plain)
