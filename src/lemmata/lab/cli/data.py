"""`lemmata data`: the data sets, and how the large ones get here."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from lemmata.catalog.search import did_you_mean
from lemmata.data.cache import cached_path
from lemmata.data.registry import DatasetEntry, entries
from lemmata.lab.cli.terminal import console, maths, print_json, words
from lemmata.lab.words import UserError

PLACES = {
    "embedded": "part of the package",
    "generated": "made by a formula",
    "cached": "fetched before and checked",
    "fetchable": "lemmata data NAME --fetch",
    "from a file": "lemmata data NAME --from FILE",
}


@dataclass(frozen=True)
class Arguments:
    """List the data sets, or show some: what each is, its licence, where it lies.

    Embedded sets are part of the package and generated ones are made by a formula. The others are fetched once, or read
    from an archive that you have; both ways are checked by SHA-256, and the set is kept in the cache.
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Data sets to show; a list of all if none."""
    fetch: bool = False
    """Download the set over HTTPS and keep it."""
    from_: Annotated[tuple[Path, ...] | None, tyro.conf.arg(name="from", metavar="FILE ...")] = None
    """Read the set from these archives, files or folders and keep it."""
    json: bool = False
    """Print the sets as JSON."""


def run(arguments: Arguments) -> int:
    unknown = [name for name in arguments.names if name not in entries()]
    wanted = [entries()[name] for name in arguments.names if name in entries()]
    getting = arguments.fetch or arguments.from_ is not None
    if getting:
        _get_sets(arguments, wanted)
    if arguments.json:
        print_json([contract(entry) for entry in (wanted if arguments.names else entries().values())])
    elif not arguments.names:
        _list_sets(list(entries().values()))
    elif not getting:
        for entry in wanted:
            _show_set(entry)
    for name in unknown:
        print(f"lemmata: unknown data set {name!r}{did_you_mean(name, entries())}", file=sys.stderr)
    return 2 if unknown else 0


def contract(entry: DatasetEntry) -> dict[str, Any]:
    """The stable JSON form of a data set; `path` is where a fetched one lies, or will lie."""
    keys = ("name", "title", "task", "origin", "size", "shape", "splits", "licence", "credit")
    path = cached_path(entry.name) if entry.origin == "fetched" else None
    place = {"cached": bool(path and path.is_file()), "path": str(path) if path else None}
    return {key: getattr(entry, key) for key in keys} | place


def _where_words(entry: DatasetEntry) -> str:
    if entry.origin != "fetched":
        return entry.origin
    if cached_path(entry.name).is_file():
        return "cached"
    return "fetchable" if "fetch" in entry.options else "from a file"


def _list_sets(shown: list[DatasetEntry]) -> None:
    """One line for each set, below where it is; what does not fit is in `lemmata data NAME`."""
    screen = console()
    wide = screen.width >= 110
    widths = {"name": max(len(entry.name) for entry in shown), "task": 20 if wide else 14, "size": 24 if wide else 16}
    left = screen.width - sum(widths.values()) - 2 * (len(widths) + 1)
    if left >= 24:  # a narrower terminal is better off without
        widths |= {"shape": left * 3 // 5, "licence": left - left * 3 // 5}
    for where, hint in PLACES.items():
        if group := [entry for entry in shown if _where_words(entry) == where]:
            screen.print(f"[bold]{where}[/]  [dim]{hint}[/]", soft_wrap=True)
            screen.print(_set_table(group, widths))
            screen.print()
    screen.print("[dim]lemmata data NAME tells more of one[/]")


def _set_table(group: list[DatasetEntry], widths: dict[str, int]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    for key, width in widths.items():
        table.add_column(width=width, no_wrap=True, overflow="ellipsis", style="dim" if key == "licence" else None)
    for entry in group:
        # Its heading says it already: "generated, none needed".
        table.add_row(*(words(getattr(entry, key).removeprefix("generated, ")) for key in widths))
    return table


def _show_set(entry: DatasetEntry) -> None:
    facts = {
        "task": entry.task,
        "size": f"{entry.size} ({entry.splits})",
        "shape": entry.shape,
        "licence": entry.licence,
        "credit": entry.credit,
        **_place_of_set(entry),
        "options": ", ".join(f"{name}={default}" for name, default in entry.options.items()),
        "in Python": f'from lemmata.data import load; data = load("{entry.name}")',
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for fact, told in facts.items():
        if told:
            table.add_row(fact, words(told))
    screen = console()
    screen.print(f"[bold]{entry.name}[/]  {words(entry.title)}\n\n{maths(entry.sentence)}\n")
    screen.print(table)
    screen.print()


def _place_of_set(entry: DatasetEntry) -> dict[str, str]:
    """Where a set lies, or how to get it."""
    where, path = _where_words(entry), cached_path(entry.name)
    if where in ("embedded", "generated"):
        return {"where": PLACES[where]}
    if where == "cached":
        return {"where": f"{path} ({path.stat().st_size / 1e6:.1f} MB)"}
    source = _fetch_source(entry)
    fetched = {"to fetch": f"lemmata data {entry.name} --fetch, {source.size / 1e6:.1f} MB"} if source.remotes else {}
    return (
        {"where": "not here yet"} | fetched | {"to read": f"lemmata data {entry.name} --from FILE: {source.packages}"}
    )


def _fetch_source(entry: DatasetEntry) -> Any:
    return importlib.import_module(entry.module).SOURCES[entry.name]


def _get_sets(arguments: Arguments, wanted: list[DatasetEntry]) -> None:
    """Fetch the sets, or read one, and say where it is kept."""
    if arguments.fetch and arguments.from_ is not None:
        raise UserError("--fetch and --from are two ways to the same: choose one")
    if not arguments.names:
        raise UserError("a name is missing: lemmata data mnist --fetch, or lemmata data mnist --from FILE")
    if arguments.from_ is not None and (not arguments.from_ or len(arguments.names) > 1):
        raise UserError("--from takes one data set and its files: lemmata data mnist --from FILE")
    from lemmata.data.archives import ArchiveError
    from lemmata.data.fetch import FetchError

    for entry in wanted:
        try:
            told = _kept_message(entry, arguments)
        except (ArchiveError, FetchError, FileNotFoundError) as error:
            raise UserError(str(error)) from error
        console(stderr=arguments.json).print(words(told), soft_wrap=True)


def _kept_message(entry: DatasetEntry, arguments: Arguments) -> str:
    if entry.origin != "fetched":
        if arguments.from_:
            raise UserError(f"{entry.name} is {entry.origin}, so --from has nothing to bring")
        return f"{entry.name} is {entry.origin}: there is nothing to fetch"
    from lemmata.data.fetched import cached_arrays, fetch_source, keep_from

    source, path = _fetch_source(entry), cached_path(entry.name)
    if arguments.from_:
        with console(stderr=True).status(f"reading and checking {entry.name}"):
            path = keep_from(source, arguments.from_)
    elif path.is_file() and _is_whole(lambda: cached_arrays(source)):
        return f"{entry.name} is here already: {path}"
    else:
        with _fetch_progress(entry.name) as progress:
            path = fetch_source(source, progress)
    return f"{entry.name}: {entry.size}, checked and kept as {path}"


def _is_whole(read: Any) -> bool:
    try:
        read()
    except ValueError:
        return False
    return True


@contextmanager
def _fetch_progress(name: str) -> Iterator[Any]:
    """A live bar on a terminal, nothing elsewhere."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda done, size: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(40), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(escape(name), total=None)
        yield lambda done, size: bar.update(task, completed=done, total=size)
