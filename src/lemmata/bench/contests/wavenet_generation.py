"""New samples of a WaveNet with a receptive field of 1,024: from what its layers remember, and with all computed anew.

The beginning, 1,100 samples, is read before the clock runs: it costs both the same. The network is the usual one, with
32 channels and random weights, in single precision. Both ways are given the same random numbers, and a sample would
differ only where one falls within some 1e-6 of the edge between two levels.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.convolution.wavenet import WaveNet
from lemmata.fast.wavenet_steps import drawn_level

LENGTH = 256


class Sound(NamedTuple):
    """A network, and the samples that it goes on from, (batch, time)."""

    network: WaveNet
    x: Tensor


@entry(
    "wavenet_generation",
    title="WaveNet's generation",
    measures="256 new samples, each given to the network before the next one is drawn",
    cases={"one": "one sequence, receptive field 1,024"},
    targets={"all computed anew": 0.02},
    devices="cpu",
)
def sound(case: str, device: str) -> Sound:
    """Ten layers with dilations 1 to 512, and noise to begin with."""
    del case
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = WaveNet(device=device)
        return Sound(network, torch.randint(256, (1, 1100)).to(device))


@ours("lemmata")
def from_memory(problem: Sound) -> Callable[[], Tensor]:
    """Compiled steps, unless there is no compiler."""
    begun = problem.network.begin(problem.x)

    def work() -> Tensor:
        state = replace(begun, memory=begun.memory.clone(), last=begun.last.clone())
        return problem.network.sample(state, LENGTH, generator=torch.Generator().manual_seed(1))

    return work


@ours("lemmata without a compiler")
def in_torch(problem: Sound) -> Callable[[], Tensor]:
    """The same steps in torch."""
    network, begun = problem.network, problem.network.begin(problem.x)

    def work() -> Tensor:
        state, samples = replace(begun, memory=begun.memory.clone(), last=begun.last.clone()), []
        generator = torch.Generator().manual_seed(1)
        for chance in torch.rand(LENGTH, len(problem.x), generator=generator, dtype=torch.float64):
            samples.append(drawn_level(network.step(state), 1.0, chance))
            network.hear(state, samples[-1])
        return torch.stack(samples, dim=1)

    return work


@peer("all computed anew")
def by_definition(problem: Sound) -> Callable[[], Tensor]:
    """The whole receptive field for every sample."""
    time = problem.x.shape[1]

    def work() -> Tensor:
        generator = torch.Generator().manual_seed(1)
        return problem.network.generate_by_definition(problem.x, LENGTH, generator=generator)[:, time:]

    return work


@limit("each weight of the layers multiplied once for each sample")
def products(problem: Sound) -> Callable[[], object]:
    """One product with a matrix that has as many entries, as often as there are samples."""
    network = problem.network
    weights = sum(values.numel() for name, values in network.named_parameters() if "embedding" not in name)
    width = network.config.channels
    matrix, x = torch.rand(weights // width, width), torch.rand(width, 1)
    out = torch.empty(len(matrix), 1)

    def work() -> Tensor:
        for _ in range(LENGTH):
            torch.mm(matrix, x, out=out)
        return out

    return work


@agreement(within=0.0)
def in_numbers(samples: Tensor) -> dict[str, float]:
    """Where the samples are, and which."""
    places = torch.arange(1, 1 + samples.numel())
    return {"sum": float(samples.sum()), "moment": float((samples.flatten() * places).sum())}
