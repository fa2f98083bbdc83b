"""What is mutated, and who may notice: the files that names mean, their claims, their tests, the lines that changed.

The tests of a file are its mirror image (`src/package/room/thing.py`, `tests/room/test_thing.py`) and whatever else in
that folder imports it; where nobody does, the tests there that reach it through other files.
"""

import ast
import contextlib
import difflib
import functools
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lemmata import catalog
from lemmata.catalog import CHAPTERS, SHARED, ClaimEntry
from lemmata.judge.fingerprint import closure, home
from lemmata.judge.loaded import PACKAGE
from mutation.mutants import Mutant, mutants
from mutation.report import MutationReport

__all__ = []  # for `mutate` alone

NOT_MUTATED = ("__init__", "__main__", "conftest", "recipes", "test_")  # how names of files begin that claim nothing
ELSEWHERE = ("cuda", "triton", "browser")  # words in names of files that need a GPU or a browser
OWN = ("lemmata.workers", "mutation.server", "mutation.child_tests", "mutation.traced_lines")  # what workers stand on
HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.M)


@dataclass
class Target:
    """A file, its mutants, the claims and the files of tests to be run on them, and what becomes of it all."""

    path: Path
    module: str
    source: bytes
    mutants: list[Mutant]
    claims: list[ClaimEntry]
    tests: list[Path]
    report: MutationReport

    @classmethod
    def of(
        cls, path: Path, claims: list[ClaimEntry], tests: list[Path] | None = None, unused: dict[str, str] | None = None
    ) -> "Target":
        """`tests` are looked for where none are given."""
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        path = path.resolve()
        source, module = path.read_bytes(), module_of(path)[0]
        try:
            found = mutants(path, source)
        except SyntaxError as error:
            raise ValueError(f"{path}:{error.lineno}: not valid Python: {error.msg}") from None
        report = MutationReport(path, len(found), len(found), unused=dict(unused or {}))
        target = cls(path, module, source, found, claims, mirrored_tests(path) if tests is None else tests, report)
        if module in OWN:
            report.unused[module] = "mutants run on it, and would not know who is broken"
            target.keep([])
        return target

    def keep(self, chosen: list[Mutant]) -> None:
        """These are all the mutants there are."""
        self.mutants = chosen
        self.report.found = self.report.mutants = len(chosen)


def module_of(path: Path) -> tuple[str, Path]:
    """The name under which a file is imported, and the folder from which."""
    folder = home(path.resolve())
    parts = path.resolve().relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts), folder


# --- Which files ---


def select(names: Sequence[str], everything: bool) -> list[Target]:
    """The files that names mean: chapters, folders, systems, files; without one, all chapters and what they share."""
    known = catalog.load()
    folders = {path.parent.name: path.parent for path in sorted(PACKAGE.glob("*/__init__.py"))}
    rooms = {name: folders[name] for name in (*CHAPTERS, *SHARED) if name in folders}
    folders |= {path.parent.name: path.parent for path in sorted(PACKAGE.glob("*/*/statements.yaml"))}
    places = {path.stem: path for folder in rooms.values() for path in _files(folder)}
    places |= {entry.id: entry.path for entry in known.systems.values()}
    chosen: dict[Path, None] = {}
    for name in names or rooms:
        if name in folders:
            chosen |= dict.fromkeys(_files(folders[name]))
        elif name in places:
            chosen[places[name]] = None
        elif name.endswith(".py") and Path(name).is_file():
            chosen[Path(name).resolve()] = None
        elif Path(name).is_dir():
            chosen |= dict.fromkeys(_files(Path(name).resolve()))
        else:
            near = difflib.get_close_matches(name, {*folders, *places}, 3, 0.5)
            hint = f"did you mean {', '.join(near)}?" if near else f"chapters are {', '.join(rooms)}"
            raise ValueError(f"there is no chapter, system or file {name!r}: {hint}")
    reached = {claim.path: closure(claim.path) for claim in known.claims.values()}
    return [_with_claims(path, known, everything, reached) for path in chosen]


def _files(folder: Path) -> list[Path]:
    """The systems of a folder and what they share. Recipes and claims say how those are used, not what they are."""
    return [path for path in sorted(folder.rglob("*.py")) if _is_system(path)]


def _is_system(path: Path) -> bool:
    rooms = set(path.relative_to(home(path)).parent.parts)
    return _runs_here(path) and not path.stem.startswith(NOT_MUTATED) and not {"claims", "tests"} & rooms


def sampled(targets: list[Target], fraction: float, seed: int) -> None:
    """Keep a random part of all mutants together: each is as likely as any other."""
    if not 0 < fraction <= 1:
        raise ValueError(f"sample must be a fraction in (0, 1], got {fraction:g}")
    every = [(target, mutant) for target in targets for mutant in target.mutants]
    chosen = random.Random(seed).sample(range(len(every)), round(fraction * len(every)))
    kept = {id(every[index][1]) for index in chosen}
    for target in targets:
        target.mutants = [mutant for mutant in target.mutants if id(mutant) in kept]
        target.report.mutants = len(target.mutants)


# --- Who may notice ---


def _with_claims(path: Path, known: catalog.Catalog, everything: bool, reached: dict[Path, frozenset[Path]]) -> Target:
    """With the claims that a file's docstrings promise, or else, in a chapter, all that import it."""
    room = path.relative_to(PACKAGE).parts[0] if PACKAGE in path.parents else ""
    ids = _promised(path)
    if not ids and room in (*CHAPTERS, *SHARED):
        ids = [id for id, claim in known.claims.items() if path in reached[claim.path]]
    unused = {id: "no check yet" for id in ids if id not in known.claims}
    found = [known.claims[id] for id in ids if id in known.claims]
    if not everything:
        unused |= {claim.id: "long, left out without --all" for claim in found if claim.cost == "long"}
    return Target.of(path, [claim for claim in found if claim.id not in unused], unused=unused)


