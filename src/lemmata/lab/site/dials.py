"""What a reader can turn on a lie, as far as its source tells: the page must not wait for a child process to say it.

Literal numbers become a slider, other literals a switch. A name or an expression is left to the code itself: see
`dials_of` in views/probe.py, whose answer has the same form.
"""

import ast
from typing import Any

from lemmata.catalog import LieEntry

__all__ = ["guess", "scale"]

STEPS = 20  # from truth to lie


def guess(lie: LieEntry) -> dict[str, Any] | None:
    """The dial of a lie whose truth and value are literals; None where only running the code can tell.

    >>> guess(LieEntry("", argument="sign", value="1.0", truth="-1.0"))
    {'argument': 'sign', 'kind': 'real', 'truth': -1.0, 'lie': 1.0}
    """
    try:
        truth, value = ast.literal_eval(lie.truth), ast.literal_eval(lie.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in (truth, value)):
        return {"argument": lie.argument, "kind": "switch", "truth": 0, "lie": 1}
    whole = isinstance(truth, int) and isinstance(value, int)
    return {"argument": lie.argument, "kind": "whole" if whole else "real", "truth": truth, "lie": value}


def scale(dial: dict[str, Any]) -> dict[str, Any]:
    """A dial as a slider from truth to lie, in whole steps."""
    low, high = sorted((dial["truth"], dial["lie"]))
    return dial | {"low": low, "high": high, "step": (high - low) / STEPS if dial["kind"] == "real" else 1}
