"""Elman's network and the deep transition: equality with torch's own network, what is learnt, what is expressed."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false

import itertools
import math

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector

from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.judge import Figure, Line, all_of, at_least, claim, close, exactly, lie, reaches
from lemmata.recurrent.claims.output_map import accuracy, bits
from lemmata.recurrent.claims.recall import learn
from lemmata.recurrent.deep_transition import DeepTransition
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.output_map import Tagger


def against_torch(draw, layer, name, bias, recurrence):
    """Outputs, states and gradients of a layer with a readout, and of torch's network with the same matrices."""
    head = Tagger(layer(2, 4, name, bias=bias), outputs=4, activation="sigmoid").double()
    ours, w = head.layer, head.readout.weight.detach()
    theirs = nn.RNN(2, 4, nonlinearity=name, bias=bias, batch_first=True).double()
    with torch.no_grad():
        theirs.weight_hh_l0.copy_(ours.recurrent_weight if recurrence == "U" else w)
        theirs.weight_ih_l0.copy_(ours.input_weight)
        if bias:
            theirs.bias_ih_l0.copy_(0.3 * ours.bias)
            theirs.bias_hh_l0.copy_(0.7 * ours.bias)
    x, start, weight = draw.normal(3, 20, 2), draw.normal(3, 4), draw.normal(3, 20, 4)
    outputs, last = theirs(x, start[None])
    read = torch.sigmoid(outputs @ w.T + head.readout.bias)
    found, state = head(x, start)
    (weight * read).sum().backward()
    (weight * found).sum().backward()
    pairs = [(found, read), (state, last[0]), (ours.recurrent_weight.grad, theirs.weight_hh_l0.grad)]
    return [*pairs, (ours.input_weight.grad, theirs.weight_ih_l0.grad)]


def first_steps(draw, layer, name):
    """The first output of a layer with this activation, and the formula."""
    cell, x, start = layer(2, 5, name).double(), draw.normal(3, 9, 2), draw.normal(3, 5)
    total = start @ cell.recurrent_weight.T + x[:, 0] @ cell.input_weight.T + cell.bias
    return cell(x, start)[0][:, 0], ACTIVATION_TABLE[name](total)


def echo(draw, lag, steps=60, size=16):
    """The fraction of bits said again `lag` steps after they were heard, and the mean loss of training by step."""
    head, losses = Tagger(Elman(1, size), outputs=2), []

    def examples(count):
        x = bits(draw, count, 110)
        return (2 * x[..., None] - 1).float(), x[:, : 110 - lag]

    def loss():
        x, target = examples(10)
        value = functional.cross_entropy(head(x)[0][:, lag:].flatten(0, 1), target.flatten())
        losses.append(value.item())
        return value

    learn(head, loss, steps)
    x, target = examples(50)
    return accuracy(head(x)[0][:, lag:], target), losses


@claim("rnn.elman")
@lie("one matrix serves as recurrence and as readout", recurrence="W")
@lie(
    "an echo after 100 steps is learnt with the same effort",
    regime="a few steps more are within reach of so much training",
    loose="a shorter echo is easier",
    lag=100,
)
def elmans_network_is_torchs_and_learns_short_echoes(draw, layer=Elman, recurrence="U", lag=3):
    """Values and gradients against torch's network and readout; bits to be said again after a few steps."""
    kinds = itertools.product(("tanh", "relu"), (True, False))
    pairs = [pair for name, bias in kinds for pair in against_torch(draw, layer, name, bias, recurrence)]
    firsts = [first_steps(draw, layer, name) for name in ACTIVATION_TABLE]
    same = all_of(
        *(close(ours, theirs, ulps=1024) for ours, theirs in pairs),
        *(close(ours, formula) for ours, formula in firsts),
    )
    if not same.holds:
        return same
    score, losses = echo(draw, lag)
    curve = Line(range(1, len(losses) + 1), losses, f"echo after {lag} steps")
    chance = Line([1, len(losses)], [math.log(2)] * 2, "chance")
    figure = Figure("Learning to repeat what was heard", "training step", "mean loss", [curve, chance])
    return all_of(reaches(score, 0.99), same).showing(figure)


def dimension(layer, draw, size):
    """How many directions there are in which the weights can change what one step computes, at random points."""
    weights, outputs = list(layer.parameters()), layer.step(draw.normal(10, layer.inputs), draw.normal(10, size))[0]
    rows = [torch.autograd.grad(output, weights, retain_graph=True) for output in outputs.flatten()]
    return int(torch.linalg.matrix_rank(torch.stack([parameters_to_vector(row) for row in rows]), rtol=1e-9))


def factored(elman, width):
    """A deep transition with linear hidden units that comes as near as it can to a given Elman layer."""
    deep = DeepTransition(elman.inputs, elman.hidden, (width,), inner="identity").double()
    u, s, v = torch.linalg.svd(
        torch.cat([elman.recurrent_weight, elman.input_weight], dim=1).detach(), full_matrices=False
    )
    first, last = deep.transition.layers
    spare = max(width - len(s), 0)
    with torch.no_grad():
        first.weight.copy_(functional.pad(v[:width], (0, 0, 0, spare)))
        last.weight.copy_(functional.pad((u * s)[:, :width], (0, spare)))
        last.bias.copy_(elman.bias)
    return deep


@claim("rnn.deep_transition")
@lie("linear hidden units express more than Elman's network", extra=1)
@lie("curved hidden units collapse as well", raises=ValueError, inner="tanh")
@lie(
    "fewer hidden units than states suffice for every Elman layer",
    loose="more hidden units serve as well",
    width=3,
)
def linear_hidden_units_add_nothing_to_elmans_network(draw, extra=0, inner="identity", width=4):
    """A deep transition against the Elman layer it collapses to, and the dimension of what each can express."""
    parts, x, start = [], draw.normal(2, 12, 3), draw.normal(2, 4)
    for widths, bias in (((6,), True), ((5, 7), False), ((5, 7), True)):
        deep = DeepTransition(3, 4, widths, inner=inner, bias=bias).double()
        with torch.no_grad():
            for values in deep.parameters():
                values += 0.1 * draw.normal(*values.shape)
        single = deep.collapsed()
        parts += [
            close(single(x, start)[0], deep(x, start)[0], ulps=1024),
            exactly(dimension(deep, draw, 4), dimension(single, draw, 4) + extra),
        ]
    bent, plain = DeepTransition(3, 4, (6,)).double(), Elman(3, 4).double()
    bend = bent.step(0 * x[:, 0], 2 * start)[0].atanh() - 2 * bent.step(0 * x[:, 0], start)[0].atanh()
    return all_of(
        *parts,
        close(factored(plain, width)(x, start)[0], plain(x, start)[0], ulps=1024),
        at_least(bend.abs().max(), 0.01, detail="curved hidden units bend the map"),
        at_least(dimension(bent, draw, 4), dimension(plain, draw, 4) + 1),
    )
