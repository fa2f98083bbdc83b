"""Parity of N bits: how many threshold neurons, and how many layers, go through all inputs."""

import functools
import itertools
import math

import torch
from torch import nn
from torch.nn import functional

from lemmata.connectionism.cover import separable_labellings
from lemmata.connectionism.mcculloch_pitts import boolean_inputs
from lemmata.connectionism.separability import separate
from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.parity_networks import ExclusiveOr, ParityNetwork, parity_by_terms, parity_by_thresholds
from lemmata.figure import Figure, Line
from lemmata.judge import Domain, all_of, at_most, claim, everywhere, exactly, lie, reaches, same_everywhere


def _parity_of(x):
    return x.sum(-1) % 2


def _computes_parity(network, inputs):
    x = boolean_inputs(inputs)
    return torch.equal(network(x), _parity_of(x))


def _implies_parity(term):
    """Whether all inputs that satisfy a term have odd parity: entries are 1, -1 for a negation, 0 for left out."""
    literals = torch.tensor(term)
    x = boolean_inputs(len(term))
    satisfied = ((2 * x - 1) * literals >= 0).all(1)
    return bool(_parity_of(x[satisfied]).all())


@claim("xor.shallow_dnf")
@lie("2^(N+1) + 1 neurons", printed="004/1", shift=1)
@lie("a term may leave one variable out", left_out=1)
def every_term_of_parity_fixes_all_variables(draw, shift=-1, left_out=0, network=parity_by_terms):
    """All inputs up to N = 8; and all 3^N terms up to N = 6, of which those that imply parity are counted."""
    sizes, few = range(2, 9), Domain.range(2, 7)
    hidden = [len(network(n).hidden.synapses) for n in sizes]

    @functools.cache
    def terms(n):
        return [term for term in itertools.product((-1, 0, 1), repeat=n) if _implies_parity(term)]

    return all_of(
        everywhere(Domain.range(2, 9), lambda n: _computes_parity(network(n), n)),
        exactly([units + 1 for units in hidden], [2 ** (n + shift) + 1 for n in sizes]),
        everywhere(few, lambda n: all(sum(map(abs, term)) == n - left_out for term in terms(n))),
        # Each is satisfied by one input only, so that all of them are needed.
        same_everywhere(few, lambda n: len(terms(n)), lambda n: 2 ** (n + shift)),
    )


def _as_inputs(n):
    return n


def _exponential_width(n):
    return 2 ** (n - 1)


@claim("xor.shallow_threshold")
@lie("one hidden layer needs 2^(N-1) threshold units", units=_exponential_width)
@lie("the sum does not alternate", sign=1, loose="a sign is -1 or +1")
def as_many_thresholds_as_inputs_compute_parity(draw, units=_as_inputs, sign=-1, network=parity_by_thresholds):
    """All inputs up to N = 10, by the network and by the alternating sum of its hidden units."""
    sizes = range(1, 11)

    def by_sum(n):
        x = boolean_inputs(n)
        signs = torch.tensor([sign ** (k + 1) for k in range(1, n + 1)])
        fired = network(n).hidden(x)
        counted = (x.sum(1)[:, None] >= torch.arange(1, n + 1)).long()
        return torch.equal(fired, counted) and torch.equal((fired @ signs >= 0.5).long(), _parity_of(x))

    return all_of(
        everywhere(Domain.range(1, 11), lambda n: _computes_parity(network(n), n)),
        everywhere(Domain.range(1, 11), by_sum),
        exactly([len(network(n).hidden.synapses) for n in sizes], [units(n) for n in sizes]),
    )


def _fewest_neurons(skip):
    """The least number of threshold neurons for the exclusive or of two inputs, by trying all threshold functions."""
    x = boolean_inputs(2).double()
    labels = 2 * _parity_of(x) - 1
    if separate(x, labels).separable:
        return 1
    gates = (separable_labellings(x, bias=True) + 1) / 2  # (functions, 4): all that one neuron computes
    seen = x if skip else x[:, :0]  # by the output neuron, besides the hidden ones
    for hidden in (1, 2):
        for chosen in itertools.combinations(gates, hidden):
            if separate(torch.cat([seen, torch.stack(chosen, 1)], 1), labels).separable:
                return hidden + 1
    return None


@claim("xor.two_input")
@lie("two neurons suffice without skip connections", neurons=2)
@lie("one neuron suffices", skipping=1)
@lie(
    "the hidden neuron counts once",
    weight=-1.0,
    regime="with any weight below -1 both inputs together stay below the threshold",
    loose="the same",
)
def exclusive_or_takes_three_neurons(draw, neurons=3, skipping=2, weight=-2.0, block=ExclusiveOr):
    """The four inputs, and all 14 functions of a threshold neuron as hidden units; linear programs decide the rest."""
    return all_of(
        same_everywhere(Domain.bits(2), block(), _parity_of, vectorised=True),
        same_everywhere(Domain.bits(2), block(skip=True), _parity_of, vectorised=True),
        everywhere(Domain.bits(2), lambda b: (sum(b) + weight * (sum(b) >= 2) >= 1) == bool(sum(b) % 2)),
        exactly([block().neurons, block(skip=True).neurons], [neurons, skipping]),
        exactly([_fewest_neurons(skip=False), _fewest_neurons(skip=True)], [neurons, skipping]),
    )


