"""Where a run stands beside its weights, as a checkpoint tells it: looked at before it is believed."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = []  # for the loop

ENDS = ("finished", "patience", "callback", "converged")


def checked_position(told: Any, step: int) -> dict[str, Any]:
    """What the loop wrote into the checkpoint of a step, or a ValueError that names what is wrong."""
    if not isinstance(told, Mapping):
        raise ValueError(f"its position must be an object, not {told!r}")
    best = told.get("best")
    looks = {
        "step": type(told.get("step")) is int and told["step"] == step,
        **{name: _is_count(told.get(name)) for name in ("epoch", "position", "count", "epoch_count")},
        **{name: _are_numbers(told.get(name)) for name in ("sums", "epoch_sums")},
        "seconds": _is_number(told.get("seconds")) and 0 <= told["seconds"] < math.inf,
        "stopped": told.get("stopped") in ENDS,
        "best": isinstance(best, Mapping)
        and _are_numbers(best.get("scores"))
        and _is_count(best.get("since"))
        and isinstance(best.get("system", 0), Mapping | None),
    }
    for name, right in looks.items():
        if not right:
            raise ValueError(f"its {name} cannot be {told.get(name)!r}"[:160])
    return dict(told)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(n, str) and _is_number(v) for n, v in value.items())
