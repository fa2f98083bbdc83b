"""Lists of times: both ends, any count, and walks that do not fall."""

from itertools import pairwise

import pytest

from lemmata.generative.diffusion.sampling_times import spaced_times, walked_times


@pytest.mark.parametrize(("T", "count"), [(1000, 1), (1000, 50), (1000, 999), (1000, 1000), (7, 3), (1, 1)])
def test_both_ends_are_visited_and_no_time_twice(T, count):
    times = spaced_times(T, count)
    assert (times[0], times[-1], len(times)) == (T, 0, count + 1)
    gaps = [before - after for before, after in pairwise(times)]
    assert min(gaps) >= 1
    assert max(gaps) - min(gaps) <= 1


def test_all_times_are_walked_without_a_list_and_a_list_as_it_is():
    assert walked_times(None, 3) == [3, 2, 1, 0]
    assert walked_times([9, 2, 1], 10) == [9, 2, 1]


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ([5, 5, 0], "times must fall at every step, got 5 after 5"),
        ([1, 5], "times must fall at every step, got 5 after 1"),
        ([11, 0], "times must be <= 10, got 11"),
        ([5, -1], "times must be >= 0, got -1"),
        ([5], r"times must hold at least a first and a last time, got \[5\]"),
        ([], r"times must hold at least a first and a last time, got \[\]"),
    ],
)
def test_a_walk_that_does_not_fall_is_refused(times, sentence):
    with pytest.raises(ValueError, match=sentence):
        walked_times(times, 10)


@pytest.mark.parametrize(("T", "count"), [(10, 11), (10, 0), (0, 1)])
def test_a_count_that_does_not_fit_is_refused(T, count):
    with pytest.raises(ValueError, match="must be"):
        spaced_times(T, count)
