"""What is measured: the entries in the files of the folder contests, found by reading: listing imports nothing.

An entry is a file with five kinds of marked functions, whose marks are literals. Entries that differ in their problem
alone stand in one file, and share the other four:

    @entry("sums", title=..., measures=..., cases={"small": "1,000 numbers"}, targets={"a loop": 0.5})
    def problem(case, device): ...         # the data, the same in every process

    @ours("lemmata")
    def quick(problem): ...                # everything that is not measured; returns what one repeat does

    @peer("a loop", needs="numpy")
    def slow(problem): ...

    @limit("reading the numbers once")     # what nobody can avoid, measured in the same run
    def reading(problem): ...

    @agreement(within=1e-9)
    def total(result): ...                 # what a repeat returned, as named numbers that all must share
"""

import ast
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["BenchEntry", "Contender", "Seconds", "agreement", "entries", "entry", "limit", "ours", "peer"]

FOLDER = Path(__file__).parent / "contests"
MARKS = ("entry", "ours", "peer", "limit", "agreement")
Marked = TypeVar("Marked", bound=Callable[..., Any])


def entry(
    name: str, *, title: str, measures: str, cases: Mapping[str, str], targets: Mapping[str, float], devices: str = ""
) -> Callable[[Marked], Marked]:
    """Mark the function `problem(case, device)` of an entry; `entries` reads the words from the source.

    `cases` maps a short name to the size in words, `targets` a peer to the largest ratio to it that is good enough,
    and `devices` names the only kinds of device the entry is meant for.
    """
    del name, title, measures, cases, targets, devices
    return _as_it_is


def ours(who: str, *, cases: str = "") -> Callable[[Marked], Marked]:
    """Mark a contender of ours. The first one is judged by the targets; `cases` are those it is for, if not all."""
    del who, cases
    return _as_it_is


def peer(who: str, *, needs: str = "", cases: str = "") -> Callable[[Marked], Marked]:
    """Mark a contender that is not ours; `needs` is the package it takes, by the name under which pip knows it."""
    del who, needs, cases
    return _as_it_is


class Seconds(float):
    """What a limit's repeat gives if its time is worked out of measured rates, and not the time that it took itself."""


def limit(words: str) -> Callable[[Marked], Marked]:
    """Mark the work that no contender can avoid: the limit is its quickest repeat, or the `Seconds` it gives."""
    del words
    return _as_it_is


def agreement(*, within: float) -> Callable[[Marked], Marked]:
    """Mark the function that turns a result into named numbers, equal for all contenders up to this relative error."""
    del within
    return _as_it_is


def _as_it_is(function: Marked) -> Marked:
    return function


@dataclass(frozen=True)
class Contender:
    """Who takes part: ours, a peer, or the limit itself."""

    who: str
    role: str  # "ours", "peer" or "limit"
    function: str
    needs: str = ""
    cases: str = ""


@dataclass(frozen=True)
class BenchEntry:
    """An entry as its file declares it."""

    name: str
    title: str
    measures: str
    cases: Mapping[str, str]
    targets: Mapping[str, float]
    path: Path
    problem: str
    agreement: str
    within: float
    contenders: tuple[Contender, ...]
    devices: str = ""

    def contenders_for(self, case: str) -> list[Contender]:
        """Those that take part in one case, in the order of the file."""
        return [one for one in self.contenders if not one.cases or case in one.cases.split()]

    def targets_for(self, case: str) -> dict[str, float]:
        """The targets whose peers take part in one case."""
        here = {one.who for one in self.contenders_for(case)}
        return {peer: most for peer, most in self.targets.items() if peer in here}


def entries(folder: Path | None = None) -> dict[str, BenchEntry]:
    """Every entry of a folder and of those below it (default: contests) by name."""
    return _read_entries(folder or FOLDER)


@functools.cache
def _read_entries(folder: Path) -> dict[str, BenchEntry]:
    found: dict[str, BenchEntry] = {}
    for path in sorted(folder.rglob("[!_]*.py")):
        for one in _read_contest(path):
            if one.name in found:
                raise ValueError(f"{path}: entry {one.name!r} is also in {found[one.name].path.name}: rename one")
            found[one.name] = one
    return found


def _read_contest(path: Path) -> Iterator[BenchEntry]:
    marked = {kind: [] for kind in MARKS}
    for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
        for mark in getattr(node, "decorator_list", ()):
            kind = getattr(getattr(mark, "func", None), "id", "")
            if isinstance(node, ast.FunctionDef) and kind in MARKS:
                marked[kind].append((node.name, *_decorator_words(mark, path)))
    if not marked["entry"]:
        return
    if len(marked["agreement"]) != 1 or not marked["ours"]:
        raise ValueError(f"{path}: an entry's file has one @agreement and at least one @ours")
    check, _, bound = marked["agreement"][0]
    taking_part = [
        Contender(who, kind, function, **more)
        for kind in ("ours", "peer", "limit")
        for function, who, more in marked[kind]
    ]
    shared = {"path": path, "agreement": check, "contenders": tuple(taking_part)}
    for problem, name, words in marked["entry"]:
        yield BenchEntry(name, **words, **bound, **shared, problem=problem)


def _decorator_words(mark: ast.Call, path: Path) -> tuple[Any, dict[str, Any]]:
    try:
        first = ast.literal_eval(mark.args[0]) if mark.args else None
        return first, {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in mark.keywords}
    except ValueError:
        raise ValueError(f"{path}:{mark.lineno}: the words of a mark must be literals") from None
