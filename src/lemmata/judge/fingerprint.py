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
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lemmata.catalog import ClaimEntry, load, optimizers
from lemmata.catalog.index import Index
from lemmata.files import cache_folder
from lemmata.judge.loaded import PACKAGE, installed, place
from lemmata.lazy import provided_file

__all__ = ["versions"]  # fingerprint() has its file's name: import it from here

JUDGES = PACKAGE / "judge" / "worker.py"
CATALOG = PACKAGE / "catalog"  # lists and finds, and decides no verdict: what it finds for a claim is covered itself
Stamp = tuple[int, int, int, int]


class Source(NamedTuple):
    """One file that a verdict rests on, as it is at one moment: name, digest, and whatever any writing changes."""

    label: str
    digest: str
    stamp: Stamp


def fingerprint(claim: ClaimEntry, seed: int, found: Mapping[str, Source] | None = None) -> str:
    """SHA-256 over the claim, the seed, the code it runs (`found`, or as it is now) and the versions it runs on."""
    files = sorted((source.label, source.digest) for source in (found or sources(claim.path)).values())
    parts = [claim.id, claim.function, claim.cost, seed, files, versions()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def fingerprints(claims: Iterable[ClaimEntry], seed: int) -> dict[str, str]:
    """The keys of many claims by their ids, at one moment: a file with ten claims is looked at once."""
    at_once = functools.cache(sources)
    return {claim.id: fingerprint(claim, seed, at_once(claim.path)) for claim in claims}


def sources(path: Path) -> dict[str, Source]:
    """The code that a claim in this file runs, and the judge's, by the place of each file."""
    stamped = _stamped_closure(path) | _stamped_closure(JUDGES)
    return {
        _place(file): Source(_file_label(file), _file_digest(file, stamp), stamp) for file, stamp in stamped.items()
    }


def changed(before: Mapping[str, Source], loaded: Mapping[str, str], after: Mapping[str, Source]) -> str:
    """The place of a file that was not one and the same before, while and after a worker judged; or nothing.

    `loaded` has the digests of what the worker compiled. Of what it only read, or left alone, its stamp must be the
    old one: it was not written to, not even to be restored.
    """
    for where, old in before.items():
        new = after.get(where)
        if new is None or new.digest != old.digest:
            return where
        if loaded[where] != old.digest if where in loaded else new.stamp != old.stamp:
            return where
    return next((where for where in after if where not in before), "")


# --- What it computes with ---

# What decides which instructions, and so which last bits, the libraries use.
SWITCHES = ("ATEN_CPU_CAPABILITY", "DNNL_DEFAULT_FPMATH_MODE", "DNNL_MAX_CPU_ISA", "GLIBC_TUNABLES", "MKL_CBWR")
SWITCHES += ("MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")
SWITCHES += ("NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE")
SWITCHES += ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",)
VECTORS = ("amx", "asimd", "avx", "f16c", "fma", "sve")  # how the names of what matters begin


@functools.cache
def versions() -> dict[str, str]:
    """Versions of everything that computes, for keys and for `lemmata doctor`."""
    found = {"python": platform.python_version(), "machine": f"{sys.platform} {platform.machine()}"}
    switched = [f"{name}={os.environ[name]}" for name in SWITCHES if name in os.environ]
    found["instructions"] = "; ".join([_vector_instructions(), *switched])
    for name in ("torch", "numpy", "scipy", "sympy", "networkx", "scikit-learn"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def capability() -> str:
    """What torch will say that it computes with, as far as can be known without importing it; else nothing."""
    features = _processor_features()[1]
    if platform.machine().lower() not in ("x86_64", "amd64") or not features:
        return ""
    told = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
    if told in ("DEFAULT", "AVX2", "AVX512"):
        return told
    if {"avx512vl", "avx512bw", "avx512dq", "fma"} <= features:
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= features else "DEFAULT"


def _vector_instructions() -> str:
    """The processor's maker and its vector instructions: MKL, for one, asks for both."""
    maker, features = _processor_features()
    return " ".join([maker, *sorted(name for name in features if name.startswith(VECTORS))])


@functools.cache
def _processor_features() -> tuple[str, frozenset[str]]:
    """Maker and features, as Linux tells them; elsewhere what Python knows."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return platform.processor() or platform.machine(), frozenset()
    told = dict(line.split(":", 1) for line in reversed(text.splitlines()) if ":" in line)  # the first processor's
    told = {name.strip(): value.strip() for name, value in told.items()}
    maker = told.get("vendor_id") or told.get("CPU implementer") or platform.machine()
    return maker, frozenset((told.get("flags") or told.get("Features") or "").split())


# --- The files ---

_closures: dict[Path, dict[Path, Stamp]] = {}


def closure(path: Path) -> frozenset[Path]:
    """A file, the files it imports (installed packages aside), theirs in turn, and our data files."""
    return frozenset(_stamped_closure(path))


def _stamped_closure(path: Path) -> dict[Path, Stamp]:
    """The closure with the stamp of each file; looked up again when one has changed, so that a server sees edits."""
    known = _closures.get(path)
    if known is None or any(_file_stamp(file) != stamp for file, stamp in known.items()):
        known = _closures[path] = {file: _file_stamp(file) for file in _reachable_files(path.resolve())}
    return known


def home(path: Path) -> Path:
    """The folder from which a file is imported: the first one upwards that is no package."""
    folder = path.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _reachable_files(path: Path) -> set[Path]:
    seen: set[Path] = set()
    around = path.relative_to(home(path)).parents  # the packages it is in are imported before it
    waiting = [path, *(home(path) / folder / "__init__.py" for folder in around if folder.name)]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            ours = _is_in(current, PACKAGE)  # the same for every claim, whatever its file
            found = _our_imports(current, _file_stamp(current)) if ours else _imported_files(current, home(path))
            waiting += [file for file in found if not _is_in(file, CATALOG)]
    folders = {file.parent for file in seen if _is_in(file, PACKAGE) and file.parent != PACKAGE}
    data = (file for folder in folders for file in folder.rglob("*.*") if not FETCHED & set(file.parts))
    return seen | {file for file in data if file.suffix not in NOT_DATA and file.is_file()}


@functools.cache
def _is_in(file: Path, folder: Path) -> bool:
    return folder in file.parents


@functools.cache
def _our_imports(path: Path, stamp: Stamp) -> tuple[Path, ...]:
    return tuple(_imported_files(path, PACKAGE.parent))


# Code is followed by its imports, and statements are words about it; all else is data, kernels in C too.
NOT_DATA = (".py", ".pyi", ".pyc", ".yaml", ".md", ".typed")
FETCHED = {"node_modules", "assets"}  # fonts and formulas of the page, which no claim reads


def _imported_files(path: Path, root: Path) -> Iterator[Path]:
    for module, name, level in _import_lines(path, _file_stamp(path)):
        base = path.parents[level - 1] if level else None
        if name is None:
            yield from _file_of_module(module, path, root, base)
        else:
            yield from _file_of_import(module, name, path, root, base)
    listed = {name for module, name, _ in _import_lines(path, _file_stamp(path)) if module == "lemmata.catalog"}
    if {"marked", "optimizers"} <= listed:  # it imports the optimiser that the options name
        yield from (entry.path.resolve() for entry in optimizers().values())
    for _, system in (entry for entry in _file_outline(path, _file_stamp(path)) if len(entry) == 2):
        yield provided_file("training")
        if system:
            yield provided_file("recipe_training")
            yield from (recipe.path.resolve() for recipe in load().recipes if system in ("*", recipe.system))


def _import_lines(path: Path, stamp: Stamp) -> list[tuple[str, str | None, int]]:
    """(module, name, level) of every import in a file; name is None for `import module`."""
    return [entry for entry in _file_outline(path, stamp) if len(entry) == 3]


def _public_names(package: Path) -> dict[str, str]:
    """Public name -> file without its ending, as `lemmata.lazy` finds them: a room's are the chapter's too."""
    with os.scandir(package) as inside:
        entries = list(inside)
    files = [file for file in entries if file.name.endswith(".py") and not file.name.startswith("_")]
    names = _exported_names(package, tuple(sorted((file.name, _stamp_of(file.stat())) for file in files)))
    for room in sorted(entry.name for entry in entries if os.path.exists(os.path.join(entry.path, "statements.yaml"))):
        names = names | {name: f"{room}/{home}" for name, home in _public_names(package / room).items()}
    return names


@functools.cache
def _exported_names(package: Path, stamps: tuple[tuple[str, Stamp], ...]) -> dict[str, str]:
    outlines = ((name, _file_outline(package / name, stamp)) for name, stamp in stamps)
    return {entry[0]: name.removesuffix(".py") for name, outline in outlines for entry in outline if len(entry) == 1}


@functools.cache
def _file_outline(path: Path, stamp: Stamp) -> list[tuple[Any, ...]]:
    """What a file imports or has trained by a recipe, and the names it lists in a literal `__all__`; parsed once."""
    index = _package_index(cache_folder() / "imports.json")
    return index.read(path, "outline", functools.partial(_read_outline, path))[0]


@functools.cache
def _package_index(path: Path) -> Index:
    index = Index(path, (), [Path(__file__)])
    atexit.register(index.keep)
    return index


def _read_outline(path: Path, problems: list[str]) -> Iterator[tuple[Any, ...]]:
    try:
        tree = ast.parse(path.read_bytes(), str(path)) if path.suffix == ".py" else ast.Module([], [])
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return  # it cannot be imported, or is gone by now; the worker says so
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


def _file_of_import(module: str, name: str, path: Path, root: Path, base: Path | None) -> list[Path]:
    """`from module import name`: the module, and in a package the file `name` or the one that defines it; all for *."""
    files = _file_of_module(module, path, root, base) if module else [base / "__init__.py"] if base else []
    if not files or not files[-1].exists() or files[-1].name != "__init__.py":
        return files if module else []
    package = files[-1].parent
    public = _public_names(package)
    if name == "*":  # whatever it may bring
        stems = {
            *public.values(),
            *(entry[0] for entry in _file_outline(files[-1], _file_stamp(files[-1])) if len(entry) == 1),
        }
    else:
        stems = {public.get(name, name)}
    inner = [package / file for stem in sorted(stems) for file in (f"{stem}.py", f"{stem}/__init__.py")]
    inner += [package / stem.partition("/")[0] / "__init__.py" for stem in sorted(stems) if "/" in stem]  # of its room
    return [*files, *(file.resolve() for file in inner if file.exists())]


def _file_of_module(module: str, path: Path, root: Path, base: Path | None = None) -> list[Path]:
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
                return [*(f.resolve() for f in around if f.exists()), file.resolve()]
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
    if installed(spec.origin):
        return None
    file = Path(spec.origin).resolve()
    return file.parents[1] if file.name == "__init__.py" else file.parent


def _file_label(path: Path) -> str:
    """The same on every machine: below the package by its place there, elsewhere by its name."""
    return path.relative_to(PACKAGE).as_posix() if PACKAGE in path.parents else path.name


def _file_stamp(path: Path) -> Stamp:
    """Whatever any change of a file changes: nobody can set the time at which its content or name last changed."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0, -1, 0)
    return _stamp_of(status)


def _stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


_place = functools.cache(place)


@functools.cache
def _file_digest(path: Path, stamp: Stamp) -> str:
    """Most claims share most files: made once for each state of a file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "absent"
