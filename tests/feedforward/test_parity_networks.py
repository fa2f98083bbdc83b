"""Parity networks: all inputs, every dtype and shape of batch, the neurons they are made of, and refusals."""

import pytest
import torch

from lemmata.connectionism import McCullochPittsNeuron, boolean_inputs
from lemmata.feedforward import ExclusiveOr, ParityNetwork, parity_by_terms, parity_by_thresholds

NETWORKS = {
    "terms": parity_by_terms,
    "thresholds": parity_by_thresholds,
    "chain": ParityNetwork,
    "chain with skips": lambda n: ParityNetwork(n, skip=True),
    "tree": lambda n: ParityNetwork(n, shape="tree"),
    "tree with skips": lambda n: ParityNetwork(n, shape="tree", skip=True),
}


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("inputs", [2, 3, 5, 6])
def test_every_input_gets_its_parity(kind, inputs):
    x = boolean_inputs(inputs)
    network = NETWORKS[kind](inputs)
    assert torch.equal(network(x), x.sum(1) % 2)
    for dtype in (torch.float32, torch.bfloat16, torch.int8):
        answer = network(x.to(dtype).reshape(2, -1, inputs))
        assert answer.dtype is dtype
        assert torch.equal(answer.long().flatten(), x.sum(1) % 2)
    assert network(x[1]).shape == ()


@pytest.mark.parametrize(("shape", "skip"), [("chain", False), ("chain", True), ("tree", False), ("tree", True)])
def test_neurons_are_those_of_the_modules(shape, skip):
    network = ParityNetwork(7, shape, skip)
    parts = [part for part in network.modules() if isinstance(part, McCullochPittsNeuron)]
    assert network.neurons == sum(1 if part.synapses.ndim == 1 else len(part.synapses) for part in parts)
    assert network.depth == {"chain": 12, "tree": 6}[shape]
    assert f"inputs=7, shape={shape}" in repr(network)


def test_one_input_is_its_own_parity():
    x = torch.tensor([[0], [1]])
    assert parity_by_terms(1)(x).tolist() == [0, 1]
    assert parity_by_thresholds(1)(x).tolist() == [0, 1]


def test_a_wide_input_needs_no_more_thresholds_than_bits():
    x = torch.randint(0, 2, (50, 300))
    assert torch.equal(parity_by_thresholds(300)(x), x.sum(1) % 2)
    assert torch.equal(ParityNetwork(300, "tree", skip=True)(x), x.sum(1) % 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: parity_by_terms(0), "inputs must be >= 1, got 0"),
        (lambda: parity_by_terms(17), "inputs must be <= 16, got 17"),
        (lambda: parity_by_thresholds(0), "inputs must be >= 1, got 0"),
        (lambda: ParityNetwork(1), "inputs must be >= 2, got 1"),
        (lambda: ParityNetwork(4, "ring"), "shape must be one of chain, tree, got 'ring'"),
        (lambda: ParityNetwork(4, skip=1), "skip must be True or False, got 1"),
        (lambda: ExclusiveOr(skip=0), "skip must be True or False, got 0"),
        (lambda: ParityNetwork(4)(torch.full((4,), 2)), "x must hold only 0 and 1"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
