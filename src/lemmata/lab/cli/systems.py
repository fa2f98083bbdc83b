"""`lemmata systems`: what is built."""

import itertools
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.table import Table

from lemmata import catalog as catalogs
from lemmata.catalog import Catalog, SystemEntry
from lemmata.catalog.search import did_you_mean, search_systems
from lemmata.lab.cli.terminal import console, maths, print_json
from lemmata.lab.recipe_choice import data_of


@dataclass(frozen=True)
class Arguments:
    """List the systems: what each is, where to import it from, and on which data `lemmata train` trains it."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Systems, chapters or their rooms (linear_algebra), or words and authors (message passing, kipf); all if none."""
    json: bool = False
    """Print the list as JSON."""


def run(arguments: Arguments) -> int:
    catalog = catalogs.load()
    known = {name for entry in catalog.systems.values() for name in (entry.id, entry.chapter, entry.room)} - {""}
    other = [name for name in arguments.names if name not in known]
    found = set(search_systems(catalog, " ".join(other)))
    asked = set(arguments.names)
    wanted = [e for e in catalog.systems.values() if not asked or e.id in found or {e.id, e.chapter, e.room} & asked]
    unknown = [] if found else other
    if arguments.json:
        print_json([contract(catalog, entry) for entry in wanted])
    elif wanted:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("system", "what it is", "import"):
            table.add_column(heading, no_wrap=heading == "system")
        for (chapter, room), entries in itertools.groupby(wanted, lambda entry: (entry.chapter, entry.room)):
            table.add_row(f"\n[bold]{chapter}[/] {room}".rstrip())
            for entry in entries:
                data = " ".join(data_of(catalog, entry.id))
                told = f"{entry.title}: [dim]{maths(entry.sentence)}[/]" + (f"\ntrains on {data}" if data else "")
                table.add_row(entry.id, told, entry.import_line)
        console().print(table)
    for name in unknown:
        print(f"lemmata: no system is called or speaks of {name!r}{did_you_mean(name, known)}", file=sys.stderr)
    return 2 if unknown else 0


def contract(catalog: Catalog, entry: SystemEntry) -> dict[str, Any]:
    """The stable JSON form of a system."""
    fields = {key: getattr(entry, key) for key in ("id", "chapter", "room", "title", "kind")}
    data = data_of(catalog, entry.id)
    return fields | {"import": entry.import_line, "data": data, "trains": bool(data)}
