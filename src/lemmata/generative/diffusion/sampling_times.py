"""The times that a sampler visits: a list that begins where it starts, ends where it stops, and is walked as given."""

from collections.abc import Sequence
from itertools import pairwise

import torch

from lemmata import validate

__all__ = ["spaced_times", "walked_times"]


def spaced_times(T: int, count: int) -> list[int]:
    """From T to 0 in `count` steps, as equal as integers allow: both ends are visited, whatever the count.

    >>> spaced_times(1000, 4), spaced_times(10, 3)
    ([1000, 750, 500, 250, 0], [10, 7, 3, 0])
    """
    validate.count("count", count, most=validate.count("T", T))
    return torch.linspace(T, 0, count + 1, dtype=torch.float64).round().long().tolist()


def walked_times(times: Sequence[int] | None, T: int) -> list[int]:
    """The list as it is, or all times from T to 0; ValueError unless it falls at every step.

    >>> walked_times([3, 3, 0], 10)
    Traceback (most recent call last):
    ValueError: times must fall at every step, got 3 after 3
    """
    if times is None:
        return list(range(T, -1, -1))
    walk = [int(validate.count("times", t, least=0, most=T)) for t in times]
    if len(walk) < 2:
        raise ValueError(f"times must hold at least a first and a last time, got {walk}")
    for before, after in pairwise(walk):
        if after >= before:
            raise ValueError(f"times must fall at every step, got {after} after {before}")
    return walk
