"""What a report holds: every page of the lab that is read rather than run, with its figures, style sheets and fonts."""

import dataclasses
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from lemmata.lab.report.addresses import file_of, relinked
from lemmata.lab.site.figures import figure_csv, figure_svg
from lemmata.lab.site.files import FOLDERS, listing
from lemmata.lab.site.knowledge import Snapshot
from lemmata.lab.site.pages import render
from lemmata.lab.site.views.atlas import atlas_context
from lemmata.lab.site.views.claim import claim_context
from lemmata.lab.site.views.errata import csv_text, errata_context
from lemmata.lab.site.views.home import home_context
from lemmata.lab.site.views.source import source_context, sources_context
from lemmata.lab.site.views.systems import system_context, systems_context
from lemmata.lab.site.views.trust import trust_context

__all__ = ["narrowed", "report_files"]

LEFT = (".js", ".json")  # what only scripts read
ALL: dict[str, str] = dict.fromkeys(("q", "chapter", "kind", "source", "verdict", "settled"), "")


def narrowed(snapshot: Snapshot, ids: Collection[str]) -> Snapshot:
    """The same knowledge about these statements only, with the systems of which they tell."""
    catalog = snapshot.catalog
    part = dataclasses.replace(
        catalog,
        statements={id: found for id, found in catalog.statements.items() if id in ids},
        claims={id: found for id, found in catalog.claims.items() if id in ids},
        systems={id: found for id, found in catalog.systems.items() if not set(found.claims).isdisjoint(ids)},
    )
    results = {id: found for id, found in snapshot.results.items() if id in ids}
    return dataclasses.replace(snapshot, catalog=part, results=results)


def report_files(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file."""
    pages, figures, parts = list(_page_list(snapshot)), dict(_figure_list(snapshot)), dict(_static_parts())
    known = {*parts, *figures, "errata.csv", *(file_of(address) for address, _, _ in pages)}
    for address, template, context in pages:
        page = render(template, path=address, static=True, **context)
        yield file_of(address), relinked(page, address, known).encode()
    for name, text in (figures | {"errata.csv": csv_text(snapshot, ALL)}).items():
        yield name, text.encode()
    for name, path in parts.items():
        yield name, path.read_bytes()


def _page_list(snapshot: Snapshot) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(address in the lab, template, what it shows)."""
    yield "/", "home.html", home_context(snapshot)
    yield "/atlas", "atlas.html", atlas_context(snapshot, ALL)
    yield "/errata", "errata.html", errata_context(snapshot, ALL)
    yield "/source", "sources.html", sources_context(snapshot)
    yield "/systems", "systems.html", systems_context(snapshot)
    yield "/trust", "trust.html", trust_context()
    for code in snapshot.sources:
        yield f"/source/{code}", "source.html", source_context(snapshot, code)
    for id in snapshot.catalog.statements:
        yield f"/claim/{id}", "claim.html", claim_context(snapshot, id, [])
    for id in snapshot.catalog.systems:
        yield f"/systems/{id}", "system.html", system_context(snapshot, id)


def _figure_list(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for id, result in snapshot.results.items():
        if figure := (result.evidence or {}).get("figure"):
            yield file_of(f"/claim/{id}/figure.svg"), figure_svg(figure)
            yield file_of(f"/claim/{id}/figure.csv"), figure_csv(figure)


def _static_parts() -> Iterator[tuple[str, Path]]:
    """Style sheets, fonts and the icon."""
    for folder, path in FOLDERS.items():
        yield from ((f"{folder}/{name}", file) for name, file in listing(path).items() if file.suffix not in LEFT)
