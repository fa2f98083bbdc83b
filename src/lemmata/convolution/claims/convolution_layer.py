"""A layer's convolution: channels, borders, strides and gaps."""

import itertools
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from lemmata.convolution.convolution_layer import conv_nd
from lemmata.convolution.discrete_convolution import convolve
from lemmata.convolution.padding import pad_space
from lemmata.judge import all_of, claim, close, exactly, lie


def _depthwise_reference(x, weight, bias):
    """Each output channel looks at the input channel of its own number only."""
    own = weight[range(len(weight)), range(len(weight))][:, None]
    return conv_nd(x, own, bias, groups=len(weight))


def _turned_kernel(weight):
    return weight.flip((-2, -1))


def _as_it_is(weight):
    return weight


@claim("conv.layer")
@lie("output channel c sees input channel c alone", layer=_depthwise_reference)
@lie("no bias", offset=0.0)
@lie("both conventions have the same kernels", turned=_as_it_is)
def a_layer_sums_over_channels(draw, layer=conv_nd, offset=1.0, turned=_turned_kernel):
    """The sum written out, place by place; and true convolutions with the kernels turned around."""
    x, w, b = draw.normal(1, 2, 7, 6), draw.normal(2, 2, 3, 2), draw.normal(2)
    y = torch.zeros(1, 2, 5, 5).double()
    for c, i, j in itertools.product(range(2), range(5), range(5)):
        terms = [w[c, r, k, q] * x[0, r, i + k, j + q] for r in range(2) for k in range(3) for q in range(2)]
        y[0, c, i, j] = offset * b[c] + sum(terms)
    summed = [sum(convolve(x[0, r], turned(w)[c, r])[2:-2, 1:-1] for r in range(2)) + b[c] for c in range(2)]
    return all_of(
        close(layer(x, w, b), y, ulps=1000),
        close(layer(x, w, b)[0], torch.stack(summed), ulps=1000),
    )


def _reordered_channels(x, weight, order):
    return x[:, order], weight[:, order]


def _reordered_taps(x, weight, order):
    return x, weight[..., order]


@claim("conv.channel_order")
@lie("the taps of the kernel may be permuted", permuted=_reordered_taps)
def channels_have_no_order(draw, permuted=_reordered_channels):
    """All orders of 4 channels, those of a kernel's input axis with them; the kernels have 4 taps too."""
    x, w = draw.normal(2, 4, 9), draw.normal(3, 4, 4)
    orders = [list(order) for order in itertools.permutations(range(4))]
    found = [conv_nd(*permuted(x, w, order)) for order in orders]
    return close(torch.stack(found), conv_nd(x, w).expand(len(orders), -1, -1, -1), ulps=1000)


def _half_the_reach(k):
    return (k - 1) // 2


def _one_step(k):
    return 1


@claim("conv.padding")
@lie("one place of padding keeps every size", keeps=_one_step)
@lie("padding p adds p places", sides=1)
@lie("reflection repeats the last value", mirrored="edge")
def padding_extends_each_side(draw, keeps=_half_the_reach, sides=2, mirrored="reflect"):
    """Sizes of all small signals, kernels and gaps; same padding by torch's kernel, each mode against numpy's."""
    grown, wanted, valid, inside, same, sizes, ours, torchs = ([] for _ in range(8))
    for x, k, d in itertools.product(range(9, 14), range(1, 6), (1, 2)):
        signal, kernel = draw.normal(1, 1, x), draw.normal(1, 1, k)
        grown.append(pad_space(signal, [(k, k)]).shape[-1])
        wanted.append(x + sides * k)
        valid.append(conv_nd(signal, kernel, padding="valid").shape[-1])
        inside.append(x - k + 1)
        same.append(conv_nd(signal, kernel, padding=keeps(k) if k % 2 else "same").shape[-1])
        sizes.append(x)
        ours.append(conv_nd(signal, kernel, padding="same", dilation=d).flatten())
        before, after = d * (k - 1) // 2, -(-d * (k - 1) // 2)  # the odd one of an even kernel comes after
        torchs.append(functional.conv1d(functional.pad(signal, (before, after)), kernel, dilation=d).flatten())
    modes: dict[str, Any] = {"zeros": "constant", "reflect": mirrored, "replicate": "edge", "circular": "wrap"}
    extended, by_numpy = [], []
    for mode, amounts in itertools.product(modes, ([(1, 1), (2, 2)], [(0, 3), (4, 1)])):
        image = draw.normal(1, 1, 5, 6)
        extended.append(pad_space(image, amounts, mode).flatten())
        around = [(0, 0), (0, 0), *amounts]
        by_numpy.append(torch.from_numpy(np.pad(image.numpy(), around, mode=modes[mode])).flatten())
    image, kernel = draw.normal(1, 1, 5, 6), draw.normal(1, 1, 3, 5)
    found = [conv_nd(image, kernel, padding="same", padding_mode=mode) for mode in modes]
    padded = [conv_nd(pad_space(image, [(1, 1), (2, 2)], mode), kernel) for mode in modes]
    return all_of(
        exactly(grown, wanted),
        exactly(valid, inside),
        exactly(same, sizes),
        close(torch.cat(ours), torch.cat(torchs), ulps=1000),
        exactly(torch.cat(extended), torch.cat(by_numpy)),
        close(torch.stack(found), torch.stack(padded), ulps=1000),
    )


