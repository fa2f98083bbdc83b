"""What a child does with tests: it runs pytest in its own process, on a mutant or on the unbroken code.

On a mutant it stops at the first test that fails. On the unbroken code it says of every test whether it passes, how
long it takes, and, asked to trace, which lines it runs.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mutation.traced_lines import Lines, tracing

__all__ = []  # for `server` alone

# No assertion is rewritten: that takes a second to compile, and would load a package's own files past the mutant.
# Nor does pytest look for lost exceptions: for that it collects all garbage five times over.
OPTIONS = ("-q", "-p", "no:unraisableexception", "--assert=plain")

Tell = Callable[[dict[str, Any]], None]


def run(task: dict[str, Any], tell: Tell, alarm: Callable[[float], None]) -> dict[str, Any]:
    """The answer to a task with `tests`, a list of files."""
    os.chdir(task["root"])
    alarm(task["patience"] if task["mutant"] else task["seconds"])
    folder = tempfile.gettempdir()
    words = [*task["tests"], *OPTIONS, f"--basetemp={folder}/pytest", f"--rootdir={task['root']}"]
    words += ["-o", f"cache_dir={_cache(task, folder)}", *task["options"]]
    if task["mutant"]:
        hunt = _Hunt(task["known"], task["patience"], tell, alarm)
        code = pytest.main(["-x", *words], plugins=[hunt])
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not hunt.by:
            return {"by": ""}
        return {"by": hunt.by or task["tests"][0], "how": hunt.how or f"pytest ended with code {int(code)}"}
    tell({"running": "pytest"})
    with tracing(task["trace"]) if task["trace"] else contextlib.nullcontext() as lines:
        survey = _Survey(lines)
        pytest.main(words, plugins=[survey])
        survey.note()
    return {"tests": survey.tests, "why": survey.why, "lines": survey.ran}


def _cache(task: dict[str, Any], folder: str) -> str:
    """What fixtures keep from one run to the next. The unbroken code fills it; a mutant spoils a copy of its own."""
    if not task["mutant"]:
        return task["cache"]
    return shutil.copytree(task["cache"], f"{folder}/cache")


def _message(report: Any) -> str:
    """Where an error was raised, and the first line of what it says; or else the last of what pytest says."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return " ".join((str(report.longrepr).splitlines() or [""])[-1].split())[:200]
    return f"{os.path.basename(crash.path)}:{crash.lineno}: {(crash.message.splitlines() or [''])[0]}"[:200]


class _Hunt:
    """Runs the tests that are known, in their order, each against its own clock, and remembers the first that fails."""

    def __init__(self, known: dict[str, float], patience: float, tell: Tell, alarm: Callable[[float], None]) -> None:
        self.known, self.patience, self.tell, self.alarm = known, patience, tell, alarm
        self.by = self.how = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {name: index for index, name in enumerate(self.known)}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell({"running": nodeid})
        self.alarm(self.known[nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def _note(self, report: Any) -> None:
        if report.failed and not self.by:
            self.by, self.how = report.nodeid, _message(report)


class _Survey:
    """Of each test: its seconds if it passes, why not otherwise, and the lines it runs by file."""

    def __init__(self, lines: Lines | None) -> None:
        self.lines = lines
        self.tests: dict[str, float] = {}
        self.why: dict[str, str] = {}
        self.ran: dict[str, dict[str, list[int]]] = {}
        self.current = ""

    def note(self, name: str = "") -> None:
        """Credit what has run since the last note; to no test what all share: imports and fixtures of a wider scope."""
        known = self.ran.setdefault(name, {})
        for file, found in self.lines.take().items() if self.lines else ():
            known[file] = sorted({*known.get(file, ()), *found})

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self.note(self.current)
        try:
            return (yield)
        finally:
            self.note()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note()
        self.current = nodeid

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.note(nodeid)
        self.current = ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.why[report.nodeid] = _message(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        if report.failed:
            self.why[name] = _message(report)
        elif report.skipped:
            self.why.setdefault(name, "")
        self.tests[name] = self.tests.get(name, 0.0) + report.duration
