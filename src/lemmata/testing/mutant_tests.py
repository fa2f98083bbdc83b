"""What a child does with tests: it runs pytest in its own process, on a mutant or on the unbroken code.

On a mutant it stops at the first test that fails. On the unbroken code it says of every test whether it passes, how
long it takes, and, asked to trace, which lines it runs.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

__all__ = []  # for `mutant_server` alone

# No assertion is rewritten: that takes a second to compile, and would load a package's own files past the mutant.
# Nor does pytest look for lost exceptions: for that it collects all garbage five times over.
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:unraisableexception", "--assert=plain")

Tell = Callable[[dict[str, Any]], None]
Tracing = Callable[[list[str]], AbstractContextManager[dict[str, set[int]]]]


def run(task: dict[str, Any], tell: Tell, alarm: Callable[[float], None], tracing: Tracing) -> dict[str, Any]:
    """The answer to a task with `tests`, a list of files."""
    os.chdir(task["root"])
    alarm(task["patience"])
    words = [*task["tests"], *OPTIONS, f"--basetemp={tempfile.gettempdir()}/pytest"]
    words += [f"--rootdir={task['root']}", *task["options"]]
    if task["mutant"]:
        hunt = _Hunt(task["known"], task["patience"], tell, alarm)
        code = pytest.main(["-x", *words], plugins=[hunt])
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not hunt.by:
            return {"by": ""}
        return {"by": hunt.by or task["tests"][0], "how": hunt.how or f"pytest ended with code {int(code)}"}
    survey = _Survey()
    with contextlib.ExitStack() as stack:
        if task["trace"]:
            survey.seen = stack.enter_context(tracing(task["trace"]))
        tell({"running": "pytest"})
        code = pytest.main(words, plugins=[survey])
        survey.note()
    return {"code": int(code), "tests": survey.tests, "why": survey.why, "lines": survey.lines}


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

    def __init__(self) -> None:
        self.tests: dict[str, float] = {}
        self.why: dict[str, str] = {}
        self.seen: dict[str, set[int]] = {}
        self.lines: dict[str, dict[str, list[int]]] = {}
        self.current = ""

    def note(self, name: str = "") -> None:
        """Credit what has run since the last note; to no test what all share: imports and fixtures of a wider scope."""
        known = self.lines.setdefault(name, {})
        for file, found in self.seen.items():
            if found:
                known[file] = sorted(found.union(known.get(file, ())))
                found.clear()

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
