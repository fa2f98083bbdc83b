r"""The McCulloch-Pitts neuron, every gate that one of them computes, and networks of them that compute the rest."""

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["McCullochPittsNetwork", "McCullochPittsNeuron", "boolean_inputs", "boolean_network", "threshold_gates"]

TruthTable = tuple[bool, ...]


@system(
    "mcculloch_pitts",
    title="McCulloch-Pitts neuron",
    kind="module",
    example="McCullochPittsNeuron(torch.tensor([1, 1, -1]), threshold=1)(torch.randint(2, (4, 3)))",
)
class McCullochPittsNeuron(nn.Module):
    r"""A neuron that fires when its excited inputs outnumber its inhibited ones by the threshold.

    $$ f[\sigma,\theta](x) = \mathbb 1\{\sigma^\top x \ge \theta\}, \qquad x \in \{0,1\}^n,\ \sigma \in \{-1,+1\}^n $$

    Synapses and threshold are buffers: the model has no learning rule and nothing to train. Several neurons over the
    same inputs are written as one module by giving the synapses and thresholds a leading axis.

    Shapes:
        x: (..., inputs) of 0 and 1    synapses: (inputs,) or (neurons, inputs)    threshold: scalar or (neurons,)
        returns: (...) or (..., neurons), of 0 and 1 in the dtype of x

    Claims: mcculloch.neuron, mcculloch.expressivity
    Source: McCulloch and Pitts 1943.

    >>> both = McCullochPittsNeuron(torch.tensor([1, 1]), threshold=2)
    >>> both(torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]))
    tensor([0, 0, 0, 1])
    """

    synapses: Tensor
    threshold: Tensor

    def __init__(self, synapses: Shaped[Tensor, "*neurons inputs"], threshold: int | float | Tensor) -> None:
        super().__init__()
        if not validate.tensor("synapses", synapses).is_meta:
            validate.signs("synapses", synapses)
        if synapses.ndim not in (1, 2):
            raise ValueError(f"synapses must be a (neurons, inputs) tensor, got shape {tuple(synapses.shape)}")
        level = torch.as_tensor(threshold, dtype=torch.float32, device=synapses.device)
        if not level.is_meta:
            validate.floating("threshold", level)
        if level.shape != synapses.shape[:-1]:
            found = tuple(level.shape)
            raise ValueError(f"threshold must have shape {tuple(synapses.shape[:-1])} like synapses, got {found}")
        self.register_buffer("synapses", synapses.to(torch.float32, copy=True))
        self.register_buffer("threshold", level.clone())

    def forward(self, x: Shaped[Tensor, "*batch inputs"]) -> Tensor:
        validate.last_axis("x", x, self.synapses.shape[-1], "input")
        if validate.visible(x):
            validate.bits("x", x)
        excitation = torch.inner(x.to(self.synapses), self.synapses)  # (..., inputs) -> (...) or (..., neurons)
        return (excitation >= self.threshold).to(x.dtype)

    def extra_repr(self) -> str:
        return f"synapses={self.synapses.int().tolist()}, threshold={self.threshold.tolist()}"


@system(
    "mcculloch_pitts_network",
    title="Two layers of McCulloch-Pitts neurons",
    kind="module",
    example="McCullochPittsNetwork(McCullochPittsNeuron(torch.tensor([[1, 1], [-1, -1]]), torch.tensor([1, -1])), "
    "McCullochPittsNeuron(torch.tensor([1, 1]), 2))(torch.randint(2, (4, 2)))",
)
class McCullochPittsNetwork(nn.Module):
    r"""A hidden layer of McCulloch-Pitts neurons read by one output neuron.

    $$ f(x) = g\big(h_1(x), \dots, h_m(x)\big) $$

    Shapes:
        x: (..., inputs) of 0 and 1    returns: (...), of 0 and 1 in the dtype of x

    Claims: mcculloch.expressivity

    >>> exclusive_or = boolean_network([False, True, True, False])
    >>> exclusive_or(boolean_inputs(2))
    tensor([0, 1, 1, 0])
    """

    def __init__(self, hidden: McCullochPittsNeuron, output: McCullochPittsNeuron) -> None:
        super().__init__()
        if hidden.synapses.ndim != 2 or output.synapses.ndim != 1 or len(hidden.synapses) != len(output.synapses):
            shapes = f"{tuple(hidden.synapses.shape)} and {tuple(output.synapses.shape)}"
            raise ValueError(f"synapses must have shapes (neurons, inputs) and (neurons,), got {shapes}")
        self.hidden = hidden
        self.output = output

    def forward(self, x: Shaped[Tensor, "*batch inputs"]) -> Shaped[Tensor, "*batch"]:
        fired = self.hidden(x)  # (..., inputs) -> (..., neurons)
        return self.output(fired)  # (...)


