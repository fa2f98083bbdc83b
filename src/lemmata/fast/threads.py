r"""Work shared by threads. They are Python's own: a call through ctypes lets go of the interpreter's lock, and a second
OpenMP beside torch's would not survive a fork.
"""

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from lemmata import validate

MOST = 1 << 16  # threads: each has a bound in a list

__all__ = ["even_bounds", "share_work"]


def even_bounds(blocks: int, threads: int) -> list[int]:
    """Where each thread's share of the blocks begins, and the end; a thread too many has nothing to do.

    >>> even_bounds(10, 3)
    [0, 3, 6, 10]
    """
    validate.count("blocks", blocks, least=0)
    threads = max(min(validate.count("threads", threads, most=MOST), blocks), 1)
    return [blocks * index // threads for index in range(threads + 1)]


def share_work(work: Callable[[int, int], object], bounds: Sequence[int]) -> None:
    """`work(first, last)` for each pair of neighbouring bounds, side by side; this thread takes the first itself."""
    if not callable(work):
        raise TypeError(f"work must be a function of two bounds, got {type(work).__name__}")
    whole = isinstance(bounds, tuple | list) and all(isinstance(each, int) for each in bounds)
    if not whole or len(bounds) < 2 or any(a > b for a, b in itertools.pairwise(bounds)):
        raise ValueError(f"bounds must be two integers or more that go up, got {bounds!r}"[:200])
    pool = _thread_pool(torch.get_num_threads())  # which starts a thread when there is work for it
    others = [pool.submit(work, *bounds[index : index + 2]) for index in range(1, len(bounds) - 1)]
    work(*bounds[:2])
    for other in others:
        other.result()


@functools.cache
def _thread_pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="lemmata-fast")


# A forked process has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread_pool.cache_clear)
