"""Every system of the chapter gives on a GPU what it gives on the CPU, and answers where its data lie."""

import pytest
import torch

from lemmata.connectionism import (
    DenseAssociativeMemory,
    ExponentialMemory,
    HopfieldNetwork,
    LinearThresholdUnit,
    MaximumMarginClassifier,
    McCullochPittsNeuron,
    ModernHopfield,
    ModernHopfieldLayer,
    Perceptron,
    VersionSpace,
    count_dichotomies,
    crosstalk,
    separate,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def signs(*shape):
    return torch.randint(0, 2, shape).double() * 2 - 1


def labelled():
    x = torch.randn(40, 3, dtype=torch.float64)
    y = torch.where(x[:, 0] > 0, 1.0, -1.0).double()
    return x + 0.2 * y[:, None], y


def noisy(patterns, share=0.1):
    return torch.where(torch.rand(patterns.shape) < share, -patterns, patterns)


def neuron(bits):
    return McCullochPittsNeuron(torch.ones(4), 2).to(bits.device)(bits)


def perceptron(x, y):
    learnt = Perceptron(record=True).fit(x, y)
    return learnt.weight_, learnt.predict(x), learnt.mistake_counts_, learnt.trajectory_


def widest(x, y):
    learnt = MaximumMarginClassifier().fit(x, y)
    return learnt.weight_, learnt.support_, learnt.predict(x)


def hopfield(patterns, states):
    network = HopfieldNetwork.from_patterns(patterns)
    found = [network.recall(states, dynamics) for dynamics in ("asynchronous", "synchronous")]
    return network.weight, network.energy(states), *(recall.states for recall in found), found[0].overlap


def dense(patterns, states):
    memories = DenseAssociativeMemory(patterns), ExponentialMemory(patterns)
    return tuple(answer for memory in memories for answer in (memory.recall(states).states, memory.energy(states)))


def attention(patterns, states):
    torch.manual_seed(0)
    layer = ModernHopfieldLayer(patterns.shape[1], heads=2).double().to(patterns.device)
    return ModernHopfield(patterns, steps=3)(states), layer(states[None], patterns[None])


DATA, MEMORIES = labelled(), signs(5, 24)
CASES = {
    "neuron": (neuron, (torch.randint(0, 2, (6, 4)).double(),)),
    "unit": (lambda x: LinearThresholdUnit(torch.ones(3).to(x), 0.5).to(x.device)(x), (DATA[0],)),
    "perceptron": (perceptron, DATA),
    "separate": (lambda x, y: separate(x, y).weight, DATA),
    "maximum margin": (widest, DATA),
    "version space": (lambda x, y: torch.tensor(VersionSpace(x[:5, :2], y[:5]).fraction()), DATA),
    "dichotomies": (lambda x: torch.tensor(count_dichotomies(x[:5])), (DATA[0],)),
    "hopfield": (hopfield, (MEMORIES, noisy(MEMORIES))),
    "crosstalk": (crosstalk, (MEMORIES,)),
    "dense memories": (dense, (MEMORIES, noisy(MEMORIES))),
    "attention": (attention, (MEMORIES, noisy(MEMORIES))),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gpu_agrees_with_the_cpu(case):
    call, arguments = CASES[case]
    here, there = call(*arguments), call(*(argument.cuda() for argument in arguments))
    for cpu, gpu in zip(*(each if isinstance(each, tuple) else (each,) for each in (here, there)), strict=True):
        torch.testing.assert_close(gpu.cpu(), cpu)
    if case not in ("version space", "dichotomies"):  # these answer with a number
        assert all(gpu.is_cuda for gpu in (there if isinstance(there, tuple) else (there,)))
