"""A denoiser as one CUDA graph: many small kernels are started at once, which is most of a small network's time."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = []  # for the samplers of DDPM

WORTH = 8  # calls from which recording the kernels pays
WARM_UP = 3  # calls before it, in which libraries choose their kernels

Denoiser = Callable[[Tensor, Tensor], Tensor]


def captured(denoiser: Denoiser, x: Tensor, calls: int) -> Denoiser:
    """The denoiser as it is, or on a GPU its kernels for inputs as x, recorded once and started together.

    What it returns is overwritten by the next call: for samplers, which are done with it by then.
    """
    if not x.is_cuda or calls < WORTH or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return denoiser
    given, time = x.clone(), torch.ones(len(x), dtype=torch.long, device=x.device)
    with _without_cast_cache(x.device):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                denoiser(given, time)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            answer = denoiser(given, time)

    def replayed(x: Tensor, t: Tensor) -> Tensor:
        given.copy_(x)
        time.copy_(t)
        graph.replay()
        return answer

    return replayed


def _without_cast_cache(device: torch.device) -> torch.autocast:
    """Autocast as it is outside, but without the copies of weights it keeps, which a graph would lose."""
    kind = device.type
    return torch.autocast(
        kind, dtype=torch.get_autocast_dtype(kind), enabled=torch.is_autocast_enabled(kind), cache_enabled=False
    )