def boolean_inputs(inputs: int) -> Int[Tensor, "rows inputs"]:
    r"""All $2^n$ inputs in counting order, the first input being the most significant bit.

    Shapes:
        returns: (2^inputs, inputs)

    Claims: mcculloch.neuron, mcculloch.expressivity

    >>> boolean_inputs(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    validate.count("inputs", inputs, least=1, most=16)
    return torch.tensor(list(itertools.product([0, 1], repeat=inputs)))


def threshold_gates(inputs: int) -> dict[TruthTable, McCullochPittsNeuron]:
    r"""Every Boolean function that a single neuron computes, with a neuron computing it.

    The search is exhaustive: $\sigma^\top x$ is an integer between $-n$ and $n$, so the thresholds $-n, \dots, n+1$
    give all distinct behaviours of each of the $2^n$ choices of synapses.

    Claims: mcculloch.expressivity

    >>> gates = threshold_gates(2)
    >>> len(gates), gates[False, False, False, True]
    (10, McCullochPittsNeuron(synapses=[1, 1], threshold=2.0))
    """
    validate.count("inputs", inputs, least=1, most=8)
    rows = boolean_inputs(inputs)
    gates: dict[TruthTable, McCullochPittsNeuron] = {}
    for synapses in itertools.product([1, -1], repeat=inputs):
        for threshold in range(-inputs, inputs + 2):
            neuron = McCullochPittsNeuron(torch.tensor(synapses), threshold)
            gates.setdefault(tuple(neuron(rows).bool().tolist()), neuron)
    return gates


def boolean_network(truth_table: Sequence[int]) -> McCullochPittsNetwork:
    r"""A two-layer network computing the Boolean function with this truth table (a disjunctive normal form).

    One hidden neuron per true row $r$ fires on that row alone: $\sigma_j = 2r_j - 1$ and $\theta = \sum_j r_j$, which
    $\sigma^\top x$ reaches only at $x = r$. The output neuron fires if any of them does.

    Shapes:
        truth_table: $2^n$ truth values in the order of `boolean_inputs`

    Claims: mcculloch.expressivity

    >>> boolean_network([True, False])(torch.tensor([[0], [1]]))
    tensor([1, 0])
    """
    table = validate.bits("truth_table", torch.as_tensor(truth_table)).bool()
    if table.ndim != 1:
        raise ValueError(f"truth_table must be one row of truth values, got shape {tuple(table.shape)}")
    inputs = len(table).bit_length() - 1
    if inputs < 1 or len(table) != 2**inputs:
        raise ValueError(f"truth_table must hold 2, 4, 8, ... truth values, got {len(table)}")
    rows = boolean_inputs(inputs)[table]  # (true rows, inputs)
    if len(rows) == 0:  # a constant 0: one hidden neuron that cannot fire, since no excitation exceeds n
        hidden = McCullochPittsNeuron(torch.ones(1, inputs), torch.tensor([inputs + 1]))
    else:
        hidden = McCullochPittsNeuron(2 * rows - 1, rows.sum(dim=1))
    return McCullochPittsNetwork(hidden, McCullochPittsNeuron(torch.ones(len(hidden.synapses)), 1))
