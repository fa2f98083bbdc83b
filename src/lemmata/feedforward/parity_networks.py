r"""Networks of threshold neurons that compute the parity of their inputs: wide and flat, a chain, and a tree."""

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from lemmata import validate
from lemmata.connectionism.mcculloch_pitts import (
    McCullochPittsNetwork,
    McCullochPittsNeuron,
    boolean_inputs,
    boolean_network,
)
from lemmata.marks import system

__all__ = ["ExclusiveOr", "ParityNetwork", "parity_by_terms", "parity_by_thresholds"]


@system("parity_by_terms", title="Parity as an OR of ANDs", kind="function")
def parity_by_terms(inputs: int) -> McCullochPittsNetwork:
    r"""One hidden AND for each of the $2^{N-1}$ inputs with an odd number of ones, and an OR of them.

    $$ x_1 \oplus \dots \oplus x_N = \bigvee_{r:\ \sum_i r_i \text{ odd}} \mathbb 1\{x = r\} $$

    Shapes:
        x: (..., inputs) of 0 and 1    returns: (...), of 0 and 1 in the dtype of x

    Claims: xor.shallow_dnf

    >>> parity_by_terms(3).hidden.synapses.shape
    torch.Size([4, 3])
    """
    rows = boolean_inputs(validate.count("inputs", inputs, most=16))
    return boolean_network((rows.sum(1) % 2).tolist())


@system("parity_by_thresholds", title="Parity by as many thresholds as inputs", kind="function")
def parity_by_thresholds(inputs: int) -> McCullochPittsNetwork:
    r"""Hidden neuron $k$ tells whether at least $k$ inputs are 1; their alternating sum is the parity.

    $$ h_k = \mathbb 1\Big\{\sum_i x_i \ge k\Big\}, \qquad
       y = \mathbb 1\Big\{\sum_{k=1}^N (-1)^{k+1} h_k \ge \tfrac12\Big\} $$

    Shapes:
        x: (..., inputs) of 0 and 1    returns: (...), of 0 and 1 in the dtype of x

    Claims: xor.shallow_threshold

    >>> parity_by_thresholds(3)(boolean_inputs(3))
    tensor([0, 1, 1, 0, 1, 0, 0, 1])
    """
    numbers = torch.arange(1, validate.count("inputs", inputs) + 1)
    hidden = McCullochPittsNeuron(torch.ones(inputs, inputs), numbers)
    return McCullochPittsNetwork(hidden, McCullochPittsNeuron(2 * (numbers % 2) - 1, 0.5))


@system(
    "exclusive_or", title="Exclusive or of two inputs", kind="module", example="ExclusiveOr()(torch.randint(2, (4, 2)))"
)
class ExclusiveOr(nn.Module):
    r"""Three threshold neurons, or two where the output neuron sees the inputs too.

    $$ \mathbb 1\{h_1 + h_2 \ge 2\}, \quad h_1 = \mathbb 1\{a + b \ge 1\},\ h_2 = \mathbb 1\{-a - b \ge -1\} $$
    $$ \text{with skip connections: } \mathbb 1\{a + b - 2h \ge 1\}, \quad h = \mathbb 1\{a + b \ge 2\} $$

    The weight $-2$ is two inhibiting synapses from the same neuron.

    Shapes:
        x: (..., 2) of 0 and 1    returns: (...), of 0 and 1 in the dtype of x

    Claims: xor.two_input

    >>> ExclusiveOr(skip=True)(torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]))
    tensor([0, 1, 1, 0])
    """

    depth = 2

    def __init__(self, skip: bool = False) -> None:
        super().__init__()
        self.skip = validate.flag("skip", skip)
        if skip:
            self.hidden = McCullochPittsNeuron(torch.tensor([[1, 1]]), torch.tensor([2]))
            self.output = McCullochPittsNeuron(torch.tensor([1, 1, -1, -1]), 1)
        else:
            self.hidden = McCullochPittsNeuron(torch.tensor([[1, 1], [-1, -1]]), torch.tensor([1, -1]))
            self.output = McCullochPittsNeuron(torch.tensor([1, 1]), 2)

    @property
    def neurons(self) -> int:
        return len(self.hidden.synapses) + 1

    def forward(self, x: Shaped[Tensor, "*batch 2"]) -> Shaped[Tensor, "*batch"]:
        fired = self.hidden(x)  # (..., 2) -> (..., 1 or 2)
        return self.output(torch.cat([x, fired, fired], dim=-1) if self.skip else fired)


@system(
    "parity_network", title="Deep parity network", kind="module", example="ParityNetwork(5)(torch.randint(2, (4, 5)))"
)
class ParityNetwork(nn.Module):
    r"""$N - 1$ exclusive ors of two inputs, one after the other ("chain") or in pairs ("tree").

    $$ ((x_1 \oplus x_2) \oplus x_3) \oplus x_4 \qquad\text{or}\qquad (x_1 \oplus x_2) \oplus (x_3 \oplus x_4) $$

    `neurons` and `depth`, the most neurons on a way from an input to the output, are counted on the network as built.

    Shapes:
        x: (..., inputs) of 0 and 1    returns: (...), of 0 and 1 in the dtype of x

    Claims: xor.chain, xor.tree

    >>> chain, tree = ParityNetwork(8), ParityNetwork(8, shape="tree")
    >>> (chain.neurons, chain.depth), (tree.neurons, tree.depth)
    ((21, 14), (21, 6))
    """

    def __init__(self, inputs: int, shape: str = "chain", skip: bool = False) -> None:
        super().__init__()
        self.inputs = validate.count("inputs", inputs, least=2)
        self.shape = validate.one_of("shape", shape, ["chain", "tree"])
        self.wiring = _chain_edges(inputs) if shape == "chain" else _tree_edges(inputs)
        self.blocks = nn.ModuleList(ExclusiveOr(skip) for _ in self.wiring)

    @property
    def neurons(self) -> int:
        return sum(block.neurons for block in self.blocks)  # type: ignore[misc]

    @property
    def depth(self) -> int:
        depths = [0] * self.inputs
        for left, right in self.wiring:
            depths.append(ExclusiveOr.depth + max(depths[left], depths[right]))
        return depths[-1]

    def forward(self, x: Shaped[Tensor, "*batch inputs"]) -> Shaped[Tensor, "*batch"]:
        wires = list(validate.last_axis("x", x, self.inputs, "input").unbind(-1))  # each is looked at by its block
        for block, (left, right) in zip(self.blocks, self.wiring, strict=True):
            wires.append(block(torch.stack([wires[left], wires[right]], dim=-1)))  # (...)
        return wires[-1]

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, shape={self.shape}"


# Wires are numbered: first the inputs, then the output of one block after the other.


def _chain_edges(inputs: int) -> list[tuple[int, int]]:
    return [(0, 1), *((inputs + block, block + 2) for block in range(inputs - 2))]


def _tree_edges(inputs: int) -> list[tuple[int, int]]:
    """In every round neighbours are paired; one that is left over waits for the next round."""
    wiring, open = list[tuple[int, int]](), list(range(inputs))
    while len(open) > 1:
        pairs = list(zip(open[::2], open[1::2], strict=False))
        first = inputs + len(wiring)
        open = [*range(first, first + len(pairs)), *open[2 * len(pairs) :]]
        wiring += pairs
    return wiring
