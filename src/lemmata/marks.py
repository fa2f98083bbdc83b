"""`@system` and `@recipe`: how a chapter says what it holds. Standard library only, literal arguments.

The marks are read from the source without importing it (`lemmata.catalog`), so a chapter knows nothing else of the
machinery, and a change of the machinery changes no chapter.
"""

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["recipe", "system"]

Marked = TypeVar("Marked", bound=Callable[..., Any])


def system(id: str, *, title: str, kind: str) -> Callable[[Marked], Marked]:
    """Mark a class or function as a system of the course; the arguments must be literals."""

    def mark(part: Marked) -> Marked:
        part.__lemmata_system__ = {"id": id, "title": title, "kind": kind}  # type: ignore[attr-defined]
        return part

    return mark


def recipe(system: str, *, data: str, metric: str) -> Callable[[Marked], Marked]:
    """Mark a function that trains a system on a data set; the arguments must be literals."""

    def mark(function: Marked) -> Marked:
        function.__lemmata_recipe__ = {"system": system, "data": data, "metric": metric}  # type: ignore[attr-defined]
        return function

    return mark
