"""The time an audit may take, and what is left of it."""

import time
from collections.abc import Callable

__all__ = []  # for probes


class OutOfTime(Exception):
    """What was to be measured would take longer than what is left; the sentence says how long.

    `times` is how many times the budget would do.
    """

    def __init__(self, sentence: str, times: float = 2.0):
        super().__init__(sentence)
        self.times = times


class Clock:
    """A time budget in seconds, from which probes take parts.

    >>> times = iter([0.0, 4.0, 4.0])
    >>> clock = Clock(10.0, now=lambda: next(times))
    >>> clock.left()
    6.0
    >>> clock.need(20.0, "the spectrum")
    Traceback (most recent call last):
    lemmata.audit.clock.OutOfTime: the spectrum would take about 20 s, of which 6.0 s are left
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.perf_counter):
        self.seconds, self.now = seconds, now
        self.start = now()

    def left(self) -> float:
        """Seconds that are left, never below zero."""
        return max(self.start + self.seconds - self.now(), 0.0)

    def spent(self) -> float:
        """Seconds since the beginning."""
        return self.now() - self.start

    def part(self, fraction: float) -> "Clock":
        """A clock for a fraction of the whole budget, or for what is left of it where that is less."""
        return Clock(min(fraction * self.seconds, self.left()), self.now)

    def need(self, seconds: float, what: str) -> None:
        """Refuse to begin what would take longer than what is left."""
        left = self.left()
        if left == 0:
            raise OutOfTime(f"its time was over before {what}")
        if seconds > left:
            times = 1 + (seconds - left) / self.seconds
            raise OutOfTime(
                f"{what} would take about {_seconds_in_words(seconds)}, of which {_seconds_in_words(left)} are left",
                times,
            )


def _seconds_in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds:.1g} s"