def _every_stride(x, w, s):
    return conv_nd(x, w)[..., ::s, ::s]


def _of_every(x, w, s):
    return conv_nd(functional.interpolate(x[..., ::s, ::s], x.shape[2:]), w)[..., ::s, ::s]


@claim("conv.stride")
@lie("the input is thinned out before", thinned=_of_every)
def a_stride_keeps_every_so_manyth(draw, thinned=_every_stride):
    """Strides from 1 to 4, on sizes that they divide and that they do not."""
    found, kept = [], []
    for s, size in itertools.product(range(1, 5), (8, 9, 11)):
        x, w = draw.normal(1, 2, size, size), draw.normal(3, 2, 3, 2)
        found.append(conv_nd(x, w, stride=s).flatten())
        kept.append(thinned(x, w, s).flatten())
    return close(torch.cat(found), torch.cat(kept), ulps=1000)


def _doubling_dilations(layers):
    return 2**layers - 1


def _adding_dilations(layers):
    return layers


@claim("conv.dilation")
@lie("a stack with doubling gaps sees 1 + (k - 1) L places", seen=_adding_dilations)
@lie("the gaps are one place too wide", gap=2, regime="gaps are whole numbers")
@lie("the kernel spans d(k - 1) places", last=0)
def gaps_between_taps(draw, seen=_doubling_dilations, gap=1, last=1):
    """Kernels with zeros between their taps; places that a gradient reaches through one layer and through stacks."""
    found, stuffed, spans, formula, reached, predicted = ([] for _ in range(6))
    for k, d in itertools.product((1, 2, 3), (1, 2, 5)):
        x, w = draw.normal(1, 1, 20).requires_grad_(), draw.uniform(1, 1, k, low=1.0, high=2.0)
        zeros = torch.zeros(1, 1, d * (k - 1) + 1).double()
        zeros[..., ::d] = w
        y = conv_nd(x, w, dilation=d)
        found.append(y[..., :10].flatten().detach())
        stuffed.append(conv_nd(x, zeros)[..., :10].flatten().detach())
        places = torch.autograd.grad(y[0, 0, 0], x)[0].flatten().nonzero().flatten()
        spans.append(int(places[-1] - places[0]) + 1)
        formula.append(d * gap * (k - 1) + last)
    for k, layers in itertools.product((2, 3), range(1, 7)):
        x = torch.zeros(1, 1, 200).double().requires_grad_()
        y = x
        for layer in range(layers):
            y = conv_nd(y, torch.ones(1, 1, k).double(), dilation=2**layer)
        reached.append(int((torch.autograd.grad(y[0, 0, 0], x)[0] != 0).sum()))
        predicted.append(1 + (k - 1) * seen(layers))
    return all_of(
        close(torch.cat(found), torch.cat(stuffed), ulps=1000),
        exactly(spans, formula),
        exactly(reached, predicted),
    )
