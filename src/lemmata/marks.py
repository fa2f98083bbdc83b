"""`@system` and `@recipe`: how a chapter says what it holds. Standard library only, literal arguments.

The marks are read from the source without importing it (`lemmata.catalog`), so a chapter knows nothing else of the
machinery, and a change of the machinery changes no chapter.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["recipe", "recipe_for", "system", "usual_settings"]

Marked = TypeVar("Marked", bound=Callable[..., Any])


def system(id: str, *, title: str, kind: str, example: str = "") -> Callable[[Marked], Marked]:
    """Mark a class or function as a system of the course; the arguments must be literals.

    `example` is one call that makes a module and runs it, such as `"LSTM(3, 5)(torch.randn(4, 7, 3))"`, with which
    `lemmata.testing.check_module` tries it. Its names are those of the module's file or chapter.
    """

    def mark(part: Marked) -> Marked:
        words = {"id": id, "title": title, "kind": kind, "example": example}
        part.__lemmata_system__ = words  # type: ignore[attr-defined]
        return part

    return mark


def recipe(*systems: str, data: str, metric: str) -> Callable[[Marked], Marked]:
    """Mark a function that trains a system on a data set; the arguments must be literals.

    It takes `data`, `config` and `options`. Where systems differ in nothing but their name, one function trains several
    of them: it takes `system` too, and a default that is not the same for all of them is a mapping by their names.
    """

    def mark(function: Marked) -> Marked:
        function.__lemmata_recipe__ = {"systems": systems, "data": data, "metric": metric}  # type: ignore[attr-defined]
        if len(systems) == 1:
            return function
        signature = inspect.signature(function)

        @functools.wraps(function)
        def of_one_system(*positional: Any, **named: Any) -> Any:
            given = signature.bind(*positional, **named)
            given.apply_defaults()
            system = given.arguments["system"]
            if system not in systems:
                raise ValueError(f"system must be one of {', '.join(systems)}, got {system!r}")
            return function(**{name: _value_for_system(value, system) for name, value in given.arguments.items()})

        return of_one_system  # type: ignore[return-value]

    return mark


def recipe_for(function: Callable[..., Any], system: str) -> Callable[..., Any]:
    """A recipe as it is for one of its systems, called with data, config and options."""
    if "system" not in inspect.signature(function).parameters:
        return function

    @functools.wraps(function)
    def chosen(*positional: Any, **named: Any) -> Any:
        return function(*positional, system=system, **named)

    return chosen


def usual_settings(function: Callable[..., Any], system: str) -> tuple[Any, Any]:
    """The config and the options that a recipe has for one of its systems unless others are given."""
    parameters = inspect.signature(function).parameters
    return _value_for_system(parameters["config"].default, system), _value_for_system(
        parameters["options"].default, system
    )


def _value_for_system(value: Any, system: str) -> Any:
    return value[system] if isinstance(value, Mapping) else value
