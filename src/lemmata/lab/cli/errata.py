"""`lemmata errata`: every remark on the sources and how it was settled."""

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from lemmata import catalog as catalogs
from lemmata.catalog import Catalog
from lemmata.catalog.selection import select
from lemmata.catalog.settlement import contract, settlement
from lemmata.catalog.sources import sources
from lemmata.catalog.statements import READINGS, Erratum
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import remembered
from lemmata.judge.verdict import Result
from lemmata.lab.cli.terminal import console, maths, print_json, words
from lemmata.lab.words import UserError, count


@dataclass(frozen=True)
class Arguments:
    """List the remarks on the sources: what is printed, what is right, and what became of each."""

    patterns: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Ids, topics (hopfield), patterns, chapters or their rooms (linear_algebra); everything if none."""
    source: str = ""
    """Only those of one source, for example 003."""
    json: bool = False
    """Print the list as JSON."""


def run(arguments: Arguments) -> int:
    catalog = catalogs.load()
    chosen = select(catalog, arguments.patterns, text=True)
    claims = [catalog.claims[id] for id in chosen.ids if id in catalog.claims]
    ledger = Ledger()
    known = remembered(claims, ledger)
    found = [(id, e) for id in catalog.statements if id in set(chosen.ids) for e in catalog.statements[id].errata]
    found = [(id, e) for id, e in found if arguments.source in ("", e.source)]
    if arguments.source and arguments.source not in sources():
        raise UserError(f"unknown source {arguments.source!r}: the sources are {', '.join(sources())}")
    if arguments.json:
        print_json([contract(catalog, known, id, erratum) for id, erratum in found])
    else:
        _print_errata(console(), catalog, known, found)
    for fault in [*catalog.problems, *chosen.faults, *ledger.messages]:
        print(f"lemmata: {fault}", file=sys.stderr)
    return 2 if chosen.faults else 0


def _print_errata(
    screen: Console, catalog: Catalog, known: dict[str, Result], found: list[tuple[str, Erratum]]
) -> None:
    tally = Counter(settlement(catalog, known, id, erratum) for id, erratum in found)
    for id, erratum in found:
        settled = settlement(catalog, known, id, erratum)
        waiting = settled == "refuted" and id not in known
        screen.print(
            f"\n[bold]{id}[/]  [dim]{erratum.key}[/]  {'a lie refutes it, not run yet' if waiting else settled}"
        )
        rows = [("printed", f"[italic]{maths(erratum.printed)}[/]"), ("problem", maths(erratum.problem))]
        rows += [("correct", maths(erratum.correct))]
        lies = [lie for lie in known[id].lies if lie["printed"] == erratum.key] if id in known else []
        rows += [("machine", words(lie["how"])) for lie in lies if lie["rejected"]]
        rows += [(settled, maths(erratum.reason))] if erratum.reading else []
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="dim", width=10)
        for name, text in rows:
            table.add_row(name, text)
        screen.print(Padding(table, (0, 0, 0, 2)))
    settled = ", ".join(f"{tally[word]} {word}" for word in ("refuted", *READINGS, "open") if tally[word])
    screen.print(f"\n{count(len(found), 'remark')}" + (f": {settled}." if settled else "."))
    if any(id not in known and catalog.settled(id, e) == "refuted" for id, e in found):
        screen.print("[dim]Some refutations have not been run on this machine yet: lemmata check[/]")
