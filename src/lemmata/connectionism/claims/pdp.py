"""The seven elements of parallel distributed processing: they rebuild the systems of this chapter, and none is idle."""

import torch
from torch import Tensor

from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.connectionism.mcculloch_pitts import McCullochPittsNeuron, boolean_inputs
from lemmata.connectionism.pdp import Element, ParallelDistributedProcess
from lemmata.connectionism.perceptron import Perceptron
from lemmata.judge import Evidence, all_of, claim, exactly, lie

_PLAIN = {
    "output": Element("as it is", lambda activation: activation),
    "propagation": Element("weighted sum", torch.mv),
    "learning": Element("none", None),
    "environment": Element("none", lambda step, activation: activation),
}


def _last_takes_the_sum(step: int, activation: Tensor, net: Tensor) -> Tensor:
    return torch.cat([activation[:-1], net[-1:]])


def _shown_environment(rows: Tensor):
    """An environment that holds all units but the last at one row of a table after the other."""
    return lambda step, activation: torch.cat([rows[step % len(rows)], activation[-1:]])


def _neuron_process(synapses: Tensor, threshold: float) -> dict:
    """Inputs, shown the table of all inputs row by row, and one neuron; inputs fire from 1/2 on."""
    n = len(synapses)
    levels = torch.tensor([0.5] * n + [threshold], dtype=torch.float64)
    weights = torch.zeros(n + 1, n + 1, dtype=torch.float64)
    weights[-1, :-1] = synapses
    return _PLAIN | {
        "units": Element("all silent", torch.zeros(n + 1, dtype=torch.float64)),
        "output": Element("step at the threshold", lambda activation: (activation >= levels).double()),
        "connectivity": Element("inputs to neuron", weights),
        "activation": Element("the neuron takes the sum", _last_takes_the_sum),
        "environment": Element("one row at a time", _shown_environment(boolean_inputs(n).double())),
    }


def _training_process(x: Tensor, y: Tensor) -> dict:
    """Units: the features, a constant, the teacher, and the answering unit, which alone has connections."""
    rows = torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64), y[:, None]], dim=1)
    n = rows.shape[1] + 1
    teacher, answering = torch.eye(n, dtype=torch.float64)[-2:]
    heard = 1 - answering - teacher  # the teacher speaks, but not through a weight

    def correct(weights, sent, answered):
        return weights + (sent[-2] * answered[-1] <= 0) * torch.outer(answering, sent[-2] * sent * heard)

    return _PLAIN | {
        "units": Element("all silent", torch.zeros(n, dtype=torch.float64)),
        "output": Element("sign of the answer", lambda held: torch.cat([held[:-1], held[-1:].sign()])),
        "connectivity": Element("inputs to answer", torch.zeros(n, n, dtype=torch.float64)),
        "activation": Element("the answer takes the sum", _last_takes_the_sum),
        "learning": Element("correct mistakes", correct),
        "environment": Element("labelled points in turn", _shown_environment(rows)),
    }


def _memory_process(network: HopfieldNetwork, stimulus: Tensor, sequential: bool) -> dict:
    """Units hold their local field and send its sign; in sequence or all at once."""
    turns = torch.eye(network.units, dtype=torch.bool)
    everyone = torch.ones(network.units, dtype=torch.bool)

    def settle(step, activation, net):
        turn = turns[step % network.units] if sequential else everyone
        return torch.where(turn, net - network.bias, activation)

    return _PLAIN | {
        "units": Element("the stimulus", stimulus),
        "output": Element("sign, +1 at 0", lambda activation: torch.where(activation >= 0, 1.0, -1.0).double()),
        "connectivity": Element("symmetric", network.weight),
        "activation": Element("local field", settle),
    }


