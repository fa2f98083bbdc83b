r"""What a convolution costs, written out and by Fourier transforms, and which of the two is the quicker."""

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
CALL, SPECTRAL_CALL = 10_000.0, 90_000.0  # nanoseconds before the first operation, by torch's kernels and by spectra
COPIES, BANDWIDTH = 3, 8.0  # how often the spectra are written and read, and bytes in a nanosecond


class Rates(NamedTuple):
    """Operations in a nanosecond: of torch's kernels by the channels they add up, of transforms and of products."""

    one_channel: float
    each_channel: float
    channels: float
    transforms: float
    products: float


# On one core of a busy server (Xeon with AVX-512, torch 2.13, November 2026), chosen to fit 293 sizes in one and two
# dimensions: of these same sizes, 90 % are computed in at most 1.1 times the time of the better way. Only the ratios
# count, and they differ by machine: `method="measured"` of `conv_nd` asks the one at hand.
RATES = {torch.float32: Rates(6.0, 30.0, 90.0, 12.0, 30.0), torch.float64: Rates(2.7, 2.5, 28.0, 12.0, 20.0)}

_quicker: dict[Hashable, str] = {}  # what measured_choice found


def direct_operations(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int]) -> int:
    """Multiplications and additions of a convolution as it is defined.

    Shapes:
        x: (batch, inputs, *space), weight: (outputs, inputs / groups, *kernel), sizes: those of the output's space

    Claims: conv.fft_cost

    >>> direct_operations((1, 1, 1024), (1, 1, 3), (1022,))
    6132
    """
    _check(x, weight, sizes)
    return 2 * x[0] * math.prod(weight) * math.prod(sizes)


def fft_operations(x: Sequence[int], weight: Sequence[int]) -> float:
    r"""The same by spectra: $\tfrac52 N\log_2N$ for each real transform, 8 for each product of complex numbers.

    Claims: conv.fft_cost

    >>> fft_operations((1, 1, 1024), (1, 1, 3)) > 10 * direct_operations((1, 1, 1024), (1, 1, 3), (1022,))
    True
    """
    _check(x, weight, x[2:])
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
    rates = RATES.get(dtype, RATES[torch.float32])
    shared = rates.one_channel if x[1] == 1 else rates.each_channel
    direct = CALL + direct_operations(x, weight, sizes) / (shared if weight[1] == 1 else rates.channels)
    blocks = block_lengths(x, weight)
    places, block = list(x[2:]), math.prod(blocks)
    for axis, (length, reach) in enumerate(zip(blocks, weight[2:], strict=True)):
        places[axis] = length * -(-(x[2 + axis] - reach + 1) // (length - reach + 1))
    signal = math.prod(places)  # places of all blocks
    values = (x[0] * x[1] + x[0] * weight[0]) * signal + weight[0] * weight[1] * block
    transforms = 2.5 * max(1.0, math.log2(block)) * (values + 3 * PLAN * sum(blocks))
    products = 8 * x[0] * weight[0] * weight[1] * signal / 2  # half of a real signal's spectrum says all
    copies = COPIES * values * torch.finfo(dtype).bits / 8
    return direct / (SPECTRAL_CALL + transforms / rates.transforms + products / rates.products + copies / BANDWIDTH)


def measured_choice(key: Hashable, ways: Mapping[str, Callable[[], Tensor]], seconds: float = 0.02) -> str:
    """The quicker of several ways to compute the same, timed at the first use of a key and remembered.

    They take turns, so that what else the machine does meets all of them; the best time of each counts.
    """
    if key not in _quicker:
        best, begun, rounds = dict.fromkeys(ways, math.inf), time.perf_counter(), 0
        while rounds < 3 or time.perf_counter() - begun < seconds:
            for name, way in ways.items():
                best[name] = min(best[name], _seconds(way))
            rounds += 1
        _quicker[key] = min(best, key=best.__getitem__)
    return _quicker[key]


def _seconds(way: Callable[[], Tensor]) -> float:
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
        if length >= 2 * reach and _along(length, size, reach, rows) < _along(best, size, reach, rows):
            best = length
        length *= 2
    return best


def _along(length: int, size: int, reach: int, rows: int) -> float:
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


def _check(x: Sequence[int], weight: Sequence[int], sizes: Sequence[int]) -> None:
    if not len(x) == len(weight) == len(sizes) + 2:
        raise ValueError(f"x and weight must have two axes more than sizes, got {len(x)}, {len(weight)}, {len(sizes)}")
    for name, shape in ("x", x), ("weight", weight), ("sizes", sizes):
        for size in shape:
            validate.count(name, size)
