"""Convolution by our choice between torch's kernels and spectra, against each of the two alone, and scipy.

The sizes lie on both sides of the crossover and near it. Our choice must not be far behind the better of the two, which
nobody knows beforehand: `measured` has tried both before the clock runs, `auto` goes by expectation alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.convolution.convolution_layer import conv_nd

# Batch, inputs, outputs, and for each axis of space the sizes of signal and kernel.
SIZES = {
    "short": (1, 1, 1, [(65_536, 9)]),
    "middle": (1, 1, 1, [(16_384, 65)]),
    "long": (1, 1, 1, [(65_536, 2048)]),
    "picture": (1, 1, 1, [(512, 31), (512, 31)]),
    "layer": (8, 16, 16, [(32, 3), (32, 3)]),
    "wide_layer": (8, 16, 16, [(32, 15), (32, 15)]),
}


class Problem(NamedTuple):
    """A signal and kernels."""

    x: Tensor  # (batch, inputs, *space)
    weight: Tensor  # (outputs, inputs, *kernel)


@entry(
    "convolution",
    title="Convolution by kernels or spectra",
    measures="one convolution without padding, float32; every choice was made before",
    cases={
        "short": "65,536 places, kernel of 9",
        "middle": "16,384 places, kernel of 65",
        "long": "65,536 places, kernel of 2,048",
        "picture": "512 x 512, kernel of 31 x 31",
        "layer": "8 pictures of 32 x 32, 16 to 16 channels, kernels of 3 x 3",
        "wide_layer": "8 pictures of 32 x 32, 16 to 16 channels, kernels of 15 x 15",
    },
    targets={"torch": 1.1, "torch.fft": 1.1},
)
def problem(case: str, device: str) -> Problem:
    """Gaussian signals and kernels."""
    batch, inputs, outputs, axes = SIZES[case]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, inputs, *(size for size, _ in axes), generator=generator)
    weight = torch.randn(outputs, inputs, *(size for _, size in axes), generator=generator)
    return Problem(x.to(device), weight.to(device))


@ours("lemmata, measured")
def by_measurement(problem: Problem) -> Callable[[], Tensor]:
    """Whichever was quicker when both were tried."""
    conv_nd(*problem, method="measured")
    return lambda: conv_nd(*problem, method="measured")


@ours("lemmata, auto")
def by_expectation(problem: Problem) -> Callable[[], Tensor]:
    """Whichever is expected to be quicker, the same on every machine."""
    return lambda: conv_nd(*problem)


@ours("lemmata, fft")
def by_blocks(problem: Problem) -> Callable[[], Tensor]:
    """Spectra of blocks, multiplied as matrices."""
    return lambda: conv_nd(*problem, method="fft")


@peer("torch")
def by_kernels(problem: Problem) -> Callable[[], Tensor]:
    """Torch's own kernels."""
    kernel = (functional.conv1d, functional.conv2d)[problem.x.ndim - 3]
    return lambda: kernel(*problem)


@peer("torch.fft")
def by_whole_spectra(problem: Problem) -> Callable[[], Tensor]:
    """The three lines that everybody writes: transforms of the whole signal, a product, and back."""
    x, weight = problem
    axes, sizes = tuple(range(2, x.ndim)), x.shape[2:]
    kept = tuple(slice(0, n - k + 1) for n, k in zip(sizes, weight.shape[2:], strict=True))

    def convolve() -> Tensor:
        spectra = torch.fft.rfftn(x, sizes, axes), torch.fft.rfftn(weight, sizes, axes).conj()
        return torch.fft.irfftn(torch.einsum("bi...,oi...->bo...", *spectra), sizes, axes)[(..., *kept)]

    return convolve


@peer("scipy.signal", needs="scipy", cases="short middle long picture")
def by_scipy(problem: Problem) -> Callable[[], Tensor]:
    """Its own choice between the definition and spectra, for one channel, on the processor."""
    from scipy import signal

    x, weight = (np.ascontiguousarray(part[0, 0].cpu().numpy()) for part in problem)

    def correlate() -> Tensor:
        return torch.from_numpy(signal.correlate(x, weight, mode="valid", method="auto"))[None, None]

    return correlate


@limit("the signal read and the result written once")
def copying(problem: Problem) -> Callable[[], Tensor]:
    """No way around that, whatever is computed between."""
    y = conv_nd(*problem)
    result, signal = torch.empty_like(y), problem.x.flatten()

    def copy() -> Tensor:
        torch.sum(signal, 0)
        return result.copy_(y)

    return copy


@agreement(within=1e-3)
def in_numbers(y: Tensor) -> dict[str, float]:
    """How large the result is, and its product with a signal that no shift leaves alone."""
    y = y.double().cpu().flatten()
    wave = torch.cos(torch.arange(len(y), dtype=torch.float64) ** 2 % 997)
    return {"length": float(y.norm()), "with a wave": float(y.norm() + y @ wave)}
