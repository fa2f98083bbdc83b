"""Breaking a system must break a claim: `python -m lemmata.testing.mutate [CHAPTER, FILE or SYSTEM ...]`.

A file is changed in one place at a time (a sign, a bound, a term, ...), and the claims that its docstrings promise are
run on each mutant. It is killed when a claim no longer holds, hangs or crashes. A survivor is a place where the code
could be wrong and nobody would notice; if that is as it should be, a comment `# mutant: reason` on its line says why.

    from lemmata.testing.mutate import mutate
    report = mutate("my_system.py", ["my_claims.py"])
"""

import argparse
import ast
import contextlib
import difflib
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lemmata import catalog
from lemmata.catalog import ClaimEntry
from lemmata.judge.engine import TIME_LIMIT, available_cores
from lemmata.judge.fingerprint import PACKAGE, closure
from lemmata.testing.mutant_server import Server
from lemmata.testing.mutation_report import MutationReport, Outcome, counts, lines, score
from lemmata.testing.mutations import Mutant, mutants

__all__ = []  # `lemmata.testing.mutate` is this file, so the function of that name is imported from here

LEAST = 0.9  # of the mutants that no comment explains must be killed
PATIENCE = 10.0  # seconds any claim may take before its mutant counts as hanging ...
SLOWER = 5  # ... or so many times what the claim takes on the unbroken code
BATCH = 1000  # mutants sent at a time: enough to keep every core busy, little enough to keep in memory
HEAVY = frozenset("torch numpy scipy sympy networkx sklearn einops jaxtyping".split())  # imported once, not per mutant

Told = Callable[[str, int, int], None]  # (what, how many are done, of how many)


def mutate(
    path: Path | str,
    claims: Iterable[ClaimEntry | Path | str],
    *,
    jobs: int | None = None,
    sample: int | None = None,
    patience: float = PATIENCE,
) -> MutationReport:
    """Run claims on every mutant of a file; both may be anyone's. `claims` are files of claims or entries of a catalog.

    `sample` takes so many mutants instead of all; `patience` is how many seconds a claim is always given.
    """
    target = _Target.of(Path(path), [entry for given in claims for entry in _entries(given)], {}, sample)
    _run([target], jobs, patience)
    return target.report


# --- What is mutated, and against which claims ---


@dataclass
class _Target:
    path: Path
    module: str
    source: bytes
    mutants: list[Mutant]
    claims: list[ClaimEntry]
    report: MutationReport

    @classmethod
    def of(cls, path: Path, claims: list[ClaimEntry], unused: dict[str, str], sample: int | None) -> "_Target":
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        if sample is not None and sample < 1:
            raise ValueError(f"sample must be >= 1, got {sample}")
        path = path.resolve()
        source = path.read_bytes()
        try:
            found = mutants(path, source)
        except SyntaxError as error:
            raise ValueError(f"{path}:{error.lineno}: not valid Python: {error.msg}") from None
        if sample is not None and sample < len(found):
            chosen = random.Random(path.name).sample(range(len(found)), sample)
            found = [found[index] for index in sorted(chosen)]
        return cls(path, _module(path)[0], source, found, claims, MutationReport(path, len(found), unused=unused))


def _entries(given: ClaimEntry | Path | str) -> list[ClaimEntry]:
    if isinstance(given, ClaimEntry):
        return [given]
    path, problems = Path(given), []
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    entries = list(catalog.read_claims(path.resolve(), _module(path)[0], problems))
    if problems or not entries:
        raise ValueError(problems[0] if problems else f"{path} has no claims: mark one with @claim")
    return entries


def _module(path: Path) -> tuple[str, Path]:
    """The name under which a file is imported, and the folder from which."""
    path = path.resolve()
    parts, folder = [] if path.stem == "__init__" else [path.stem], path.parent
    while (folder / "__init__.py").exists():
        parts, folder = [folder.name, *parts], folder.parent
    return ".".join(parts), folder


def _select(names: Sequence[str], everything: bool, sample: int | None) -> list[_Target]:
    """The files that names mean: chapters, systems, files; without a name, all chapters."""
    known = catalog.load()
    chapters = {path.parent.name: path.parent for path in sorted(PACKAGE.glob("*/statements.yaml"))}
    places = {path.stem: path for folder in chapters.values() for path in _files(folder)}
    places |= {entry.id: entry.path for entry in known.systems.values()}
    chosen: dict[Path, None] = {}
    for name in names or chapters:
        if name in chapters:
            chosen |= dict.fromkeys(_files(chapters[name]))
        elif name in places:
            chosen[places[name]] = None
        elif name.endswith(".py") and Path(name).is_file():
            chosen[Path(name).resolve()] = None
        else:
            near = difflib.get_close_matches(name, {*chapters, *places}, 3, 0.5)
            hint = f"did you mean {', '.join(near)}?" if near else f"chapters are {', '.join(chapters)}"
            raise ValueError(f"there is no chapter, system or file {name!r}: {hint}")
    return [_Target.of(path, *_claims(path, known, everything), sample) for path in chosen]


