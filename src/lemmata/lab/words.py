"""Words that the terminal and the page share: numbers, counts, times, scores, and what a user can mend."""

from collections.abc import Mapping
from typing import Any

__all__ = ["GROUNDS", "UserError", "count", "is_fraction", "number", "score", "seconds", "sharpness_words"]

GROUNDS = {"exact": "exactly", "numeric": "numerically", "statistical": "statistically", "training": "by training"}
FRACTIONS = ("accuracy", "recalled")  # scores whose names end so are read as percentages: robust_accuracy 59.3 %


class UserError(Exception):
    """Something the user can mend; its message is the one line they see."""


def number(value: Any) -> str:
    """A measured value in as few characters as tell it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}" if abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:.5g}"


def seconds(value: float) -> str:
    """0.42 s, 37 s, 2.5 min"""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s" if value < 100 else f"{value / 60:.1f} min"


def count(n: int, one: str, many: str = "") -> str:
    """1 claim, 2 claims."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def score(name: str, value: float, share: bool = False) -> str:
    """accuracy 84.3 %, loss 0.412"""
    return f"{name} {100 * value:.1f} %" if share or is_fraction(name) else f"{name} {value:.3g}"


def is_fraction(name: str) -> bool:
    """Whether a score of this name is read as a percentage."""
    return name.endswith(FRACTIONS)


def sharpness_words(notice: Mapping[str, Any] | None) -> str:
    """`notices from 0.51, and from 0.49 on the other side`; nothing where nothing was measured."""
    if not notice:
        return ""
    name = notice["argument"]
    own = f"notices {name} from {_number_text(notice['from'])}" if notice["from"] is not None else f"notices no {name}"
    own += f" ({notice['regime']})" if notice["regime"] else ""
    if notice["other"] is not None:
        other = f"from {_number_text(notice['other'])} on the other side"
    else:
        other = "nothing on the other side"
    return f"{own}, {other}" + (f" ({notice['loose']})" if notice["loose"] else "")


def _number_text(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.8g}"
