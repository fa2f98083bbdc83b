"""The clock of an audit: parts of a budget, and what is refused."""

import pytest

from lemmata.audit.clock import Clock, OutOfTime


class Time:
    """A time that only moves when it is told to."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def test_a_part_is_a_fraction_of_the_whole_or_what_is_left():
    time = Time()
    clock = Clock(10.0, time)
    assert clock.part(0.3).left() == 3.0
    time.seconds = 8.0
    assert clock.part(0.3).left() == 2.0
    time.seconds = 11.0
    assert clock.left() == 0.0
    assert clock.part(0.3).left() == 0.0
    assert clock.spent() == 11.0


def test_a_part_passes_with_the_whole():
    time = Time()
    part = Clock(10.0, time).part(0.5)
    time.seconds = 4.0
    assert part.left() == 1.0


def test_what_fits_is_allowed_and_what_does_not_is_told_in_seconds():
    time = Time()
    clock = Clock(100.0, time)
    clock.need(100.0, "everything")
    time.seconds = 58.5
    with pytest.raises(OutOfTime, match=r"^the spectrum would take about 200 s, of which 42 s are left$"):
        clock.need(200.0, "the spectrum")
    time.seconds = 97.5
    with pytest.raises(OutOfTime, match=r"about 3\.0 s, of which 2\.5 s are left"):
        clock.need(3.0, "the spectrum")
    with pytest.raises(OutOfTime, match=r"about 0\.03 s, of which 0\.02 s are left"):
        Clock(0.02, time).need(0.03, "the spectrum")
    time.seconds = 100.0
    with pytest.raises(OutOfTime, match=r"^its time was over before the spectrum$"):
        clock.need(0.0, "the spectrum")
