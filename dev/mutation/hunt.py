"""A run of mutation: first claims and tests on the unbroken code, then on every mutant those that run its line.

Claims come before tests, cheap ones before dear ones; the first that notices ends it. What does not hold or pass on
the unbroken code, or is too slow to be run on every mutant, is named and not used.
"""

import ast
import os
import random
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lemmata.catalog import ClaimEntry
from lemmata.judge.engine import TIME_LIMIT, available_cores
from lemmata.judge.fingerprint import closure
from lemmata.judge.loaded import PACKAGE
from mutation.mutants import Mutant
from mutation.report import Outcome
from mutation.server import Pool
from mutation.targets import Target, module_of, root_of

__all__ = []  # for `mutate` alone

PATIENCE = 10.0  # seconds any claim or test may take before its mutant counts as hanging ...
SLOWER = 5  # ... or so many times what it takes on the unbroken code
SLOW = 20.0  # seconds of a test that is too slow to be run on every mutant
FILE_LIMIT = 300.0  # seconds for all tests of a file on the unbroken code
IMPORT_LIMIT = 60.0  # seconds for pytest to start and to import what a file of tests needs
HEAVY = frozenset("torch numpy scipy sympy networkx sklearn einops jaxtyping beartype".split())  # imported only once


Told = Callable[[str, int, int], None]  # (what, how many are done, of how many)


@dataclass(frozen=True)
class Settings:
    jobs: int | None = None
    patience: float = PATIENCE
    seconds: float = float("inf")
    seed: int = 0
    options: Sequence[str] = ()  # for pytest


# --- What is known of the unbroken code ---


@dataclass(frozen=True)
class _Claim:
    """A claim on the unbroken code: seconds of its truth and of its judgement, and the lines it runs by file."""

    seconds: tuple[float, float]
    lines: dict[str, set[int]]


@dataclass
class _Tests:
    """A file of tests on the unbroken code: seconds of each that can be used, why others cannot, lines by test."""

    seconds: dict[str, float] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)
    lines: dict[str, dict[str, list[int]]] | None = None  # not known: the tracing broke them

    def reaching(self, wanted: set[int] | None, path: str) -> list[str]:
        """The tests that run one of the lines, the cheapest first; all where it is run by what they share."""

        def runs(name: str) -> bool:
            if wanted is None or self.lines is None:
                return True
            return not wanted.isdisjoint(self.lines.get(name, {}).get(path, ()))

        found = [name for name in self.seconds if runs("") or runs(name)]
        return sorted(found, key=lambda name: self.seconds[name])


