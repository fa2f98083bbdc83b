"""Whoever promises a claim must be run by it: `python -m lemmata.testing.promises`.

A docstring's `Claims:` line says which claims would notice if this code were wrong. The truth of each is run here, and
what it calls is written down: a promise is broken if nothing of the function, the class or a class of the same file
that it inherits from was called. Long claims are not run: of them it is asked that their file mention the name.
"""

import ast
import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from lemmata import catalog
from lemmata.catalog import ClaimEntry
from lemmata.judge.runner import attempt
from lemmata.judge.statistics import cost_class

__all__ = []  # for CI and whoever debugs: the functions are imported from here

PACKAGE = Path(__file__).resolve().parents[1]
Definition = ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True)
class Promise:
    """A definition and one claim that it promises; `spans` are the first and last lines of what counts as run."""

    path: Path
    line: int
    module: str
    name: str
    id: str
    spans: tuple[tuple[int, int], ...]

    def kept(self, called: Iterable[CodeType]) -> bool:
        return any(self._is_ours(code) for code in called) or bool(
            self._generated_methods() & {id(code) for code in called}
        )

    def _is_ours(self, code: CodeType) -> bool:
        # The body of a class or a file is code too, and runs on import.
        ran = code.co_flags & inspect.CO_OPTIMIZED and code.co_filename == str(self.path)
        return bool(ran) and any(first <= code.co_firstlineno <= last for first, last in self.spans)

    def _generated_methods(self) -> set[int]:
        """The methods that a dataclass has without a line of its own."""
        part = getattr(importlib.import_module(self.module), self.name, None)
        methods = vars(part).values() if isinstance(part, type) else ()
        return {id(m.__code__) for m in methods if inspect.isfunction(m) and m.__code__.co_filename != str(self.path)}

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name} promises {self.id}, but the check never runs it"


def promises(root: Path = PACKAGE) -> list[Promise]:
    """Every promise below a package folder; claims themselves promise nothing."""
    paths = sorted(path for path in root.rglob("*.py") if "claims" not in path.relative_to(root).parts)
    return [promise for path in paths for promise in _of_file(path, root)]


def broken(
    given: Iterable[Promise], claims: dict[str, ClaimEntry], tell: Callable[[str], None] = lambda id: None
) -> list[str]:
    """One line for each promise that is not kept. An unknown claim is the catalog's fault to report."""
    by_claim: dict[str, list[Promise]] = {}
    for promise in given:
        by_claim.setdefault(promise.id, []).append(promise)
    faults = []
    for id, those in by_claim.items():
        if id in claims:
            tell(id)
            faults += [str(promise) for promise in _unkept_promises(those, claims[id])]
    return sorted(faults)


def _unkept_promises(those: list[Promise], claim: ClaimEntry) -> list[Promise]:
    if claim.cost == "long":
        words = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(ast.parse(claim.path.read_text()))}
        return [promise for promise in those if promise.name not in words]
    check = getattr(importlib.import_module(claim.module), claim.function)
    _forget_cached(those)
    token = cost_class.set(claim.cost)
    try:
        with called_code() as called:
            attempt(check, 0, {})
    finally:
        cost_class.reset(token)
    return [promise for promise in those if not promise.kept(called)]


def _forget_cached(those: list[Promise]) -> None:
    """What is remembered from an earlier claim would not be run again."""
    for module in {promise.module for promise in those}:
        for part in vars(importlib.import_module(module)).values():
            if callable(clear := getattr(part, "cache_clear", None)):
                clear()


@contextlib.contextmanager
def called_code() -> Iterator[list[CodeType]]:
    """The code of every Python function called inside, filled in at the end. A debugger is put aside meanwhile."""
    seen: dict[int, CodeType] = {}
    called: list[CodeType] = []

    def trace(frame: FrameType, event: str, arg: Any) -> None:
        seen[id(frame.f_code)] = frame.f_code  # kept alive, so that the number stays its own

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield called
    finally:
        sys.settrace(before)
        called += seen.values()


# --- Reading promises ---


def _of_file(path: Path, root: Path) -> Iterator[Promise]:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    module = ".".join((root.name, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
    known = {node.name: node for node in tree.body if isinstance(node, Definition)}
    for id in catalog.promised(ast.get_docstring(tree) or ""):
        yield Promise(path, 1, module, path.stem, id, ((1, sys.maxsize),))
    for node in known.values():
        for id in catalog.promised(ast.get_docstring(node) or ""):
            spans = tuple(_line_span(each) for each in _with_bases(node, known))
            yield Promise(path, node.lineno, module, node.name, id, spans)


def _line_span(node: Definition) -> tuple[int, int]:
    """A function's code begins at its first decorator."""
    return min([node.lineno, *(mark.lineno for mark in node.decorator_list)]), node.end_lineno or node.lineno


def _with_bases(node: Definition, known: dict[str, Definition]) -> list[Definition]:
    """A class and those of the same file that it inherits from; a function alone."""
    names = [getattr(base, "id", "") for base in getattr(node, "bases", ())]
    return [node, *(each for name in names if name in known for each in _with_bases(known[name], known))]


def main() -> int:
    faults = broken(promises(), catalog.load().claims)
    print("\n".join(faults) or "Every claim runs what promises it.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
