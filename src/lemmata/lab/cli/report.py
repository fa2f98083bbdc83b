"""`lemmata report`: the lab's pages as files, to keep, to print, to pass on."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from lemmata import catalog as catalogs
from lemmata.catalog.selection import select
from lemmata.lab.words import UserError, count

NEEDED = ("fastapi", "jinja2")


@dataclass(frozen=True)
class Arguments:
    """Write the lab's pages as static files that open from disk: no server, no scripts, no network."""

    out: Path
    """The folder to write; it must be absent, empty, or an earlier report, which is then replaced."""
    patterns: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Ids, topics (hopfield), patterns, chapters or their rooms (linear_algebra); everything if none."""
    offline: bool = False
    """Fetch no fonts, which a checkout lacks at first; the pages read without them."""


def run(arguments: Arguments) -> int:
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise UserError(f"the report needs {', '.join(missing)}: pip install 'lemmata[lab]'")
    if files := [word for word in arguments.patterns if word.endswith(".py")]:
        raise UserError(f"a report is about statements of lemmata, not of {files[0]}: give ids, topics or chapters")
    catalog = catalogs.load()
    chosen = select(catalog, arguments.patterns, text=True)
    for fault in [*catalog.problems, *chosen.faults]:
        print(f"lemmata: {fault}", file=sys.stderr)
    if chosen.faults:
        return 2
    _write_report(
        arguments.out.expanduser().resolve(), set(chosen.ids) if arguments.patterns else None, arguments.offline
    )
    return 0


def _write_report(folder: Path, ids: set[str] | None, offline: bool) -> None:
    from lemmata.lab.report.contents import narrowed, report_files
    from lemmata.lab.report.folder import NotOurs, refuse_others, try_folder, write_folder
    from lemmata.lab.site import assets
    from lemmata.lab.site.knowledge import known

    try:
        refuse_others(folder)
        try_folder(folder)
        if not offline:
            assets.build(lambda line: print(line, file=sys.stderr))
        snapshot = known() if ids is None else narrowed(known(), ids)
        files = list(report_files(snapshot))
        size = write_folder(folder, files)
    except NotOurs as problem:
        raise UserError(str(problem)) from None
    pages = sum(name.endswith(".html") for name, _ in files)
    print(f"{count(pages, 'page')} ({size / 1e6:.1f} MB): open {folder / 'index.html'}")
    if unjudged := len(snapshot.catalog.claims.keys() & snapshot.catalog.statements.keys() - snapshot.results.keys()):
        print(f"{count(unjudged, 'claim')} not judged on this machine: lemmata check, then write the report again")
