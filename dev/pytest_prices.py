"""`pytest --prices`: the CPU seconds of each test, its children included, saved, and summed up by chapter."""

import json
import time
from typing import Any

import pytest

from prices import DURATIONS, lines

try:
    import resource
except ImportError:  # Windows, which does not count children
    resource = None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--prices", action="store_true", help="save the CPU seconds of each test and sum them by chapter")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--prices"):
        config.pluginmanager.register(Prices(config))


def cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN) if resource else None
    return time.process_time() + (children.ru_utime + children.ru_stime if children else 0.0)


class Prices:
    """Measures where a test runs, and collects where pytest reports, which are two processes under xdist.

    What is made once for several tests is part of the price of each that uses it: whichever is left out, the next one
    pays. The sums by chapter count it once.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.reports = not hasattr(config, "workerinput")
        self.shared: dict[Any, float] = {}  # fixture -> CPU seconds
        self.began = self.ahead = 0.0
        self.found: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logstart(self) -> None:
        self.began, self.ahead = cpu_seconds(), 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        began, before = cpu_seconds(), self.ahead
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                own = cpu_seconds() - began - (self.ahead - before)  # without those that it asked for itself
                self.shared[fixturedef] = own
                self.ahead += own

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Any:
        if call.when == "teardown":
            spent = cpu_seconds() - self.began
            price = spent - self.ahead + sum(self.shared.get(fixture, 0.0) for fixture in fixtures(item))
            marks = [mark for mark in ("slow", "browser") if item.get_closest_marker(mark)]
            item.user_properties.append(("price", {"cpu": round(price, 3), "spent": round(spent, 3), "marks": marks}))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and self.reports:
            known: dict[str, Any] = dict(report.user_properties)
            self.found[report.nodeid] = known["price"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.reports:
            return
        DURATIONS.parent.mkdir(exist_ok=True)
        DURATIONS.write_text(json.dumps(self.found, indent=0, sort_keys=True), encoding="utf-8")
        terminalreporter.section("CPU seconds of tests by chapter")
        for line in lines(self.found):
            terminalreporter.write_line(line)


def fixtures(item: pytest.Item) -> list[Any]:
    known = getattr(item, "_fixtureinfo", None)
    return [each[-1] for each in known.name2fixturedefs.values() if each] if known else []