class _Hunt:
    """One run: first the unbroken code, then every mutant."""

    def __init__(self, targets: list[Target], settings: Settings, told: Told, cache: str) -> None:
        self.targets, self.settings, self.told, self.cache = targets, settings, told, cache
        self.claims: dict[str, _Claim] = {}
        self.tests: dict[Path, _Tests] = {}

    def survey(self, pool: Pool, until: float) -> None:
        """What holds and passes, how long it takes, and which lines it runs."""
        files = [str(target.path) for target in self.targets]
        claims = {claim.id: claim for target in self.targets if target.mutants for claim in target.claims}
        tests = list(dict.fromkeys(test for target in self.targets if target.mutants for test in target.tests))
        self.tests = {test: _Tests() for test in tests}
        tasks: deque[dict[str, Any]] = deque()
        for test in tests:
            for trace in ([], files):
                tasks.append({**self._pytest(test), "about": test, "trace": trace, "mutant": None})
        for claim in claims.values():
            named = _named(claim, [0.0, TIME_LIMIT[claim.cost]])
            more = {"about": claim, "trace": files, "mutant": None, "seconds": 2 * TIME_LIMIT[claim.cost]}
            tasks.append({"claims": [named], **more})
        total = len(tasks)
        for done, (task, answer) in enumerate(pool.answers(tasks, until), 1):
            if isinstance(task["about"], Path):
                self._learn_tests(task["about"], bool(task["trace"]), answer)
            else:
                self._learn_claim(task["about"], answer)
            self.told("claims and files of tests", done, total)
        for target in self.targets:
            target.report.claims = [claim.id for claim in target.claims if claim.id in self.claims]
            used = [test for test in target.tests if test in self.tests and self.tests[test].seconds]
            target.report.tests = [os.path.relpath(test, root_of(test)) for test in used]
            for test in target.tests:
                target.report.unused |= self.tests[test].unused if test in self.tests else {}

    def _learn_claim(self, claim: ClaimEntry, answer: dict[str, Any]) -> None:
        if answer.get("verdict") == "holds":
            ran = {file: set(found) for file, found in answer["lines"].items()}
            self.claims[claim.id] = _Claim((answer["truth_seconds"], answer["seconds"]), ran)
            return
        why = f"{answer['verdict']}: {answer['reason']}" if "verdict" in answer else answer["how"]
        for target in self.targets:
            if claim in target.claims:
                target.report.unused[claim.id] = f"does not hold on the unbroken code ({why})"

    def _learn_tests(self, test: Path, traced: bool, answer: dict[str, Any]) -> None:
        known = self.tests[test]
        if traced:
            known.lines = answer.get("lines")
        elif "tests" not in answer:
            known.unused[test.name] = f"its tests cannot be run on the unbroken code ({answer['how']})"
        else:
            for name, why in answer["why"].items():
                if why:  # else it is skipped here
                    known.unused[name] = f"does not pass on the unbroken code ({why})"
            for name, seconds in answer["tests"].items():
                if seconds > SLOW and name not in answer["why"]:
                    known.unused[name] = f"takes {seconds:.0f} s, too slow to be run on every mutant"
                elif name not in answer["why"]:
                    known.seconds[name] = seconds

    # --- The mutants ---

    def kill(self, pool: Pool, until: float) -> None:
        """Try every mutant in random order, so that whatever is left when the time is up is nothing special."""
        every = [(target, mutant) for target in self.targets for mutant in target.mutants]
        random.Random(self.settings.seed).shuffle(every)
        tasks: deque[dict[str, Any]] = deque()
        done = 0
        for target, mutant in every:
            steps = self._steps(target, mutant)
            if steps:
                tasks.append({**steps[0], "about": (target, mutant, steps[1:])})
            else:
                target.report.outcomes.append(Outcome(mutant, how="no claim and no test runs this line"))
                done += 1
        for task, answer in pool.answers(tasks, until):
            if "error" in answer:
                raise ValueError(answer["error"])
            target, mutant, steps = task["about"]
            if "lost" in answer:  # by no fault of the mutant: it was not tried
                target.report.unused[mutant.id] = answer["lost"]
                continue
            if not answer["by"] and steps:
                tasks.appendleft({**steps[0], "about": (target, mutant, steps[1:])})
                continue
            kind = "" if not answer["by"] else "claim" if "claims" in task else "test"
            target.report.outcomes.append(Outcome(mutant, kind, answer["by"], answer.get("how", "")))
            done += 1
            self.told("mutants", done, len(every))

    def _steps(self, target: Target, mutant: Mutant) -> list[dict[str, Any]]:
        """The tasks of a mutant, one after the other until it is killed: its claims, then its files of tests."""
        place = (target.module, str(target.path), mutant.of(target.source).decode())
        wanted = None if mutant.lines is None else set(range(mutant.lines[0], mutant.lines[1] + 1))
        steps = []
        claims = self._reaching(target, wanted)
        if claims:
            limits = [[self._limit(seconds) for seconds in self.claims[claim.id].seconds] for claim in claims]
            named = list(map(_named, claims, limits))
            steps.append({"claims": named, "mutant": place, "seconds": sum(map(sum, limits))})
        tests = []
        for test in target.tests:
            known = self.tests[test]
            if names := known.reaching(wanted, str(target.path)):
                if test.stem == f"test_{target.path.stem}":  # the mirror image: what the tracing did not see may notice
                    names += [name for name in known.seconds if name not in names]
                limits = {name: self._limit(known.seconds[name]) for name in names}
                task = self._pytest(test) | {"known": limits, "mutant": place}
                cost = sum(known.seconds[name] for name in names)
                tests.append((cost, task | {"seconds": IMPORT_LIMIT + sum(limits.values())}))
        return steps + [task for _, task in sorted(tests, key=lambda priced: priced[0])]

    def _reaching(self, target: Target, wanted: set[int] | None) -> list[ClaimEntry]:
        """The claims that run a statement, the cheapest first. What importing runs concerns every claim."""
        claims = [claim for claim in target.claims if claim.id in self.claims]
        if wanted is not None:
            claims = [c for c in claims if wanted & self.claims[c.id].lines.get(str(target.path), set())]
        return sorted(claims, key=lambda claim: self.claims[claim.id].seconds[0])

    def _limit(self, seconds: float) -> float:
        return max(self.settings.patience, SLOWER * seconds)

    def _pytest(self, test: Path) -> dict[str, Any]:
        known = {"tests": [str(test)], "root": str(root_of(test)), "options": list(self.settings.options)}
        return {**known, "cache": self.cache, "patience": IMPORT_LIMIT, "seconds": FILE_LIMIT}


