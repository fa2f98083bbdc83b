"""The peak memory of a piece of work: seen when it is given back at once, and not seen again afterwards."""

import sys

import pytest

from lemmata.bench.memory import PeakMemory

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lowers the mark")
SIZE = 64 << 20


def peak_of(work):
    with PeakMemory() as peak:
        work()
    return peak.bytes


@linux
def test_an_allocation_that_is_given_back_is_seen():
    assert 0.8 * SIZE <= peak_of(lambda: len(b"x" * SIZE)) <= 1.2 * SIZE


@linux
def test_the_peak_of_earlier_work_and_memory_still_held_do_not_count():
    held = b"x" * SIZE
    peak_of(lambda: len(b"x" * SIZE))
    assert peak_of(lambda: len(b"x" * (SIZE // 2))) <= 0.6 * SIZE
    assert len(held) == SIZE


def test_a_device_that_tells_nothing_gives_none():
    with PeakMemory("mps") as peak:
        pass
    assert peak.bytes is None
