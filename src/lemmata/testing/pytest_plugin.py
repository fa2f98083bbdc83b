"""Claims as pytest items: `pytest --lemmata mine.py`, or `pytest --lemmata --pyargs package` for those of a package.

Every file that pytest collects and that holds claims gives one item for each, named by its id, so that `-k` and
`mine.py::gaussian.entropy` select them. Without the option this file is all that is imported, and nothing changes.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lemmata.catalog import ClaimEntry, load, read_claims

__all__ = ["ClaimFile", "ClaimItem"]

PACKAGE = Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lemmata", "claims, judged by lemmata")
    group.addoption("--lemmata", action="store_true", help="judge the claims in the files that are collected")
    group.addoption("--lemmata-all", action="store_true", help="judge the long ones too")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("lemmata") or config.getoption("lemmata_all"):
        config.pluginmanager.register(Collection(), "lemmata-claims")


class Collection:
    """What the option switches on."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Any:
        found = yield
        if file_path.suffix != ".py" or b"lemmata.judge" not in file_path.read_bytes():
            return found
        problems: list[str] = []
        entries = _claim_entries(file_path.resolve(), problems)
        if not entries and not problems:
            return found
        # Named on the command line, pytest would import it as a test module too, and report its faults a second time.
        patterns = parent.config.getini("python_files")
        if not any(file_path.match(pattern) for pattern in patterns):
            found = [node for node in found if type(node) is not pytest.Module]
        return [*found, ClaimFile.from_parent(parent, path=file_path, entries=entries, problems=problems)]


class ClaimFile(pytest.File):
    """A file with claims: one item for each, and one for everything in it that cannot be read as a claim."""

    def __init__(self, *, entries: list[ClaimEntry], problems: list[str], **known: Any):
        super().__init__(**known)
        self.entries, self.problems = entries, problems

    def collect(self) -> Iterator[pytest.Item]:
        for problem in self.problems:
            line = problem.removeprefix(f"{self.path}:").partition(":")[0]
            yield ClaimItem.from_parent(self, name=f"line {line}", problem=problem)
        for entry in self.entries:
            yield ClaimItem.from_parent(self, name=entry.id, entry=entry)


class ClaimItem(pytest.Item):
    """One claim, judged in this process under seed 0; it passes if the truth holds and every lie is rejected."""

    def __init__(self, *, entry: ClaimEntry | None = None, problem: str = "", **known: Any):
        super().__init__(**known)
        self.entry, self.problem = entry, problem
        if entry and entry.cost == "long" and not self.config.getoption("lemmata_all"):
            self.add_marker(pytest.mark.skip(reason="a long claim: add --lemmata-all"))

    def runtest(self) -> None:
        if self.entry is None:
            raise Fallen(self.problem)
        from lemmata.judge.engine import task_of
        from lemmata.judge.worker import perform

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in `lemmata check`: the verdict must be the same
            result = perform(vars(task_of(self.entry, seed=0)))
        if result.verdict == "skipped":
            pytest.skip(result.reason)
        if result.verdict != "holds":
            accepted = [lie for lie in result.lies if lie["rejected"] is False]
            told = [f"  {lie['how'] or 'accepted'}: {lie['text']}" for lie in accepted]
            raise Fallen("\n".join([f"{result.verdict}: {result.reason}", *told]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The reason alone: a traceback would show the judge, which is not at fault."""
        return str(excinfo.value) if isinstance(excinfo.value, Fallen) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        # Not the bare id: pytest takes that for a class and a method and prints it with colons.
        return self.path, self.entry.line - 1 if self.entry else None, f"claim {self.name}"


class Fallen(Exception):
    """A claim that does not hold, with the reason."""


def _claim_entries(path: Path, problems: list[str]) -> list[ClaimEntry]:
    """The claims of a file; in a chapter (statements.yaml beside the folder `claims`) with the cost stated there."""
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) if PACKAGE in path.parents else path.stem
    found: dict[str, ClaimEntry] = {}
    for entry in read_claims(path, module, problems):
        if entry.id in found:
            problems.append(f"{path}:{entry.line}: duplicate id {entry.id!r}: rename one")
        found.setdefault(entry.id, entry)
    if path.parent.name == "claims" and (path.parents[1] / "statements.yaml").exists():
        stated = load(PACKAGE if PACKAGE in path.parents else path.parents[2]).claims
        return [stated[id] if id in stated and stated[id].path == path else entry for id, entry in found.items()]
    return list(found.values())
