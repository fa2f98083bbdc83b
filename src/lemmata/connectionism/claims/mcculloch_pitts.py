"""What one McCulloch-Pitts neuron computes, and what networks of them compute."""

import itertools
import operator

import torch

from lemmata.connectionism.mcculloch_pitts import (
    McCullochPittsNetwork,
    McCullochPittsNeuron,
    boolean_inputs,
    boolean_network,
    threshold_gates,
)
from lemmata.judge import Domain, all_of, claim, count_is, everywhere, exactly, lie


class StrictNeuron(McCullochPittsNeuron):
    """Fires only above its threshold: for whole sums, from the next whole number above the threshold on."""

    def __init__(self, synapses, threshold):
        super().__init__(synapses, torch.as_tensor(threshold).floor() + 1)


@claim("mcculloch.neuron")
@lie("the neuron fires only above its threshold", neuron=StrictNeuron)
@lie("a conjunction needs one input less", conjunction=-1)
@lie("a disjunction fires without any input", disjunction=0)
def the_logical_gates_are_neurons(draw, neuron=McCullochPittsNeuron, conjunction=0, disjunction=1):
    """Gates of up to four inputs against the words all, any and not, on every input; and neurons with every choice of
    synapses, and thresholds on and between the whole numbers, against a plain sum."""
    gates, meant, fired, summed = [], [], [], []
    for n in range(1, 5):
        rows = list(itertools.product([0, 1], repeat=n))
        for synapse, threshold, meaning in (
            (1, n + conjunction, all),
            (1, disjunction, any),
            (-1, 1 - n, lambda bits: not all(bits)),
            (-1, 0, lambda bits: not any(bits)),
        ):
            gates += neuron(torch.full((n,), synapse), threshold)(torch.tensor(rows)).tolist()
            meant += [int(meaning(row)) for row in rows]
        synapses = list(itertools.product([-1, 1], repeat=n))
        for threshold in (-n, -0.5, 0, 0.5, 1, n):
            many = neuron(torch.tensor(synapses), torch.full((len(synapses),), threshold))
            fired += many(boolean_inputs(n)).flatten().bool().tolist()
            summed += [sum(map(operator.mul, signs, row)) >= threshold for row in rows for signs in synapses]
    return all_of(
        exactly(gates, meant),
        exactly(fired, summed),
        exactly(len(list(many.parameters())), 0, detail="nothing to train"),
    )


def network_without_inhibition(truth_table):
    """The same normal form from excitatory synapses alone: a monotone function."""
    network = boolean_network(truth_table)
    hidden = McCullochPittsNeuron(torch.ones_like(network.hidden.synapses), network.hidden.threshold)
    return McCullochPittsNetwork(hidden, network.output)


def computes(neuron, inputs):
    """The truth table of a neuron."""
    return tuple(neuron(boolean_inputs(inputs)).bool().tolist())


@claim("mcculloch.expressivity")
@lie("one neuron computes 14 of the 16 functions of two inputs, like a unit with real weights", two=14)
@lie("one neuron computes 104 of the 256 functions of three inputs, like a unit with real weights", three=104)
@lie("exclusive or is among the functions of one neuron", beyond=("x", "not x", "y", "not y", "x = y"))
@lie("networks without inhibitory synapses compute every function", network=network_without_inhibition)
def one_neuron_computes_few_functions_and_networks_compute_all(
    draw, two=10, three=26, beyond=("x", "not x", "y", "not y", "x = y", "x ≠ y"), network=boolean_network
):
    """The gates found by exhaustive search, each run on every input; networks for all functions of up to three inputs
    and for some of four."""
    meanings = {
        "x": lambda x, y: x,
        "not x": lambda x, y: not x,
        "y": lambda x, y: y,
        "not y": lambda x, y: not y,
        "x = y": lambda x, y: x == y,
        "x ≠ y": lambda x, y: x != y,
    }
    corners = list(itertools.product([False, True], repeat=2))
    parts = []
    found = {n: threshold_gates(n) for n in (1, 2, 3)}
    for n, number in ((1, 4), (2, two), (3, three)):
        tables, neurons = Domain.bits(2**n), Domain.signs(n) * Domain.range(-n, n + 2)
        parts += [
            count_is(tables, found[n].__contains__, number),
            everywhere(tables, lambda table, n=n: table not in found[n] or computes(found[n][table], n) == table),
            everywhere(neurons, lambda s, t, n=n: computes(McCullochPittsNeuron(torch.tensor(s), t), n) in found[n]),
        ]
    missing = {tuple(meanings[name](*at) for at in corners) for name in beyond}
    parts.append(everywhere(Domain.bits(4), lambda table: (table in found[2]) != (table in missing)))
    all_tables = [torch.tensor(list(itertools.product([0, 1], repeat=2**n))) for n in (1, 2, 3)]
    for n, tables in enumerate([*all_tables, draw.integers(0, 2, 8, 16)], start=1):
        computed = torch.stack([network(table.tolist())(boolean_inputs(n)) for table in tables])
        parts.append(exactly(computed, tables))
    return all_of(*parts)