def _idle_process(elements: dict, without: str) -> dict:
    """The process with one element that does nothing."""
    idle = {
        "units": torch.zeros_like(elements["units"].value),
        "output": lambda activation: activation,
        "connectivity": torch.zeros_like(elements["connectivity"].value),
        "propagation": lambda connectivity, sent: sent,
        "activation": lambda step, activation, net: activation,
        "learning": None,
        "environment": lambda step, activation: activation,
    }
    return elements | {without: Element("idle", idle[without])}


def _restless_network(draw) -> tuple[HopfieldNetwork, Tensor]:
    """A network of small whole numbers (so that every sum is exact) and a state that it does not leave alone."""
    upper = draw.integers(-3, 4, 8, 8).double().triu(1)
    network = HopfieldNetwork(8, weight=upper + upper.T, bias=draw.integers(-2, 3, 8).double(), dtype=torch.float64)
    return network, draw.signs(8)


def _perceptron_lesson(draw) -> tuple[Tensor, Tensor, Perceptron]:
    """Six points of small whole numbers, and the perceptron trained on them."""
    x = draw.integers(-3, 4, 6, 2).double()
    y = torch.where(2 * x[:, 0] + x[:, 1] >= 1, 1.0, -1.0).double()
    return x, y, Perceptron(record=True).fit(x, y)


def _outputs_agree(draw, build) -> list[Evidence]:
    synapses = draw.signs(3)
    neuron = McCullochPittsNeuron(synapses, 1.0)
    table = build(_neuron_process(synapses, 1.0)).run(8)

    x, y, model = draw.until(lambda: _perceptron_lesson(draw), lambda made: made[2].mistakes_ > 3)
    moments = build(_training_process(x, y)).run(6 * model.epochs_)
    learnt = torch.stack([moment.connectivity[-1, :3] for moment in moments])
    updates = torch.nonzero((learnt.diff(dim=0) != 0).any(dim=1))[:, 0]

    # A state of +1 alone is also what silent units send: it would not show that there were units to start from.
    network, state = draw.until(
        lambda: _restless_network(draw), lambda made: not made[0].is_stable(made[1]) and bool((made[1] < 0).any())
    )
    in_turn = build(_memory_process(network, 2 * state, sequential=True)).run(16)  # what a unit sends is its sign alone
    together = build(_memory_process(network, state, sequential=False)).run(3)
    states = [state]
    for step in range(16):
        states.append(network.update(states[-1], step % 8))
    at_once = [state]
    for _ in range(3):
        at_once.append(network.recall(at_once[-1][None], "synchronous", max_sweeps=1).states[0])
    return [
        exactly(torch.stack([moment.output[-1] for moment in table[1:]]), neuron(boolean_inputs(3).double())),
        exactly(learnt[torch.cat([updates.new_zeros(1), updates + 1])], model.trajectory_),
        exactly(updates % 6, model.updates_),
        exactly(torch.stack([moment.output for moment in in_turn]), torch.stack(states)),
        exactly(torch.stack([moment.output for moment in together]), torch.stack(at_once)),
    ]


@claim("pdp.elements")
@lie("no units with a state to start from", without="units")
@lie("no output function: units send their activation as it is", without="output")
@lie("no pattern of connectivity", without="connectivity")
@lie("no propagation rule: nothing arrives but a unit's own output", without="propagation")
@lie("no activation rule: units keep what they hold", without="activation")
@lie("no learning rule", without="learning")
@lie("no environment", without="environment")
@lie("six elements make a process, too", raises=TypeError, elements=6)
def seven_elements_are_enough_and_each_is_needed(draw, process=ParallelDistributedProcess, elements=7, without=""):
    """The McCulloch-Pitts neuron, the perceptron's training and the Hopfield network's dynamics, rebuilt from their
    seven elements alone, reproduce the shipped systems bit for bit."""

    def build(description: dict) -> ParallelDistributedProcess:
        given = _idle_process(description, without) if without else description
        return process(**dict(list(given.items())[:elements]))

    return all_of(*_outputs_agree(draw, build))