def _promised(path: Path) -> list[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    with contextlib.suppress(SyntaxError):  # told where the file is to be mutated
        nodes = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, documented)]
        texts = [ast.get_docstring(node) or "" for node in nodes]
        return list(dict.fromkeys(id for text in texts for id in catalog.promised(text)))
    return []


def entries(given: ClaimEntry | Path | str) -> list[ClaimEntry]:
    """The claims in somebody's file."""
    if isinstance(given, ClaimEntry):
        return [given]
    path, problems = Path(given), []
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    found = list(catalog.read_claims(path.resolve(), module_of(path)[0], problems))
    if problems or not found:
        raise ValueError(problems[0] if problems else f"{path} has no claims: mark one with @claim")
    return found


def mirrored_tests(path: Path) -> list[Path]:
    """The mirrored tests first, then those beside them that import the file, or else reach it; and its own examples."""
    module, top = module_of(path)
    root = next((folder for folder in (top, top.parent) if (folder / "tests").is_dir()), None)
    if root is None:
        return []
    rooms = list(path.resolve().relative_to(top).parts[1:-1])
    while not root.joinpath("tests", *rooms).is_dir():
        rooms.pop()
    folder = root.joinpath("tests", *rooms)
    own = folder / f"test_{path.stem}.py"
    others = [test for test in sorted(folder.glob("test_*.py")) if test != own and _runs_here(test)]
    direct = [test for test in others if _imports(test, module, _public(path))]
    mirrored = [own] if own.is_file() and _runs_here(own) else []
    if not mirrored and not direct:  # of somebody else's project all that import the package: what they run is seen
        ours = PACKAGE in path.resolve().parents
        direct = [test for test in others if (path in closure(test) if ours else _imports(test, module.split(".")[0]))]
    return [*mirrored, *direct, *([path] if b">>> " in path.read_bytes() else [])]


def root_of(test: Path) -> Path:
    """The folder from which pytest is started: where its settings are, or else that of the tests."""
    settings = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")
    around = [folder for folder in test.parents if any((folder / name).is_file() for name in settings)]
    named = [folder.parent for folder in test.parents if folder.name == "tests"]
    return [*around, *named, test.parent][0]


def _runs_here(path: Path) -> bool:
    return not any(word in path.stem for word in ELSEWHERE)


def _public(path: Path) -> frozenset[str]:
    """What a file defines: a package gives it under its own name."""
    with contextlib.suppress(SyntaxError):
        return frozenset(getattr(node, "name", "") for node in ast.parse(path.read_bytes()).body) - {""}
    return frozenset()


def _imports(path: Path, module: str, public: frozenset[str] = frozenset()) -> bool:
    """Whether a file imports a module or what is below it, by its name or by what it defines from a package around."""
    for around, name in _import_lines(path):
        full = ".".join(filter(None, (around, name)))
        if around == module or f"{full}.".startswith(f"{module}."):
            return True
        if name in public and module.startswith(f"{around}."):
            return True
    return False


@functools.cache
def _import_lines(path: Path) -> list[tuple[str, str]]:
    """(module, name) of `from module import name`, and ("", module) of `import module`."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [("", alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [(node.module, alias.name) for alias in node.names]
    return found


# --- What changed ---


def only_changed(targets: list[Target], revision: str) -> None:
    """Keep the mutants that touch a line changed since a commit."""
    for target in targets:
        known = changed_lines(target.path.parent, revision).get(target.path)
        if known is None:
            target.keep([])
        else:
            touched = [m for m in target.mutants if any(first <= m.last and m.line <= last for first, last in known)]
            target.keep(touched)


def changed_files(revision: str) -> list[str]:
    """Our own files that changed since a commit."""
    found = changed_lines(PACKAGE, revision)
    return [str(path) for path in sorted(found) if PACKAGE in path.parents and _is_system(path)]


def changed_lines(folder: Path, revision: str) -> dict[Path, list[tuple[int, int]]]:
    """First and last line of every change in the working tree since a commit; of a new file, all.

    Without a commit it is where this branch left the main one.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel").decode().strip()).resolve()
    base = revision or _merge_base(top)
    found: dict[Path, list[tuple[int, int]]] = {}
    # -z alone would not end the names in a patch: they are asked for first, and each patch by its name.
    for name in filter(None, _git(top, "diff", "--name-only", "-z", base, "--", "*.py").split(b"\0")):
        patch = _git(top, "diff", "-U0", "--no-color", "--no-ext-diff", base, "--", name.decode())
        found[top / name.decode()] = list(_hunks(patch))
    for name in filter(None, _git(top, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py").split(b"\0")):
        found[top / name.decode()] = [(1, 1 << 30)]
    return {path: lines for path, lines in found.items() if path.is_file()}


def _hunks(patch: bytes) -> Iterator[tuple[int, int]]:
    for match in HUNK.finditer(patch):
        first, count = int(match[1]), int(match[2] or 1)
        if count:  # else lines were only taken away
            yield first, first + count - 1


def _merge_base(top: Path) -> str:
    for main in ("main", "origin/main", "master"):
        with contextlib.suppress(ValueError):
            return _git(top, "merge-base", main, "HEAD").decode().strip()
    raise ValueError("there is no branch main to compare with: name a commit, --changed REV")


def _git(folder: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except OSError as error:
        raise ValueError(f"--changed asks git, which cannot be run: {error.strerror}") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise ValueError(f"git {words[0]} failed: {last[0] if last else 'without a word'}")
    return done.stdout
