"""Axes: from a value to its place between 0 and 1, with the ticks a reader would have chosen."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Scale", "number", "usable"]

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def usable(value: Any, log: bool = False) -> bool:
    """Whether a value has a place on an axis: a finite number, above zero where the axis is logarithmic."""
    return isinstance(value, int | float) and abs(value) < 1e300 and not (log and value < 1e-300)


def number(value: float, step: float = 0.0) -> str:
    """A number as a reader wants it; with `step`, the decimals that tell ticks so far apart from each other.

    >>> number(0.5, step=0.25), number(-20000.0), number(3e-7), number(0.1234567)
    ('0.50', '−20,000', '3×10⁻⁷', '0.123')
    """
    size = abs(value)
    if size and not 1e-4 <= size < 1e6:
        text = _scientific_label(value)
    elif step and size:
        decimals = next((d for d in range(8) if abs(round(step, d) - step) < 1e-9 * step), 8)
        text = f"{value:,.{decimals}f}"
    else:
        digits = max(0, 2 - math.floor(math.log10(size))) if size else 0  # three that count
        text = f"{value:,.{digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic axis over [low, high].

    >>> Scale(0, 10)(2.5), Scale(1, 100, log=True)(10)
    (0.25, 0.5)
    >>> [label for _, label in Scale(0, 1).ticks(4)]
    ['0', '0.5', '1.0']
    """

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Iterable[Any], log: bool = False, zero: bool = False) -> "Scale":
        """The scale that shows every usable value, with a little air; `zero` asks for zero to be on it."""
        found = [float(value) for value in values if usable(value, log)]
        low, high = (min(found), max(found)) if found else (1.0, 10.0) if log else (0.0, 1.0)
        if log:
            return cls(low * 0.8, high * 1.25, log) if high > 1.5 * low else cls(low / 2, high * 2, log)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            reach = max(abs(low) / 2, 0.5)
            low, high = low - reach, high + reach
        air = 0.04 * (high - low)
        # An axis that starts a little above zero misleads; one that starts below it shows nothing there.
        floor = 0.0 if 0 <= low <= high / 4 else low - air
        return cls(floor, high + air * (high != 0 or not zero))

    def __call__(self, value: float) -> float:
        if self.log:
            low, high = math.log(self.low), math.log(self.high)  # a ratio of both may be beyond all numbers
            return (math.log(value) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """About `most` round values or fewer, each with its label."""
        narrow = self.log and self.high < 3 * self.low
        return self._decade_ticks(most) if self.log and not narrow else self._round_ticks(most)

    def _round_ticks(self, most: int) -> list[tuple[float, str]]:
        span = self.high - self.low
        decade = 10.0 ** math.floor(math.log10(span / most))
        step = next(s * decade for s in (1, 2, 5, 10, 20) if span / (s * decade) <= most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(k * step, number(k * step, step)) for k in range(first, last + 1)]

    def _decade_ticks(self, most: int) -> list[tuple[float, str]]:
        low, high = math.log10(self.low), math.log10(self.high)
        stride = max(1, math.ceil((high - low) / most))
        digits = (1,) if high - low > 2.5 else (1, 2, 5)
        label = number if low > -3.5 and high < 5.5 else _scientific_label
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [digit * 10.0**power for power in powers if power % stride == 0 for digit in digits]
        return [(value, label(value)) for value in values if self.low <= value <= self.high]


def _scientific_label(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = "10" + str(int(exponent)).translate(SUPERSCRIPTS)
    return power if mantissa == "1" else f"{mantissa}×{power}"
