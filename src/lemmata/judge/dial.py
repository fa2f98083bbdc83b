"""The dial of a lie: what a reader can turn from the truth to the lie, in whole positions.

Page, command line and judge all take it from here. A position is an integer, so that no rounding error keeps a
slider from its ends: position 0 is the truth and the last one the lie, exactly.
"""

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Dial", "dial_of", "is_number"]

# Steps from truth to lie on a dial of real numbers; as many on one of integers that are far apart.
STEPS = 40
# Up to so many steps, a dial of integers has all of them.
EACH = 100


@dataclass(frozen=True)
class Dial:
    """A number from truth to lie, or a switch between them, whose values are 0 and 1.

    >>> dial = dial_of("half", 0.5, 1.0)
    >>> dial.kind, dial.last, dial.value(0), dial.value(1), dial.value(dial.last)
    ('real', 40, 0.5, 0.5125, 1.0)
    >>> [dial_of("n", 3, 1).value(k) for k in range(3)]
    [3, 2, 1]
    """

    argument: str
    kind: str  # "whole", "real" or "switch"
    truth: float
    lie: float

    @property
    def last(self) -> int:
        """The position of the lie; the truth has position 0."""
        if self.kind == "real":
            return STEPS
        apart = abs(int(self.lie) - int(self.truth))
        return apart if apart <= EACH else STEPS

    def value(self, position: int) -> float:
        """The value at a position, with as few digits as tell it from its neighbours."""
        if not 0 <= position <= self.last:
            raise ValueError(f"{self.argument} has positions from 0 to {self.last}, got {position}")
        if position in (0, self.last):
            return self.lie if position else self.truth
        if self.kind == "whole":
            return int(self.truth) + (int(self.lie) - int(self.truth)) * position // self.last
        step = (self.lie - self.truth) / self.last
        digits = 2 - math.floor(math.log10(abs(step))) if step else 0
        return round(self.truth + step * position, digits)


def dial_of(argument: str, truth: Any, lie: Any) -> Dial:
    """The dial between two values of an argument: a number where both are numbers, else a switch."""
    if not (is_number(truth) and is_number(lie)):
        return Dial(argument, "switch", 0, 1)
    if isinstance(truth, int) and isinstance(lie, int):
        return Dial(argument, "whole", truth, lie)
    return Dial(argument, "real", float(truth), float(lie))


def is_number(value: Any) -> bool:
    """Whether a slider can go there: an int or float of a size that a reader can read, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
