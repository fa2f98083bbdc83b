r"""What a convolution costs, written out and by Fourier transforms, and which of the two is the quicker."""

import functools
import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata import validate

__all__ = ["direct_operations", "fft_operations", "fft_pays"]

PLAN = 20  # transforms of a length whose time it takes to prepare for that length, which torch does at each call
BESIDE = 10  # levels of a transform whose time the copies and products take that each of its values has beside it
CALL, SPECTRAL_CALL = 25_000.0, 100_000.0  # nanoseconds before the first operation, by torch's kernels and by spectra
LANES = 16  # outputs that torch's kernels compute at once, and channels to which they fill up maps, in float32
PRODUCTS = 3.0  # operations in a nanosecond, of the small matrices of complex numbers at each frequency
COPIES, COPY = 3, 0.2  # how often the spectra are written and read, and nanoseconds for each byte
FRESH = 2**25  # bytes, from which on glibc asks the system for new pages at each call


class Rates(NamedTuple):
    """Operations in a nanosecond; for each byte that torch's kernels lay out, and for a new one, nanoseconds."""

    channels: float
    each_channel: float
    transforms: float
    copy: float
    fresh: float


# On one core of a busy server (Xeon with AVX-512, torch 2.13, November 2026), chosen to fit 436 sizes in one and two
# dimensions: of these same sizes, 98 % are computed in at most 1.1 times the time of the better way, and all in 1.7. Of
# sizes that were not fitted it is 95 %. Only the ratios count, and they differ by machine: `method="measured"` of
# `conv_nd` asks the one at hand.
RATES = {torch.float32: Rates(125.0, 40.0, 24.0, 0.05, 0.25), torch.float64: Rates(45.0, 3.3, 20.0, 0.1, 0.5)}

_quicker: dict[Hashable, str] = {}  # what measured_choice found


def direct_operations(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int]) -> int:
    """Multiplications and additions of a convolution as it is defined.

    Shapes:
        x: (batch, inputs, *space), weight: (outputs, inputs / groups, *kernel), sizes: those of the output's space

    Claims: conv.fft_cost

    >>> direct_operations((1, 1, 1024), (1, 1, 3), (1022,))
    6132
    """
    _check_shapes(x, weight, sizes)
    return 2 * x[0] * math.prod(weight) * math.prod(sizes)


def fft_operations(x: Sequence[int], weight: Sequence[int]) -> float:
    r"""The same by spectra: $\tfrac52 N\log_2N$ for each real transform, 8 for each product of complex numbers.

    Claims: conv.fft_cost

    >>> fft_operations((1, 1, 1024), (1, 1, 3)) > 10 * direct_operations((1, 1, 1024), (1, 1, 3), (1022,))
    True
    """
    _check_shapes(x, weight, x[2:])
    length = math.prod([fast_length(size) for size in x[2:]])
    transforms = x[0] * x[1] + weight[0] * weight[1] + x[0] * weight[0]
    products = x[0] * weight[0] * weight[1] * length / 2  # half of a real signal's spectrum says all
    return 2.5 * transforms * length * max(1.0, math.log2(length)) + 8 * products


def fft_pays(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int], dtype: torch.dtype = torch.float32) -> bool:
    """Whether spectra are expected to be quicker than torch's own kernels, the same on every machine.

    >>> fft_pays((1, 1, 10_000), (1, 1, 3), (9998,)), fft_pays((1, 1, 10_000), (1, 1, 2000), (8001,))
    (False, True)
    """
    return expected_ratio(x, weight, sizes, dtype) > 1


def expected_ratio(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int], dtype: torch.dtype) -> float:
    """The expected time of torch's kernels over that of spectra."""
    if not dtype.is_floating_point:
        raise TypeError(f"dtype must be floating point, got {dtype}")
    ratio = _time_ratio.__wrapped__ if torch.compiler.is_compiling() else _time_ratio
    return ratio(tuple(x), tuple(weight), tuple(sizes), dtype)


@functools.lru_cache(maxsize=1024)  # to work it out takes as long as a small convolution
def _time_ratio(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int], dtype: torch.dtype) -> float:
    return _direct_time(x, weight, sizes, dtype) / _spectral_time(x, weight, dtype)


