"""`lemmata claims`: what is claimed, by chapter, with the verdicts the ledger remembers."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from lemmata import catalog as catalogs
from lemmata.catalog import Catalog
from lemmata.catalog.selection import select
from lemmata.catalog.statements import Statement
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import remembered
from lemmata.judge.verdict import Result
from lemmata.lab.cli.terminal import console, mark, maths, print_json


@dataclass(frozen=True)
class Arguments:
    """List statements and their claims."""

    patterns: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Ids, topics (hopfield), patterns ('cover.*'), chapters or rooms (linear_algebra), words, authors; all if none."""
    json: bool = False
    """Print the list as JSON."""


def run(arguments: Arguments) -> int:
    catalog = catalogs.load()
    chosen = select(catalog, arguments.patterns, text=True)
    ids = set(chosen.ids)
    statements = [statement for id, statement in catalog.statements.items() if id in ids]
    if arguments.json:
        known = _remembered_verdicts(catalog, statements)
        print_json([contract(catalog, s) | {"verdict": _verdict_word(catalog, known, s.id)} for s in statements])
    else:
        _print_claims(catalog, statements)
    for fault in [*catalog.problems, *chosen.faults]:
        print(f"lemmata: {fault}", file=sys.stderr)
    return 2 if chosen.faults else 0


def contract(catalog: Catalog, statement: Statement) -> dict[str, Any]:
    """The stable JSON form of a claim."""
    claim = catalog.claims.get(statement.id)
    lies = [{"text": lie.text, "printed": lie.printed} for lie in claim.lies] if claim else []
    fields = ("id", "kind", "chapter", "room", "title", "statement", "cost")
    return {key: getattr(statement, key) for key in fields} | {"sources": list(statement.sources), "lies": lies}


def _remembered_verdicts(catalog: Catalog, statements: list[Statement]) -> dict[str, Result]:
    """The verdicts that the ledger remembers of these statements."""
    ledger = Ledger()
    known = remembered((catalog.claims[s.id] for s in statements if s.id in catalog.claims), ledger)
    for message in ledger.messages:
        print(f"lemmata: {message}", file=sys.stderr)
    return known


def _print_claims(catalog: Catalog, statements: list[Statement]) -> None:
    screen = console()
    known = _remembered_verdicts(catalog, statements)
    for chapter, room in dict.fromkeys((statement.chapter, statement.room) for statement in statements):
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(width=10)
        table.add_column(no_wrap=True)
        table.add_column(style="dim")
        for statement in (s for s in statements if (s.chapter, s.room) == (chapter, room)):
            table.add_row(
                _verdict_text(catalog, known, statement.id), statement.id, statement.kind, maths(statement.title)
            )
        screen.print(f"\n[bold]{chapter}[/] {room}".rstrip())
        screen.print(table)


def _verdict_text(catalog: Catalog, known: dict[str, Result], id: str) -> Text:
    verdict = _verdict_word(catalog, known, id)
    return Text(verdict, style="dim") if verdict == "not judged" else mark(verdict)


def _verdict_word(catalog: Catalog, known: dict[str, Result], id: str) -> str:
    return known[id].verdict if id in known else "open" if id not in catalog.claims else "not judged"
