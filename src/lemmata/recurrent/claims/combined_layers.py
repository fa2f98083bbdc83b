"""Layers made of layers: the bidirectional and the stacked network, against torch's own."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportCallIssue=false

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import Figure, Image, all_of, at_least, claim, close, exactly, lie, reaches
from lemmata.recurrent.bidirectional import Bidirectional, reverse_sequences
from lemmata.recurrent.claims.output_map import accuracy, bits
from lemmata.recurrent.claims.recall import learn
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.output_map import Tagger
from lemmata.recurrent.stacked import Stacked


class NotTurnedBack(Bidirectional):
    """The backward states stay in the order in which they were computed."""

    def sequence(self, x, state, lengths):
        there = self.forwards.sequence(x, state[0], lengths)
        back = self.backwards.sequence(reverse_sequences(x, lengths), state[1], lengths)
        return torch.cat([there[0], back[0]], dim=-1), (there[1], back[1])


def influence(layer, x):
    """Entry (t, s) is the size of the derivative of the output at step t with respect to the input at step s."""
    x = x.clone().requires_grad_()
    outputs = layer(x)[0]
    rows = [torch.autograd.grad(outputs[:, t].sum(), x, retain_graph=True)[0] for t in range(x.shape[1])]
    return torch.stack([row.abs().sum((0, 2)) for row in rows])


def equal_to_the_last(draw, layer, steps=250, lr=0.01):
    """The fraction of steps, all but the last, for which it is told whether their bit is that of the last step."""
    tagger = Tagger(layer, outputs=2, vocab_size=2)

    def examples(count):
        x = bits(draw, count, 5)
        return x, (x == x[:, -1:]).long()[:, :-1]

    def loss():
        x, target = examples(32)
        return functional.cross_entropy(tagger(x)[0][:, :-1].flatten(0, 1), target.flatten())

    learn(tagger, loss, steps, lr)
    x, target = examples(1000)
    return accuracy(tagger(x)[0][:, :-1], target)


@claim("rnn.bidirectional")
@lie("the backward states stay in reversed order", layer=NotTurnedBack)
@lie("the backward states play no part in the readout", backward=0.0)
@lie("reading forwards alone tells what comes last", directions=1)
def every_output_sees_the_whole_sequence(draw, layer=Bidirectional, backward=1.0, directions=2):
    """Against torch's network both ways, with several lengths; derivatives; the readout by blocks; a task learnt."""
    theirs = nn.RNN(3, 4, bidirectional=True, batch_first=True).double()
    ours = layer(Elman.from_torch(theirs, reverse=False), Elman.from_torch(theirs, reverse=True))
    x, start, lengths = draw.normal(4, 7, 3), draw.normal(2, 4, 4), torch.tensor([7, 3, 1, 5])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    outputs, last = theirs(packed, start)
    outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
    found, ends = ours(x, tuple(start), lengths)
    head = Tagger(ours, outputs=5, activation="sigmoid").double()
    (there, back), w, c = ours(x)[0].split(4, -1), head.readout.weight, head.readout.bias
    seen, causal = influence(ours, x[:1]), influence(ours.forwards, x[:1])
    same = all_of(
        close(found, outputs, ulps=256),
        close(torch.stack(ends), last, ulps=256),
        close(head(x)[0], torch.sigmoid(there @ w[:, :4].T + backward * (back @ w[:, 4:].T) + c), ulps=256),
        at_least(seen, 1e-9),
        exactly(causal > 0, torch.ones(7, 7, dtype=torch.bool).tril()),
    )
    if not same.holds:
        return same
    alone = equal_to_the_last(draw, Elman(4, 32, "relu"))
    layers = Elman(4, 32, "relu"), layer(Elman(4, 32, "relu"), Elman(4, 32, "relu"))
    score = equal_to_the_last(draw, layers[directions - 1])
    evidence = all_of(reaches(score, 0.99), reaches(alone, 0.6, at_most=True, detail="forwards alone"), same)
    return evidence.showing(influences({"both ways": seen, "forwards alone": causal}))


def influences(sizes):
    """Which input an output sees: sizes of derivatives, by output and input step."""
    images = [Image((found / found.max()) ** 0.25, label=label) for label, found in sizes.items()]
    note = "Sizes of derivatives, to the power 1/4 so that small ones show."
    return Figure("Which input an output sees", "input step", "output step", images, note=note)


def beneath(outputs, delay):
    """What a layer reads from the one below it, so many steps late."""
    return functional.pad(outputs, (0, 0, delay, 0))[:, : outputs.shape[1]]


@claim("rnn.stacked")
@lie("a layer reads what the one below gave a step before", delay=1)
@lie(
    "the layers are connected along time: each goes on from the last state of the one before",
    horizontally=True,
)
@lie("the layers have one state in common", states=1)
def a_layer_reads_the_outputs_of_the_one_below(draw, delay=0, horizontally=False, states=3):
    """Against torch's network of three layers, as a whole and layer by layer, in one go and step by step."""
    theirs = nn.RNN(4, 4, num_layers=3, batch_first=True).double()
    ours = Stacked(*(Elman.from_torch(theirs, layer=number) for number in range(3)))
    x, start = draw.normal(3, 9, 4), draw.normal(3, 3, 4)
    found, ends = ours(x, tuple(start))
    outputs, last = theirs(x, start)
    given, before, single = x, start[0], []
    for layer, own in zip(ours.layers, start, strict=True):
        read = x if horizontally else beneath(given, delay if single else 0)
        given, (before,) = layer.to_torch()(read, (before if horizontally else own)[None])
        single.append(before)
    return all_of(
        close(found, outputs, ulps=256),
        close(torch.stack(ends), last, ulps=256),
        exactly(len(ends), states),
        close(found, given, ulps=256),
        close(torch.stack(ends), torch.stack(single), ulps=256),
        close(ours.by_steps(x, tuple(start))[0], found),
    )