def _files(chapter: Path) -> list[Path]:
    """The systems of a chapter and what they share; its recipes claim nothing."""
    return [path for path in sorted(chapter.glob("*.py")) if not path.stem.startswith(("__init__", "recipes"))]


def _claims(path: Path, known: catalog.Catalog, everything: bool) -> tuple[list[ClaimEntry], dict[str, str]]:
    """The claims that a file's docstrings promise, or else all that import it; and why some cannot be used."""
    ids = _promised(path) or [id for id, claim in known.claims.items() if path in closure(claim.path)]
    unused = {id: "no check yet" for id in ids if id not in known.claims}
    found = [known.claims[id] for id in ids if id in known.claims]
    if not everything:
        unused |= {claim.id: "long, left out without --all" for claim in found if claim.cost == "long"}
    return [claim for claim in found if claim.id not in unused], unused


def _promised(path: Path) -> list[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    with contextlib.suppress(SyntaxError):  # told where the file is to be mutated
        nodes = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, documented)]
        texts = [ast.get_docstring(node) or "" for node in nodes]
        return list(dict.fromkeys(id for text in texts for id in catalog.promised(text)))
    return []


# --- Running ---


def _run(targets: list[_Target], jobs: int | None, patience: float, told: Told = lambda *_: None) -> None:
    """Fill the targets' reports."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be >= 1, got {jobs}")
    if not hasattr(os, "fork"):
        raise ValueError("this system cannot fork processes: mutate on Linux or macOS")
    with Server(_setting(targets, jobs or available_cores())) as server:
        usable = _baseline(targets, server, told)
        waiting: list[tuple[_Target, Mutant, list[ClaimEntry]]] = []
        for target in targets:
            target.report.claims = [claim.id for claim in target.claims if claim.id in usable]
            for mutant in target.mutants:
                claims = _reaching(mutant, target, usable)
                if claims:
                    waiting.append((target, mutant, claims))
                else:
                    target.report.outcomes.append(Outcome(mutant, how="no claim runs this line"))
        try:
            for start in range(0, len(waiting), BATCH):
                _batch(waiting, start, server, usable, patience, told)
        finally:
            for target in targets:
                target.report.outcomes.sort(key=lambda outcome: target.mutants.index(outcome.mutant))


def _batch(
    waiting: list[tuple[_Target, Mutant, list[ClaimEntry]]],
    start: int,
    server: Server,
    usable: "dict[str, _Baseline]",
    patience: float,
    told: Told,
) -> None:
    tasks = []
    for key, (target, mutant, claims) in enumerate(waiting[start : start + BATCH], start):
        limits = [[max(patience, SLOWER * s) for s in usable[claim.id].seconds] for claim in claims]
        place = {"module": target.module, "path": str(target.path), "source": mutant.of(target.source).decode()}
        tasks.append({"key": key, **place, "claims": list(map(_named, claims, limits))})
    for done, answer in enumerate(server.ask(tasks), start + 1):
        if "error" in answer:
            raise ValueError(answer["error"])
        target, mutant, _ = waiting[answer["key"]]
        target.report.outcomes.append(Outcome(mutant, answer["by"], answer.get("how", "")))
        told("mutants", done, len(waiting))


@dataclass(frozen=True)
class _Baseline:
    """One claim on the unbroken code: seconds of its truth and of its judgement, and the lines it runs."""

    seconds: tuple[float, float]
    lines: dict[str, set[int]]


def _baseline(targets: list[_Target], server: Server, told: Told) -> dict[str, _Baseline]:
    claims = list({claim.id: claim for target in targets for claim in target.claims}.values())
    files = [str(target.path) for target in targets]
    tasks = [
        {"key": key, "claims": [_named(claim, [0.0, TIME_LIMIT[claim.cost]])], "trace": files}
        for key, claim in enumerate(claims)
    ]
    usable: dict[str, _Baseline] = {}
    for done, answer in enumerate(server.ask(tasks), 1):
        claim = claims[answer["key"]]
        if answer.get("verdict") == "holds":
            ran = {file: set(found) for file, found in answer["lines"].items()}
            usable[claim.id] = _Baseline((answer["truth_seconds"], answer["seconds"]), ran)
        else:
            why = f"{answer['verdict']}: {answer['reason']}" if "verdict" in answer else answer["how"]
            for target in (target for target in targets if claim in target.claims):
                target.report.unused[claim.id] = f"does not hold on the unbroken code ({why})"
        told("claims", done, len(claims))
    return usable


def _reaching(mutant: Mutant, target: _Target, usable: dict[str, _Baseline]) -> list[ClaimEntry]:
    """The claims that run the mutant's statement, the cheapest first. What importing runs concerns every claim."""
    claims = [claim for claim in target.claims if claim.id in usable]
    if mutant.lines is not None:
        wanted = set(range(mutant.lines[0], mutant.lines[1] + 1))
        claims = [claim for claim in claims if wanted & usable[claim.id].lines.get(str(target.path), set())]
    return sorted(claims, key=lambda claim: usable[claim.id].seconds[0])


