"""What the package holds: entries for claims, lies, systems and recipes, as they are written in the source."""

import functools
import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lemmata.catalog.statements import Erratum, Statement

__all__ = ["Catalog", "ClaimEntry", "LieEntry", "RecipeEntry", "SystemEntry", "marked"]


@dataclass(frozen=True)
class LieEntry:
    """A lie as written: its text, the misprint it stands for, and the one argument it changes."""

    text: str
    printed: str = ""
    raises: str = ""
    argument: str = ""
    value: str = ""
    truth: str = ""
    regime: str = ""
    loose: str = ""


@dataclass(frozen=True)
class ClaimEntry:
    """A claim as written: where its check stands and which lies it must reject."""

    id: str
    module: str
    function: str
    path: Path
    line: int
    sentence: str
    lies: tuple[LieEntry, ...] = ()
    cost: str = "quick"
    arguments: tuple[tuple[str, str], ...] = ()  # name and default, as written


@dataclass(frozen=True)
class SystemEntry:
    """A system as written: its name, what it is, the claims its docstring promises, and whom it names as its source."""

    id: str
    title: str
    kind: str
    chapter: str
    module: str
    name: str
    path: Path
    line: int
    sentence: str
    claims: tuple[str, ...] = ()
    room: str = ""
    source: str = ""
    example: str = ""  # one call that makes it and runs it

    @property
    def import_line(self) -> str:
        """The line of Python that gives it."""
        return f"from lemmata.{self.chapter} import {self.name}"


@dataclass(frozen=True)
class RecipeEntry:
    """A recipe as written: which system it trains, on what (names of data sets, the usual one first), measured how."""

    system: str
    data: str
    metric: str
    module: str
    name: str
    path: Path
    line: int


def marked(entry: SystemEntry | RecipeEntry) -> Any:
    """The class or function that was found by its mark; this imports its chapter, and with it torch."""
    return getattr(importlib.import_module(entry.module), entry.name)


@dataclass
class Catalog:
    """Everything the package states, checks and builds, with the faults found on the way."""

    statements: dict[str, Statement] = field(default_factory=dict)
    claims: dict[str, ClaimEntry] = field(default_factory=dict)
    systems: dict[str, SystemEntry] = field(default_factory=dict)
    recipes: list[RecipeEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def open(self) -> list[str]:
        """Ids that are stated but have no check yet."""
        return [id for id in self.statements if id not in self.claims]

    @functools.cached_property
    def authors(self) -> dict[str, str]:
        """Statement -> whom the systems that promise it name as their source."""
        found: dict[str, str] = {}
        for entry in self.systems.values():
            for id in entry.claims:
                found[id] = f"{found.get(id, '')} {entry.source}".strip()
        return found

    @functools.cached_property
    def built_on(self) -> dict[str, list[str]]:
        """Statement -> the statements that build on it, in the order of the course."""
        found: dict[str, list[str]] = {}
        for statement in self.statements.values():
            for id in statement.builds_on:
                found.setdefault(id, []).append(statement.id)
        return found

    def settled(self, id: str, erratum: Erratum) -> str:
        """How a misprint is settled: refuted (a lie says what is printed), read as one of READINGS, or open."""
        if erratum.reading:
            return erratum.reading
        claim = self.claims.get(id)
        return "refuted" if claim and any(lie.printed == erratum.key for lie in claim.lies) else "open"
