"""`lemmata source 003`: every statement of one source in its order, with verdicts: nothing was dropped."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.table import Table

from lemmata import catalog as catalogs
from lemmata.catalog import Catalog
from lemmata.catalog.settlement import settlement
from lemmata.catalog.sources import cited, sources
from lemmata.catalog.statements import Statement
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import remembered
from lemmata.judge.verdict import Result
from lemmata.lab.cli.terminal import console, mark, maths, print_json
from lemmata.lab.words import UserError


@dataclass(frozen=True)
class Arguments:
    """Every statement that one source makes, in its order, with verdict and misprints."""

    source: Annotated[str, tyro.conf.Positional] = ""
    """Key of the source, for example 003; the list of sources if none."""
    json: bool = False
    """Print the list as JSON."""


def run(arguments: Arguments) -> int:
    catalog, notes = catalogs.load(), sources()
    for problem in catalog.problems:
        print(f"lemmata: {problem}", file=sys.stderr)
    if not arguments.source:
        return _list_sources(catalog, notes, arguments.json)
    source = arguments.source.zfill(3)  # 3 is 003
    if source not in notes:
        raise UserError(f"unknown source {arguments.source!r}: the sources are {', '.join(notes)}")
    rows = cited(catalog, source)
    ledger = Ledger()
    known = remembered((catalog.claims[s.id] for _, s in rows if s.id in catalog.claims), ledger)
    if arguments.json:
        print_json([_source_row(catalog, known, source, where, statement) for where, statement in rows])
    else:
        _print_source(catalog, known, source, notes[source], rows)
    return 0


def _source_row(
    catalog: Catalog, known: dict[str, Result], source: str, where: str, statement: Statement
) -> dict[str, Any]:
    errata = [e for e in statement.errata if e.source == source]
    return {
        "where": where,
        "id": statement.id,
        "title": statement.title,
        "verdict": _verdict_word(catalog, known, statement.id),
        "misprints": [{"number": e.number, "settled": settlement(catalog, known, statement.id, e)} for e in errata],
    }


def _verdict_word(catalog: Catalog, known: dict[str, Result], id: str) -> str:
    return known[id].verdict if id in known else "open" if id not in catalog.claims else "not judged"


def _print_source(
    catalog: Catalog, known: dict[str, Result], source: str, note: dict[str, str], rows: list[tuple[str, Statement]]
) -> None:
    screen = console()
    screen.print(f"[bold]{source}  {note['title']}[/]  [dim]{note['author']}[/]\n")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("where", "verdict", "id", "statement", "misprints"):
        table.add_column(heading, no_wrap=heading in ("id", "verdict"))
    last = None
    for where, statement in rows:
        row = _source_row(catalog, known, source, where, statement)
        verdict = "[dim]not judged[/]" if row["verdict"] == "not judged" else mark(row["verdict"])
        told = "not run yet" if row["verdict"] == "not judged" else ""
        misprints = ", ".join(f"{source}/{m['number']} {told or m['settled']}" for m in row["misprints"])
        table.add_row("" if where == last else maths(where), verdict, statement.id, maths(statement.title), misprints)
        last = where
    screen.print(table)
    screen.print(f"\n{len(rows)} statements; nothing of this source's part in the catalog is left out.")


def _list_sources(catalog: Catalog, notes: dict[str, dict[str, str]], as_json: bool) -> int:
    rows = [{"source": key, **note, "statements": len(cited(catalog, key))} for key, note in notes.items()]
    if as_json:
        print_json(rows)
        return 0
    for row in rows:
        console().print(
            f"[bold]{row['source']}[/]  {row['title']}  [dim]{row['author']}[/]  {row['statements']} statements"
        )
    return 0