@claim("xor.chain")
@lie("2(N - 1) neurons without skip connections", neurons=2)
@lie("one layer for each block", layers=1)
@lie("N blocks", fewer=0)
def a_chain_of_exclusive_ors_has_linear_size_and_depth(draw, neurons=3, layers=2, fewer=1, network=ParityNetwork):
    """All inputs up to N = 10, with skip connections and without; neurons and layers are counted on the networks."""
    sizes = range(2, 11)
    plain, skipping = ([network(n, skip=skip) for n in sizes] for skip in (False, True))
    return all_of(
        everywhere(Domain.range(2, 11), lambda n: _computes_parity(plain[n - 2], n)),
        everywhere(Domain.range(2, 11), lambda n: _computes_parity(skipping[n - 2], n)),
        exactly([each.neurons for each in plain], [neurons * (n - fewer) for n in sizes]),
        exactly([each.neurons for each in skipping], [2 * (n - fewer) for n in sizes]),
        exactly([each.depth for each in plain + skipping], [layers * (n - fewer) for n in sizes] * 2),
    )


@claim("xor.tree")
@lie("one layer for each block", layers=1)
@lie("the logarithm is rounded down", rounded=math.floor)
@lie("2(N - 1) neurons without skip connections", neurons=2)
def a_tree_of_exclusive_ors_has_logarithmic_depth(draw, layers=2, rounded=math.ceil, neurons=3, network=ParityNetwork):
    """All inputs up to N = 12; neurons and layers are counted on the networks."""
    sizes = range(2, 13)
    plain, skipping = ([network(n, "tree", skip) for n in sizes] for skip in (False, True))
    depths = [layers * rounded(math.log2(n)) for n in sizes]
    figure = Figure(
        "Depth of parity networks", "inputs", "layers",
        [Line(list(sizes), depths, "tree"), Line(list(sizes), [network(n).depth for n in sizes], "chain")],
    )  # fmt: skip
    return all_of(
        everywhere(Domain.range(2, 13), lambda n: _computes_parity(plain[n - 2], n)),
        everywhere(Domain.range(2, 13), lambda n: _computes_parity(skipping[n - 2], n)),
        exactly([each.depth for each in plain + skipping], depths * 2),
        exactly([each.neurons for each in plain], [neurons * (n - 1) for n in sizes]),
        exactly([each.neurons for each in skipping], [2 * (n - 1) for n in sizes]),
    ).showing(figure)


def ten_networks(hidden):
    return nn.ModuleList(MLP(2, 1, widths=(hidden,) if hidden else (), activation="tanh") for _ in range(10))


def learn_exclusive_or(networks, generator, steps):
    x = boolean_inputs(2).float()
    optimizer = torch.optim.SGD(networks.parameters(), lr=1.0)
    for _ in range(steps):
        optimizer.zero_grad()
        logits = torch.stack([network(x)[:, 0] for network in networks])
        targets = _parity_of(x).expand_as(logits)
        (len(x) * len(networks) * functional.binary_cross_entropy_with_logits(logits, targets) / 4).backward()
        optimizer.step()


def _right_answers(draw, hidden):
    """Right answers of each of ten networks, among four."""
    x = boolean_inputs(2).float()
    networks = draw.trained(ten_networks, learn_exclusive_or, hidden=hidden, steps=500)
    with torch.no_grad():
        answers = torch.stack([network(x)[:, 0] > 0 for network in networks])
    return (answers == _parity_of(x).bool()).sum(1)


@claim("xor.learned")
@lie("it takes no hidden units", hidden=0)
@lie("the perceptron gets two of four right at most", most=2)
def hidden_units_learn_what_no_perceptron_can(draw, hidden=4, most=3):
    """Ten networks from ten initial weights, gradient descent on the four inputs; and ten without hidden units."""
    # All labels of four points that a threshold unit gives, against those of exclusive or.
    units = separable_labellings(boolean_inputs(2).double(), bias=True)
    best = (units == 2 * _parity_of(boolean_inputs(2)) - 1).sum(1)
    return all_of(
        reaches((_right_answers(draw, hidden) == 4).sum(), 8, detail="of ten networks are right on all four inputs"),
        at_most(_right_answers(draw, 0), most),
        at_most(best, most, attained=True),
    )