def _named(claim: ClaimEntry, limit: list[float]) -> dict[str, Any]:
    return {"id": claim.id, "module": claim.module, "function": claim.function, "cost": claim.cost, "limit": limit}


def _setting(targets: list[_Target], jobs: int) -> dict[str, Any]:
    """How many children at a time, where modules are found, what they are made of, and what to import beforehand."""
    claims = {claim.path.resolve() for target in targets for claim in target.claims}
    folders = {_module(path)[1] for path in [*claims, *(target.path for target in targets)]}
    folders |= {path.parent for path in claims if PACKAGE not in path.parents}
    files = {file: file.read_bytes() for claim in claims for file in closure(claim) if file.suffix == ".py"}
    files |= {target.path: target.source for target in targets}
    judges = {file for file in files if PACKAGE / "judge" in file.parents}
    sources = {_module(file)[0]: (str(file), text.decode()) for file, text in files.items() if file not in judges}
    imports = {_module(file)[0] for file in judges} | {name for text in files.values() for name in _heavy(text)}
    return {"jobs": jobs, "paths": sorted(map(str, folders)), "imports": sorted(imports), "sources": sources}


def _heavy(source: bytes) -> Iterator[str]:
    """What a file imports from the heavy libraries."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        yield from (name for name in names if name.partition(".")[0] in HEAVY)
    if b"torch.optim" in source or b"torch.compile" in source:
        yield "torch._dynamo"  # which those import when they are first used, for seconds


# --- The command ---


def main(words: Sequence[str] | None = None) -> int:
    """0 if enough mutants were killed, 1 if not, 2 for bad use, 130 for Ctrl-C."""
    asked = _arguments(words)
    targets: list[_Target] = []
    code = 0
    try:
        if asked.claims:
            entries = [entry for given in asked.claims for entry in _entries(given)]
            targets = [_Target.of(Path(name), entries, {}, asked.sample) for name in asked.names]
        else:
            targets = _select(asked.names, asked.all, asked.sample)
        with _progress(quiet=asked.json) as told:
            _run(targets, asked.jobs, PATIENCE, told)
    except ValueError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutate: interrupted", file=sys.stderr)
        code = 130
    reports = [target.report for target in targets]
    _tell(reports, asked)
    return code or int(score(reports) < asked.least)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m lemmata.testing.mutate", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("names", nargs="*", metavar="NAME", help="chapters, systems or files; all chapters if none")
    parser.add_argument(
        "--claims", nargs="+", metavar="FILE", help="run the claims of these files, for files of your own"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="mutants at a time; one for each core if not given")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="only so many mutants of each file, always the same ones"
    )
    parser.add_argument("--least", type=float, default=LEAST, metavar="SCORE", help="exit 1 below this score (0.9)")
    parser.add_argument("--all", action="store_true", help="run long claims too")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--survivors", action="store_true", help="print only the survivors, one a line")
    asked = parser.parse_args(words)
    if asked.claims and not asked.names:
        parser.error("--claims needs the files to mutate: mutate my_system.py --claims my_claims.py")
    return asked


def _tell(reports: list[MutationReport], asked: argparse.Namespace) -> None:
    if asked.json:
        print(json.dumps({"score": score(reports), "files": [report.to_json() for report in reports]}, indent=2))
    elif asked.survivors:
        for report in reports:
            for outcome in report.survivors:
                print(report.label + outcome.mutant.id.removeprefix(report.path.name))
    else:
        for report in reports:
            print("\n".join(lines(report)), end="\n\n")
        print(f"{len(reports)} {'file' if len(reports) == 1 else 'files'}: {counts(reports)}")


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Told]:
    """A live bar on a terminal; elsewhere a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    if screen.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=screen, transient=True) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
    elif quiet:
        yield lambda *_: None
    else:

        def told(what: str, done: int, total: int) -> None:
            if done == total or done % 100 == 0:
                print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)

        yield told


if __name__ == "__main__":
    sys.exit(main())
