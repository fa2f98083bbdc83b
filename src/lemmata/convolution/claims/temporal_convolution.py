"""Convolution in time: windows one after the other, n-grams, causality, and what a receptive field can remember."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.convolution.temporal_convolution import TCN, CausalConv1d
from lemmata.judge import all_of, claim, close, exactly, lie, reaches


def transposed(x):
    """From (batch, length, channels) to torch's (batch, channels, length)."""
    return x.mT


def as_it_is(x):
    return x


def turned_round(window):
    return window.flip(1)


@claim("conv.temporal.conv1d")
@lie("torch takes (batch, length, channels) as it is", given=as_it_is)
@lie("the filter is turned round in time", order=turned_round)
@lie("a filter fires where all words but one are there", less=2.0, loose="counts of words are whole")
def a_filter_in_time_is_an_n_gram_detector(draw, given=transposed, order=as_it_is, less=1.0, layer=CausalConv1d):
    """Length and channels are equal, so that a wrong layout is not refused; a loop over the windows; every n-gram."""
    x = draw.normal(4, 6, 6)  # (batch, length, channels)
    found, looped = [], []
    for width in (1, 2, 3, 5):
        filters = layer(6, 3, width, dtype=torch.float64).requires_grad_(False)
        padded = functional.pad(x, (0, 0, width - 1, 0))  # zeros before the first word
        for t in range(6):
            window = order(padded[:, t : t + width])  # (batch, width, channels)
            looped.append(functional.linear(window.mT.flatten(1), filters.weight.flatten(1), filters.bias))
        found += filters(given(x)).unbind(2)  # (batch, filters) at each step

    words = draw.integers(0, 4, 50, 40)  # sentences of four words: every pair and every triple occurs
    fires, there = [], []
    for n_gram in ((1, 2), (2, 1), (3, 3), (0, 2, 0)):
        width = len(n_gram)
        detector = layer(4, 1, width, dtype=torch.float64).requires_grad_(False)
        detector.weight.copy_(functional.one_hot(torch.tensor(n_gram), 4).T[None])  # (1, words, width)
        nn.init.constant_(detector.bias, less - width)  # type: ignore[arg-type]
        scores = detector(functional.one_hot(words, 4).double().mT)[:, 0, width - 1 :]  # (sentences, windows)
        fires.append((scores > 0).flatten())
        there.append((words.unfold(1, width, 1) == torch.tensor(n_gram)).all(-1).flatten())
    return all_of(
        close(torch.stack(found), torch.stack(looped), ulps=64, scale=10.0),
        exactly(torch.cat(fires), torch.cat(there), detail="a filter fires exactly where its n-gram ends"),
    )


class LooksAhead(TCN):
    """The same padding on both sides: half of what is seen lies in the future."""

    def forward(self, x):
        ahead = (self.receptive_field - 1) // 2
        return super().forward(functional.pad(x, (0, 0, 0, ahead)))[:, ahead:]


def _output_support(network, length, at):
    """Which steps the output at one step depends on; positive weights and inputs, so that no unit is silent."""
    with torch.no_grad():
        for values in network.parameters():
            values.abs_()
    x = torch.ones(1, length, network.inputs, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(network(x)[0, at].sum(), x)
    return slope[0].abs().sum(-1) > 0  # (length,)


def _by_names(network, x, skip):
    """The outputs from the weights by their names: two dilated filters in each block, and its input beside them."""
    state, h = network.state_dict(), x.mT  # (batch, channels, time)
    for level in range(network.config.depth):
        change = h
        for name in ("first", "second"):
            weight, bias = (state[f"blocks.{level}.{name}.{part}"] for part in ("weight", "bias"))
            past = functional.pad(change, (2**level * (weight.shape[-1] - 1), 0))
            change = functional.conv1d(past, weight, bias, dilation=2**level).relu()
        if f"blocks.{level}.projection.weight" in state:
            weight, bias = (state[f"blocks.{level}.projection.{part}"] for part in ("weight", "bias"))
            h = functional.conv1d(h, weight, bias)
        h = (skip * h + change).relu()
    return functional.linear(h.mT, state["head.weight"], state["head.bias"])


def _echo_accuracy(draw, lag):
    """The fraction of bits that a network with a receptive field of 15 steps repeats rightly after so many steps."""
    network = TCN(1, 1, width=16, kernel_size=2, depth=3)

    def bits(batch):
        x = draw.signs(batch, 40, 1).float()
        return x, (x[:, :-lag] > 0).float()  # what comes in, and what must come out from step `lag` on

    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(120):
        x, wanted = bits(16)
        optimizer.zero_grad()
        functional.binary_cross_entropy_with_logits(network(x)[:, lag:], wanted).backward()
        optimizer.step()
    x, wanted = bits(200)
    return ((network(x)[:, lag:] > 0) == (wanted > 0.5)).double().mean()


@claim("conv.temporal.tcn")
@lie("one convolution in each block", convolutions=1)
@lie("as many zeros after the sequence as before it", network=LooksAhead)
@lie("it remembers what lies just outside its receptive field", lag=15, loose="any step inside the field can be learnt")
@lie("the same weights without residuals", skip=0.0)
def a_temporal_network_sees_its_receptive_field(draw, convolutions=2, lag=14, skip=1.0, network=TCN):
    """By torch's functions from the weights; what has a gradient; a bit that a field of 15 steps reaches or misses."""
    seen, field, found, formula = [], [], [], []
    for width, depth in ((2, 1), (2, 4), (3, 3), (5, 2)):
        length, at = 160, 120
        drawn, x = network(2, 3, 4, width, depth, dtype=torch.float64), draw.normal(2, 20, 2)
        found.append(drawn(x).detach())
        formula.append(_by_names(drawn, x, skip))
        seen.append(_output_support(drawn, length, at))
        past = at - torch.arange(length)
        field.append((past >= 0) & (past < 1 + convolutions * (width - 1) * (2**depth - 1)))
    exact = all_of(
        exactly(torch.stack(seen), torch.stack(field), detail="steps with a gradient"),
        close(torch.stack(found), torch.stack(formula), ulps=1000),
    )
    if not exact.holds:
        return exact  # decided without training
    return all_of(exact, reaches(_echo_accuracy(draw, lag), 0.99, detail="bits repeated rightly"))
