"""Whether statements, claims, systems and recipes agree with each other."""

import graphlib
from collections.abc import Iterator
from pathlib import Path

from lemmata.catalog.dials import dials_in, shows
from lemmata.catalog.entries import Catalog, ClaimEntry
from lemmata.catalog.statements import Statement

__all__ = ["disagreements", "groundless"]


def disagreements(catalog: Catalog) -> Iterator[str]:
    """What is wrong between them: claims without a statement, lies without a misprint, unknown names, false dials."""
    for id, claim in catalog.claims.items():
        where = f"{claim.path}:{claim.line}"
        if id not in catalog.statements:
            yield f"{where}: claim {id!r} has no statement: add it to the chapter's statements.yaml"
            continue
        room = claim.path.parents[1].name
        if room != (catalog.statements[id].room or catalog.statements[id].chapter):
            yield f"{where}: claim {id!r} stands in {room}, its statement elsewhere: move one to the other"
        yield from _wrong_dials(catalog.statements[id], claim)
        keys = {erratum.key: erratum for erratum in catalog.statements[id].errata}
        for lie in claim.lies:
            if lie.printed and lie.printed not in keys:
                yield f"{where}: lie {lie.text!r} quotes {lie.printed}, but {id} has {', '.join(keys) or 'no errata'}"
            elif lie.printed and keys[lie.printed].reading:
                yield f"{where}: {lie.printed} of {id} is a lie here and {keys[lie.printed].reading} in statements.yaml"
    for entry in catalog.systems.values():
        for id in entry.claims:
            if id not in catalog.statements:
                yield f"{entry.path}:{entry.line}: {entry.name} promises the unknown claim {id!r}"
    for recipe in catalog.recipes:
        if recipe.system not in catalog.systems:
            yield f"{recipe.path}:{recipe.line}: {recipe.name} trains the unknown system {recipe.system!r}"


def groundless(catalog: Catalog, root: Path) -> Iterator[str]:
    """Statements below a package folder that build on unknown ones or, by whatever way round, on themselves."""
    for statement in catalog.statements.values():
        where = f"{root / statement.chapter / statement.room / 'statements.yaml'}:{statement.line}: {statement.id}"
        for id in [id for id in statement.builds_on if id not in catalog.statements]:
            yield f"{where} builds on the unknown statement {id!r}"
    try:
        graphlib.TopologicalSorter({id: s.builds_on for id, s in catalog.statements.items()}).prepare()
    except graphlib.CycleError as error:
        yield f"{root}: statements build on each other in a circle: {', '.join(reversed(error.args[1]))}"


def _wrong_dials(statement: Statement, claim: ClaimEntry) -> Iterator[str]:
    """A dial must stand for an argument of the check, and show its true value."""
    defaults = dict(claim.arguments)
    known = {argument.name: argument for argument in statement.arguments}
    where = f"{claim.path.parents[1] / 'statements.yaml'}:{statement.line}: {statement.id}"
    for name in [name for name in known if name not in defaults]:
        yield f"{where} has words for {name!r}, which is no argument of its check"
    for argument in [argument for argument in known.values() if argument.name in defaults]:
        told = {defaults[argument.name]} | {lie.value for lie in claim.lies if lie.argument == argument.name}
        for value in [value for value, _ in argument.values if value not in told]:
            yield f"{where} has a label for {argument.name} = {value}, which the check never has"
    for name, shown in dials_in(statement.dialled):
        if name not in defaults:
            yield f"{where} has a dial {name!r}, which is no argument of its check"
        elif not shows(shown, defaults[name], known[name].label(defaults[name]) if name in known else ""):
            yield f"{where} shows {shown or 'nothing'} on the dial {name!r}, but the check has {defaults[name]}"
