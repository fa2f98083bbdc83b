"""The roofline: work takes as long as its operations at the best rate that is measured, or its bytes at the best one.

Unlike a piece of the work that is timed, this is a limit for a fused kernel, too: it moves less through memory, but it
multiplies no faster than a large matrix product does.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from lemmata.bench.registry import Seconds

SIDES = {"cpu": (512, 1024), "gpu": (4096, 8192)}  # of the square matrices whose product shows the rate
BYTES = {"cpu": (2**20, 2**24), "gpu": (2**30,)}  # a processor's caches are quicker than its memory
AGAIN = 3


def roofline(
    operations: float, moved: float, device: str, dtype: torch.dtype, held: float | None = None
) -> Callable[[], Seconds]:
    """A limit's repeat: it measures both rates and works out the seconds.

    `operations` are the additions and multiplications of the matrix products in this dtype, `moved` the bytes that are
    read or written. Where the same bytes are moved again and again, `held` says how many they are: a cache may hold
    them.
    """
    kind, factory_kwargs = "cpu" if device == "cpu" else "gpu", {"device": device, "dtype": dtype}
    squares = [torch.randn(side, side, **factory_kwargs) for side in SIDES[kind]]
    sizes = BYTES[kind]
    rows = {int(size) // 1024 // squares[0].element_size() for size in (*sizes, min(held or moved, max(sizes)))}
    matrices = [torch.zeros(max(number, 1), 1024, **factory_kwargs) for number in rows]
    vector, copies = torch.zeros(1024, **factory_kwargs), [torch.zeros_like(matrix) for matrix in matrices]

    def work() -> Seconds:
        rates = [2 * len(square) ** 3 / _least_seconds(device, torch.mm, square, square) for square in squares]
        speeds = [matrix.nbytes / _least_seconds(device, torch.mv, matrix, vector) for matrix in matrices]
        for matrix, copy in zip(matrices, copies, strict=True):
            speeds.append(2 * matrix.nbytes / _least_seconds(device, copy.copy_, matrix))
        return Seconds(max(operations / max(rates), moved / max(speeds)))

    return work


def _least_seconds(device: str, call: Callable[..., Any], *given: Any) -> float:
    """The least time of a few calls, of which the first does not count."""
    times = []
    for _ in range(1 + AGAIN):
        began = time.perf_counter()
        call(*given)
        if device != "cpu":
            torch.accelerator.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[1:])