def _direct_time(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int], dtype: torch.dtype) -> float:
    """Nanoseconds of torch's kernels: those for float32 fill up channels, those for float64 write out all windows."""
    rates, value = RATES.get(dtype, RATES[torch.float32]), torch.finfo(dtype).bits // 8
    operations: float = direct_operations(x, weight, sizes)
    alone = weight[1] == 1 < x[1]  # each channel for itself
    if dtype == torch.float64:
        copied = value * x[0] * x[1] * math.prod(weight[2:]) * math.prod(sizes)
        largest = copied * weight[1] / x[1]  # groups take turns
    else:
        before, after = _filled_lanes(x[1]) * math.prod(x[2:]), _filled_lanes(weight[0]) * math.prod(sizes)
        copied, largest = value * x[0] * (before + after), value * x[0] * max(before, after)
        operations *= 1 if alone else _filled_lanes(weight[0]) / weight[0]
    copies = copied * (rates.copy + (rates.fresh if largest >= FRESH else 0.0))
    return CALL + operations / (rates.each_channel if alone else rates.channels) + copies


def _filled_lanes(channels: int) -> int:
    return -(-channels // LANES) * LANES


def _spectral_time(x: Sequence[int], weight: Sequence[int], dtype: torch.dtype) -> float:
    """Nanoseconds by spectra of blocks."""
    rates, value = RATES.get(dtype, RATES[torch.float32]), torch.finfo(dtype).bits // 8
    blocks = block_lengths(x, weight)
    places, block = list(x[2:]), math.prod(blocks)
    for axis, (length, reach) in enumerate(zip(blocks, weight[2:], strict=True)):
        places[axis] = length * -(-(x[2 + axis] - reach + 1) // (length - reach + 1))
    signal = math.prod(places)  # places of all blocks
    parts = x[0] * x[1] * signal, x[0] * weight[0] * signal, weight[0] * weight[1] * block
    transforms = 2.5 * max(1.0, math.log2(block)) * (sum(parts) + 3 * PLAN * sum(blocks))
    # Half of a real signal's spectrum says all. With one channel to add up, the product is a copy like the others.
    products = 8 * x[0] * weight[0] * weight[1] * signal / 2 if weight[1] > 1 else 0
    copies = value * sum(parts) * (COPIES * COPY + (rates.fresh if value * max(parts) >= FRESH else 0.0))
    return SPECTRAL_CALL + transforms / rates.transforms + products / PRODUCTS + copies


def measured_choice(key: Hashable, ways: Mapping[str, Callable[[], Tensor]], seconds: float = 0.02) -> str:
    """The quicker of several ways to compute the same, timed at the first use of a key and remembered.

    They take turns, so that what else the machine does meets all of them; the best time of each counts.
    """
    if key not in _quicker:
        best, begun, rounds = dict.fromkeys(ways, math.inf), time.perf_counter(), 0
        while rounds < 3 or time.perf_counter() - begun < seconds:
            for name, way in ways.items():
                best[name] = min(best[name], _measured_seconds(way))
            rounds += 1
        _quicker[key] = min(best, key=best.__getitem__)
    return _quicker[key]


def _measured_seconds(way: Callable[[], Tensor]) -> float:
    begun = time.perf_counter()
    y = way()
    if y.is_cuda:
        torch.cuda.synchronize(y.device)
    return time.perf_counter() - begun


def block_lengths(x: Sequence[int], kernel: Sequence[int]) -> list[int]:
    """How long the transforms are: of the whole signal, or of blocks of it where that takes less.

    Shapes:
        x: (batch, inputs, *space), kernel: (outputs, inputs / groups, *space) with the zeros between its taps
    """
    return [_block_length(size, reach, math.prod(x) // size) for size, reach in zip(x[2:], kernel[2:], strict=True)]


def _block_length(size: int, reach: int, rows: int) -> int:
    best, length = fast_length(size), 1
    while length < size:
        # At least half of a block are windows.
        if length >= 2 * reach and _axis_cost(length, size, reach, rows) < _axis_cost(best, size, reach, rows):
            best = length
        length *= 2
    return best


def _axis_cost(length: int, size: int, reach: int, rows: int) -> float:
    """What transforms of one axis cost in blocks of a length."""
    blocks = -(-(size - reach + 1) // (length - reach + 1))
    levels = max(1.0, math.log2(length))
    return (rows * blocks * (levels + BESIDE) + PLAN * levels) * length


def fast_length(size: int) -> int:
    """The least length from `size` on whose transform is quick: a product of twos, threes and fives."""
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 1


def _check_shapes(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int]) -> None:
    if not len(x) == len(weight) == len(sizes) + 2:
        raise ValueError(f"x and weight must have two axes more than sizes, got {len(x)}, {len(weight)}, {len(sizes)}")
    for name, shape in ("x", x), ("weight", weight), ("sizes", sizes):
        for size in shape:
            validate.count(name, size)