def run(targets: list[Target], settings: Settings, told: Told = lambda *_: None) -> None:
    """Fill the targets' reports."""
    jobs = available_cores() if settings.jobs is None else settings.jobs
    if jobs < 1:
        raise ValueError(f"jobs must be >= 1, got {jobs}")
    if not hasattr(os, "fork"):
        raise ValueError("this system cannot fork processes: mutate on Linux or macOS")
    until = time.monotonic() + settings.seconds
    with tempfile.TemporaryDirectory(prefix="mutation-") as cache, Pool(_setting(targets), jobs) as pool:
        hunt = _Hunt(targets, settings, told, cache)
        try:
            hunt.survey(pool, until)
            if time.monotonic() < until:  # else not all is known of the unbroken code
                hunt.kill(pool, until)
        finally:
            for target in targets:
                target.report.outcomes.sort(key=lambda outcome: target.mutants.index(outcome.mutant))


def _named(claim: ClaimEntry, limit: list[float]) -> dict[str, Any]:
    return {"id": claim.id, "module": claim.module, "function": claim.function, "cost": claim.cost, "limit": limit}


def _setting(targets: list[Target]) -> dict[str, Any]:
    """Where modules are found, what they are made of, and what to import beforehand."""
    claims = {claim.path.resolve() for target in targets for claim in target.claims}
    tests = {test for target in targets for test in target.tests}
    tests |= {folder / "conftest.py" for test in tests for folder in test.parents if (folder / "conftest.py").is_file()}
    folders = {module_of(path)[1] for path in [*claims, *(target.path for target in targets)]}
    folders |= {path.parent for path in claims if PACKAGE not in path.parents}
    judge = {PACKAGE / "judge" / "runner.py"} if claims else set()
    every = {file for path in claims | tests | judge for file in closure(path) if file.suffix == ".py"}
    files = {file: file.read_bytes() for file in every} | {target.path: target.source for target in targets}
    broken = {target.path for target in targets}
    rooms = (PACKAGE, PACKAGE / "catalog", PACKAGE / "judge")
    machinery = {file for file in files if file.parent in rooms and broken.isdisjoint(closure(file))}
    sources = {
        module_of(file)[0]: (str(file), text.decode())
        for file, text in files.items()
        if file not in machinery and not file.name.startswith(("test_", "conftest"))
    }
    imports = {module_of(file)[0] for file in machinery} | {name for text in files.values() for name in _heavy(text)}
    return {"paths": sorted(map(str, folders)), "imports": ["pytest", *sorted(imports)], "sources": sources}


def _heavy(source: bytes) -> Iterator[str]:
    """What a file imports from the heavy libraries."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        yield from (name for name in names if name.partition(".")[0] in HEAVY)
    if b"torch.optim" in source or b"torch.compile" in source:
        yield "torch._dynamo"  # which those import when they are first used, for seconds
