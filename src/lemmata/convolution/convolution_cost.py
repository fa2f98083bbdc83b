r"""What a convolution costs, written out and by Fourier transforms, and which of the two is the quicker."""

import math
from collections.abc import Sequence

import torch

from lemmata import validate

__all__ = ["direct_operations", "fft_operations", "fft_pays"]

# How many operations torch's kernels do in the time that transforms take for one, on one core: with one channel both
# wait for memory; with many, the kernels are matrix products, in double precision less good ones.
ONE_CHANNEL = 2.0
CHANNELS = {torch.float32: 16.0, torch.float64: 4.0}


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
    """Whether spectra are expected to be quicker than torch's own kernels.

    >>> fft_pays((1, 1, 10_000), (1, 1, 3), (9998,)), fft_pays((1, 1, 10_000), (1, 1, 2000), (8001,))
    (False, True)
    """
    head_start = ONE_CHANNEL if weight[1] == 1 else CHANNELS.get(dtype, max(CHANNELS.values()))
    return head_start * fft_operations(x, weight) < direct_operations(x, weight, sizes)


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
