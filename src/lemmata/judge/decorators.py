"""`@claim` and `@lie`: the truth as default arguments, each falsehood as one other value."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

from lemmata.catalog.statements import COSTS
from lemmata.judge.evidence import Evidence

__all__ = ["Claim", "Lie", "claim", "lie"]


@dataclass(frozen=True)
class Lie:
    """One false neighbour of a claim: the argument it changes and the value it takes instead.

    `regime` says why the check notices a change in this direction late, `loose` why it accepts one in the other
    direction: the slack side of a bound, say. Both are for the reader and for `lemmata check --sharp`.
    """

    text: str
    argument: str
    value: Any
    printed: str = ""
    raises: type[Exception] | None = None
    regime: str = ""
    loose: str = ""


class Claim:
    """A check with its lies. Calling it runs the check: defaults for the truth, one other value for a lie."""

    def __init__(self, id: str, function: Callable[..., Evidence], lies: tuple[Lie, ...], cost: str):
        self.id, self.function, self.lies, self.cost = id, function, lies, cost
        update_wrapper(self, function)

    def __call__(self, draw: Any, **changed: Any) -> Evidence:
        return self.function(draw, **changed)

    def __repr__(self) -> str:
        return f"<claim {self.id}: {len(self.lies)} lies>"


def claim(id: str, *, cost: str = "quick") -> Callable[[Callable[..., Evidence]], Claim]:
    """Make a function the check of the statement with this id. `cost` serves claims that have no statements.yaml."""

    def declare(function: Callable[..., Evidence]) -> Claim:
        if isinstance(function, Claim):
            raise TypeError(f"{id}: @claim stands once, above all its @lie lines")
        if cost not in COSTS:
            raise ValueError(f"{id}: cost must be one of {', '.join(COSTS)}, got {cost!r}")
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].default is not inspect.Parameter.empty:
            raise TypeError(f"{id}: the first parameter must be draw, without a default")
        truth = {p.name: p.default for p in parameters[1:]}
        if inspect.Parameter.empty in truth.values():
            name = next(name for name, value in truth.items() if value is inspect.Parameter.empty)
            raise TypeError(f"{id}: parameter {name} needs its true value as default")
        lies = tuple(getattr(function, "__lies__", ()))
        for each in lies:
            if each.argument not in truth:
                raise TypeError(f"{id}: lie {each.text!r} changes {each.argument!r}, which the check does not take")
            if _is_same_value(truth[each.argument], each.value):
                raise TypeError(f"{id}: lie {each.text!r} gives {each.argument} its true value")
        return Claim(id, function, lies, cost)

    return declare


def lie(
    text: str,
    *,
    printed: str = "",
    raises: type[Exception] | None = None,
    regime: str = "",
    loose: str = "",
    **changed: Any,
) -> Callable[[Callable[..., Evidence]], Callable[..., Evidence]]:
    """Add a lie: exactly one argument with a false value. `printed` names the misprint it stands for ("003/1").

    `raises` is for what cannot be computed as printed: the lie is rejected by exactly that exception and nothing else.
    `regime` and `loose` give a reason where a small change of a number must not be noticed: see `Lie`.
    """
    if len(changed) != 1:
        raise TypeError(f"lie {text!r} must change exactly one argument, got {', '.join(changed) or 'none'}")
    if raises is not None and not (isinstance(raises, type) and issubclass(raises, Exception)):
        raise TypeError(f"lie {text!r}: raises must be a class of exceptions such as ValueError, got {raises!r}")
    ((argument, value),) = changed.items()

    def add(function: Callable[..., Evidence]) -> Callable[..., Evidence]:
        if isinstance(function, Claim):
            raise TypeError(f"lie {text!r} must stand below @claim")
        lies = [Lie(text, argument, value, printed, raises, regime, loose), *getattr(function, "__lies__", ())]
        function.__lies__ = lies  # type: ignore[attr-defined]
        return function

    return add


def _is_same_value(truth: Any, value: Any) -> bool:
    if truth is value:
        return True
    plain = (int, float, complex, str, bool, tuple, type(None))
    return isinstance(truth, plain) and isinstance(value, plain) and type(truth) is type(value) and truth == value
