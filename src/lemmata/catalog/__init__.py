"""What the package holds, found without importing it.

Systems and recipes are marked in the chapters (`lemmata.marks`), statements stand in each chapter's `statements.yaml`,
claims and lies are decorated functions: all of it is read from the source by `ast`. So listing everything costs no
import of torch, and adding a system or a claim edits no table.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from lemmata.catalog import dials, entries, reading, statements
from lemmata.catalog.consistency import disagreements, groundless
from lemmata.catalog.entries import Catalog, ClaimEntry, LieEntry, RecipeEntry, SystemEntry, marked
from lemmata.catalog.index import Index
from lemmata.catalog.reading import promised, read_claims, read_systems
from lemmata.catalog.sources import invented_places
from lemmata.catalog.statements import Argument, Erratum, Statement, read_statements
from lemmata.files import cache_folder

__all__ = [
    "CHAPTERS",
    "Catalog",
    "ClaimEntry",
    "LieEntry",
    "RecipeEntry",
    "SystemEntry",
    "by_room",
    "load",
    "marked",
    "optimizers",
    "promised",
    "read_claims",
]

# The order of the course. A chapter exists once its folder has a statements.yaml or, named here, any file at all.
CHAPTERS = (
    "foundations connectionism feedforward optim tricks convolution vision recurrent transformers geometric "
    "kernel bayes generalization generative robustness continual meta"
).split()
ROOMS = "linear_algebra matrix_calculus analysis probability information activations".split()
Row = TypeVar("Row")
SHARED = ("certified", "measure", "fast")  # folders that chapters stand on, which have systems too


@functools.cache
def load(root: Path | None = None) -> Catalog:
    """Read every chapter below a package folder (default: lemmata itself)."""
    root = root or Path(__file__).parents[1]
    catalog = Catalog()
    kinds = (Statement, Argument, Erratum, ClaimEntry, LieEntry, SystemEntry, RecipeEntry)
    readers = [Path(module.__file__ or "") for module in (dials, entries, reading, statements)]
    index = Index(cache_folder() / f"catalog-{root.name}.json", kinds, readers)

    def found(path: Path, kind: str, read: Callable[[list[str]], Iterable[Any]]) -> Iterator[Any]:
        entries, problems = index.read(path, kind, read)
        catalog.problems.extend(problems)
        yield from entries

    for chapter, folder in _chapter_folders(root):
        room = folder.name if folder.parent != root else ""
        package = ".".join([root.name, *folder.relative_to(root).parts])
        path = folder / "statements.yaml"
        if path.exists():
            for statement in found(path, "statements", functools.partial(read_statements, folder, chapter, room)):
                _add_entry(catalog.statements, statement, path, catalog.problems)
        for path in sorted((folder / "claims").glob("*.py")):
            read = functools.partial(read_claims, path, f"{package}.claims.{path.stem}")
            for claim in found(path, "claims", read):
                _add_entry(catalog.claims, claim, path, catalog.problems)
        for path in sorted(folder.glob("*.py")):
            read = functools.partial(read_systems, path, chapter, room, f"{package}.{path.stem}")
            for entry in found(path, "systems", read):
                if isinstance(entry, RecipeEntry):
                    catalog.recipes.append(entry)
                else:
                    _add_entry(catalog.systems, entry, path, catalog.problems)
    index.keep()
    catalog.claims = {id: _with_cost(claim, catalog.statements.get(id)) for id, claim in catalog.claims.items()}
    if not any("not valid YAML" in problem for problem in catalog.problems):  # which would explain all that follow
        catalog.problems += disagreements(catalog)
        catalog.problems += groundless(catalog, root)
        catalog.problems += invented_places(catalog, root / "sources.yaml")
    return catalog


@functools.cache
def optimizers(root: Path | None = None) -> dict[str, SystemEntry]:
    """The optimisers by name. Only files that mark one are parsed, for every training starts with this."""
    root = root or Path(__file__).parents[1]
    found: dict[str, SystemEntry] = {}
    for chapter, folder in _chapter_folders(root):
        package = ".".join([root.name, *folder.relative_to(root).parts])
        for path in sorted(folder.glob("*.py")):
            if 'kind="optimizer"' in path.read_text(encoding="utf-8"):
                entries = read_systems(path, chapter, "", f"{package}.{path.stem}", [])
                found |= {e.id: e for e in entries if isinstance(e, SystemEntry) and e.kind == "optimizer"}
    return found


def by_room(rows: Iterable[Row], room: Callable[[Row], str]) -> dict[str, list[Row]]:
    """What stands in a chapter, by its rooms in the order given; under "" where the chapter has none."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(room(row), []).append(row)
    return found


def _chapter_folders(root: Path) -> Iterator[tuple[str, Path]]:
    """(chapter, folder) of every chapter and of its rooms: folders in it that have their own statements."""
    for chapter in _ordered_chapters(root):
        yield chapter.name, chapter
        rooms = {path.parent.name: path.parent for path in sorted(chapter.glob("*/statements.yaml"))}
        for name in [*(name for name in ROOMS if name in rooms), *(name for name in rooms if name not in ROOMS)]:
            yield chapter.name, rooms[name]


def _ordered_chapters(root: Path) -> list[Path]:
    found = {path.parent.name: path.parent for path in root.glob("*/statements.yaml")}
    found |= {name: root / name for name in (*CHAPTERS, *SHARED) if (root / name / "__init__.py").is_file()}
    return [found.pop(name) for name in CHAPTERS if name in found] + [found[name] for name in sorted(found)]


def _add_entry(known: dict[str, Any], entry: Any, path: Path, problems: list[str]) -> None:
    first = known.setdefault(entry.id, entry)
    if first is not entry:
        where = f"{getattr(first, 'path', path).name}:{first.line}"
        problems.append(f"{path}:{entry.line}: duplicate id {entry.id!r}, which {where} has: rename one")


def _with_cost(claim: ClaimEntry, statement: Statement | None) -> ClaimEntry:
    return ClaimEntry(**{**vars(claim), "cost": statement.cost}) if statement else claim
