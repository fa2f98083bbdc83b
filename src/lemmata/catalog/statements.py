"""What is stated: the entries of a chapter's statements.yaml, with the misprints of the sources."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lemmata.catalog.dials import without_dials, without_exponents_one

__all__ = ["COSTS", "ID", "READINGS", "Argument", "Erratum", "Statement", "read_statements"]

KINDS = "definition identity theorem bound algorithm system empirical".split()
COSTS = ("instant", "quick", "long")
# What is printed may be no falsehood, each for a reason that stands in statements.yaml under this word.
READINGS = {
    "convention": "right under another common convention",
    "imprecise": "true but not sharp, or short of a condition that readers supply",
    "notation": "a slip of notation that no computation can show",
    "extraction": "lost between the author's file and the text we read",
}
KEY_TYPES = {"number": int, "sources": list, "errata": list, "builds_on": list, "arguments": dict, "values": dict}
ID = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")


@dataclass(frozen=True)
class Erratum:
    """One remark on a source: what it prints, what is wrong with it, what is right."""

    number: int
    source: str
    printed: str
    problem: str
    correct: str
    convention: str = ""
    imprecise: str = ""
    notation: str = ""
    extraction: str = ""

    @property
    def key(self) -> str:
        return f"{self.source}/{self.number}"

    @property
    def reading(self) -> str:
        """The word for what is no falsehood (convention, imprecise, notation, extraction), else nothing."""
        return next((word for word in READINGS if getattr(self, word)), "")

    @property
    def reason(self) -> str:
        """Why it is read so."""
        return getattr(self, self.reading) if self.reading else ""


@dataclass(frozen=True)
class Argument:
    """A reader's words for an argument of the check, and for those of its values that are not numbers.

    `values` has pairs of source text, as the claim writes it, and label: plain words or LaTeX between dollars.
    """

    name: str
    words: str
    values: tuple[tuple[str, str], ...] = ()

    def label(self, value: str) -> str:
        """What a reader is told of a value, or nothing."""
        return dict(self.values).get(value, "")


@dataclass(frozen=True)
class Statement:
    r"""One entry of a chapter's statements.yaml.

    `dialled` is the statement with the symbols that an argument of the check stands for marked, `\dial{name}{value}`;
    `statement` is the same without the marks. `arguments` has a reader's words for them. `why` says in a few sentences
    why it is true, `builds_on` names the statements that this takes as known.
    """

    id: str
    kind: str
    title: str
    statement: str
    cost: str
    dialled: str = ""
    arguments: tuple[Argument, ...] = ()
    sources: tuple[dict[str, str], ...] = ()
    errata: tuple[Erratum, ...] = ()
    why: str = ""
    builds_on: tuple[str, ...] = ()
    chapter: str = ""
    room: str = ""
    line: int = 0


def read_statements(folder: Path, chapter: str, room: str, problems: list[str]) -> Iterator[Statement]:
    """The statements of one chapter; what is wrong with an entry becomes a problem, the rest is kept."""
    import yaml

    path = folder / "statements.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times quicker where libyaml is there
    try:
        reader = loader(path.read_text(encoding="utf-8"))
        tree = reader.get_single_node() or yaml.SequenceNode("", [])  # knows the lines, unlike what it constructs
        entries = reader.construct_document(tree) if tree.value else []
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        mark = getattr(error, "problem_mark", None)
        problems.append(f"{path}:{mark.line + 1 if mark else 1}: not valid YAML: {' '.join(str(error).split())}")
        return
    if not isinstance(entries, list):
        problems.append(f"{path}:1: must be a list of statements, each beginning with '- id: ...'")
        return
    for index, entry in enumerate(entries):
        line = tree.value[index].start_mark.line + 1
        try:
            yield _read_statement(entry, chapter, room, line)
        except ValueError as error:
            name = f"{entry['id']}: " if isinstance(entry, dict) and "id" in entry else ""
            problems.append(f"{path}:{line}: {name}{error}")


def _read_statement(entry: Any, chapter: str, room: str, line: int) -> Statement:
    words = _check_entry_keys(
        "a statement", entry, "id kind title statement cost", "sources errata arguments why builds_on"
    )
    words["dialled"] = without_exponents_one(words["statement"])
    words["statement"] = without_dials(words["dialled"])
    words["arguments"] = tuple(_read_argument(*item) for item in (words.get("arguments") or {}).items())
    words["why"] = words.get("why") or ""
    words["sources"] = tuple(
        _check_entry_keys("a source", source, "source where") for source in words.get("sources") or ()
    )
    words["builds_on"] = tuple(words.get("builds_on") or ())
    keys = "number source printed problem correct", " ".join(READINGS)
    words["errata"] = tuple(
        Erratum(**_check_entry_keys("an erratum", erratum, *keys)) for erratum in words.get("errata") or ()
    )
    statement = Statement(**words, chapter=chapter, room=room, line=line)
    if not ID.fullmatch(statement.id):
        raise ValueError(f"id must be lower-case words joined by dots, got {statement.id!r}")
    for key, allowed in ("kind", KINDS), ("cost", COSTS):
        if words[key] not in allowed:
            raise ValueError(f"{key} must be one of {', '.join(allowed)}, got {words[key]!r}")
    if wrong := [each for each in statement.builds_on if not isinstance(each, str)]:
        raise ValueError(f"builds_on must name statements by their ids, got {wrong[0]!r}")
    if [erratum.number for erratum in statement.errata] != list(range(1, len(statement.errata) + 1)):
        raise ValueError("errata must be numbered 1, 2, ... in order")
    for erratum in statement.errata:
        if sum(bool(getattr(erratum, word)) for word in READINGS) > 1:
            raise ValueError(f"erratum {erratum.key} has several readings: choose one of {', '.join(READINGS)}")
    return statement


def _read_argument(name: Any, told: Any) -> Argument:
    """`name: words`, or `name: {words: ..., values: {source text: label}}`."""
    if isinstance(told, str):
        return Argument(str(name), told)
    found = _check_entry_keys(f"the argument {name}", told, "words", "values")
    values = found.get("values") or {}
    if wrong := [item for pair in values.items() for item in pair if not isinstance(item, str)]:
        raise ValueError(f"the values of the argument {name} must be text, got {wrong[0]!r}: quote it")
    return Argument(str(name), found["words"], tuple(values.items()))


def _check_entry_keys(what: str, entry: Any, needed: str, optional: str = "") -> dict[str, Any]:
    """The entry, if it has every key it needs and no other, and text where text belongs."""
    if not isinstance(entry, dict):
        raise ValueError(f"{what} must have the keys {needed.replace(' ', ', ')}, got {entry!r:.60}")
    if missing := [key for key in needed.split() if entry.get(key) is None]:
        raise ValueError(f"{what} lacks {', '.join(missing)}")
    if unknown := [str(key) for key in entry if key not in f"{needed} {optional}".split()]:
        raise ValueError(f"{what} has the unknown key {', '.join(unknown)}: it may have {needed} {optional}".rstrip())
    for key, value in entry.items():
        wanted = KEY_TYPES.get(key, str)
        if not isinstance(value, wanted) and value is not None:
            raise ValueError(f"{key} must be {wanted.__name__}, got {value!r}{': quote it' if wanted is str else ''}")
    return dict(entry)
