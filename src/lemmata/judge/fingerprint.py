"""The key of a verdict: everything that could change it, hashed.

A claim's key covers its parameters, the seed, its source file with every file of the package it imports (read by `ast`,
nothing is run), and the versions of what it computes with. Unchanged key, unchanged verdict.
"""

import ast
import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lemmata.catalog import ClaimEntry, load
from lemmata.files import cache_folder
from lemmata.index import Index

__all__ = ["versions"]  # fingerprint() has its file's name: import it from here

PACKAGE = Path(__file__).resolve().parents[1]
JUDGES = PACKAGE / "judge" / "worker.py"
Stamp = tuple[int, int]


def fingerprint(claim: ClaimEntry, seed: int) -> str:
    """SHA-256 over the claim, the seed, the code it runs and the versions it runs on."""
    return _key(claim, seed, _sources(claim.path))


def fingerprints(claims: Iterable[ClaimEntry], seed: int) -> dict[str, str]:
    """The keys of many claims by their ids, at one moment: a file with ten claims is looked at once."""
    sources = functools.cache(_sources)
    return {claim.id: _key(claim, seed, sources(claim.path)) for claim in claims}


def _key(claim: ClaimEntry, seed: int, sources: list[tuple[str, str]]) -> str:
    parts = [claim.id, claim.function, claim.cost, seed, sources, versions()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _sources(path: Path) -> list[tuple[str, str]]:
    """The code that a claim in this file runs, and the judge's: (label, digest) of each file."""
    return sorted(_named(file, stamp) for file, stamp in (_stamped(path) | _stamped(JUDGES)).items())


@functools.cache
def versions() -> dict[str, str]:
    """Versions of everything that computes, for keys and for `lemmata doctor`."""
    found = {"python": platform.python_version(), "machine": f"{sys.platform} {platform.machine()}"}
    for name in ("torch", "numpy", "scipy", "sympy", "networkx", "scikit-learn"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


_closures: dict[Path, dict[Path, Stamp]] = {}


def closure(path: Path) -> frozenset[Path]:
    """A file, the files it imports (installed packages aside), theirs in turn, and our data files."""
    return frozenset(_stamped(path))


def _stamped(path: Path) -> dict[Path, Stamp]:
    """The closure with the stamp of each file; looked up again when one has changed, so that a server sees edits."""
    known = _closures.get(path)
    if known is None or any(_stamp(file) != stamp for file, stamp in known.items()):
        known = _closures[path] = {file: _stamp(file) for file in _reachable(path.resolve())}
    return known


def home(path: Path) -> Path:
    """The folder from which a file is imported: the first one upwards that is no package."""
    folder = path.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _reachable(path: Path) -> set[Path]:
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            ours = PACKAGE in current.parents  # the same for every claim, whatever its file
            waiting += _our_imports(current, _stamp(current)) if ours else _imports(current, home(path))
    folders = {file.parent for file in seen if PACKAGE in file.parents and file.parent != PACKAGE}
    data = (file for folder in folders for file in folder.rglob("*"))
    return seen | {file for file in data if file.suffix in (".npz", ".gz", ".json", ".safetensors")}


@functools.cache
def _our_imports(path: Path, stamp: Stamp) -> tuple[Path, ...]:
    return tuple(_imports(path, PACKAGE.parent))


def _imports(path: Path, root: Path) -> Iterator[Path]:
    for module, name, level in _import_lines(path, _stamp(path)):
        base = path.parents[level - 1] if level else None
        if name is None:
            yield from _find(module, path, root, base)
        else:
            yield from _from(module, name, path, root, base)
    for _, system in (entry for entry in _outline(path, _stamp(path)) if len(entry) == 2):
        yield PACKAGE / "train" / "checkpoint.py"
        if system:
            yield PACKAGE / "train" / "loop.py"
            yield from (recipe.path.resolve() for recipe in load().recipes if system in ("*", recipe.system))


def _import_lines(path: Path, stamp: Stamp) -> list[tuple[str, str | None, int]]:
    """(module, name, level) of every import in a file; name is None for `import module`."""
    return [entry for entry in _outline(path, stamp) if len(entry) == 3]


def _public_names(package: Path) -> dict[str, str]:
    """Public name -> file stem, as `lemmata.lazy` finds them."""
    files = sorted(package.glob("[!_]*.py"))
    return {entry[0]: file.stem for file in files for entry in _outline(file, _stamp(file)) if len(entry) == 1}


@functools.cache
def _outline(path: Path, stamp: Stamp) -> list[tuple[Any, ...]]:
    """What a file imports or has trained by a recipe, and the names it lists in a literal `__all__`; parsed once."""
    index = _index(cache_folder() / "imports.json")
    return index.read(path, "outline", functools.partial(_read_outline, path))[0]


@functools.cache
def _index(path: Path) -> Index:
    index = Index(path, (), [Path(__file__)])
    atexit.register(index.keep)
    return index


def _read_outline(path: Path, problems: list[str]) -> Iterator[tuple[Any, ...]]:
    try:
        tree = ast.parse(path.read_bytes(), str(path)) if path.suffix == ".py" else ast.Module([], [])
    except (SyntaxError, ValueError):
        return  # it cannot be imported; the worker says so
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name, node.level) for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "trained":
            # By two functions, or by the recipe of a system, which no import names.
            yield (
                "trained",
                "" if len(node.args) == 2 else str(getattr(node.args[0], "value", "*")) if node.args else "*",
            )
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            with contextlib.suppress(ValueError, TypeError):  # somebody else's file, where it is computed
                yield from ((str(name),) for name in ast.literal_eval(node.value))


def _from(module: str, name: str, path: Path, root: Path, base: Path | None) -> list[Path]:
    """`from module import name`: the module, and in a package the file `name` or the one that defines it."""
    files = _find(module, path, root, base) if module else [base / "__init__.py"] if base else []
    if not files or not files[-1].exists() or files[-1].name != "__init__.py":
        return files if module else []
    package = files[-1].parent
    stem = _public_names(package).get(name, name)
    inner = [package / f"{stem}.py", package / stem / "__init__.py"]
    return [*files, *(file.resolve() for file in inner if file.exists())]


def _find(module: str, path: Path, root: Path, base: Path | None = None) -> list[Path]:
    """The file of a dotted module name after those of the packages around it; nothing for an installed package."""
    parts = module.split(".")
    ours = parts[0] == PACKAGE.name
    if not ours and not base and PACKAGE in path.parents:
        return []  # what we import from others is installed
    roots = [base] if base else [PACKAGE.parent] if ours else [home(path), root, _working_copy(parts[0])]
    for folder in filter(None, roots):
        for file in (folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts) / "__init__.py"):
            if file.exists():
                around = (folder.joinpath(*parts[:k]) / "__init__.py" for k in range(1, len(parts)))
                return [*(f.resolve() for f in around if f.exists() and not ours), file.resolve()]
    return []


@functools.cache
def _working_copy(top: str) -> Path | None:
    """The folder that holds a module which is on the import path but not installed: the user's own code."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if not spec or not spec.origin or not spec.origin.endswith(".py"):
        return None
    file = Path(spec.origin).resolve()
    installed = {Path(place).resolve() for place in sysconfig.get_paths().values()}
    if installed & set(file.parents) or {"site-packages", "dist-packages"} & set(file.parts):
        return None
    return file.parents[1] if file.name == "__init__.py" else file.parent


def _label(path: Path) -> str:
    """The same on every machine: below the package by its place there, elsewhere by its name."""
    return path.relative_to(PACKAGE).as_posix() if PACKAGE in path.parents else path.name


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return (0, -1)
    return (status.st_mtime_ns, status.st_size)


@functools.cache
def _named(path: Path, stamp: Stamp) -> tuple[str, str]:
    """A file's label and digest, which most claims share: made once for each state of the file."""
    return _label(path), hashlib.sha256(path.read_bytes()).hexdigest()
