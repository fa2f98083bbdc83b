"""Output sizes of all small layers, and parameters counted in torch's own."""

import itertools
import math

import torch
from torch import nn
from torch.nn import functional

from lemmata.convolution.convolution_layer import conv_nd
from lemmata.convolution.sizes import output_size, parameter_counts
from lemmata.judge import all_of, claim, exactly, lie


@claim("conv.example_7x7x3")
@lie("kernels of 3 by 3 at stride 1", stride=1)
@lie("kernels of 3 by 3 for the other setting too", large=3)
def two_filters_on_seven_by_seven(draw, stride=2, large=5):
    """The shapes that come out of the layer, and the calculator."""
    x = draw.normal(1, 3, 7, 7)
    strided = conv_nd(x, draw.normal(2, 3, 3, 3), stride=stride)
    wide = conv_nd(x, draw.normal(2, 3, large, large))
    calculated = output_size(7, 3, stride=stride), output_size(7, large)
    return all_of(
        exactly([list(strided.shape), list(wide.shape)], [[1, 2, 3, 3]] * 2),
        exactly(calculated, (strided.shape[-1], wide.shape[-1])),
    )


def _one_layer(x, k, s, p, d):
    """Sizes that torch gives: of a convolution, and of max pooling where it allows this padding."""
    signal, kernel = torch.empty(1, 1, x, device="meta"), torch.empty(1, 1, k, device="meta")
    size = functional.conv1d(signal, kernel, None, s, p, d).shape[-1]
    pooled = functional.max_pool1d(signal, k, s, p, d).shape[-1] if 2 * p <= k else size
    return size, pooled


@claim("conv.output_size")
@lie("rounded up", rounded=math.ceil)
@lie("the first tap is forgotten", less=0)
@lie("dilated by the number of taps", gaps=0)
def windows_that_fit(draw, rounded=math.floor, less=1, gaps=1, size=output_size):
    """All inputs up to 12 places, kernels to 4, strides to 4, paddings to 2 and dilations to 2 that torch accepts."""
    found, formula, torchs, pooled = [], [], [], []
    for x, k, s, p, d in itertools.product(range(1, 13), range(1, 5), range(1, 5), range(3), (1, 2)):
        if x + 2 * p >= d * (k - 1) + 1:
            layer, pool = _one_layer(x, k, s, p, d)
            torchs.append(layer)
            pooled.append(pool)
            found.append(size(x, k, s, p, d))
            formula.append(rounded((x + 2 * p - d * (k - gaps) - less) / s) + 1)
    return all_of(exactly(found, torchs), exactly(found, pooled), exactly(found, formula))


def _one_for_each_unit(inputs, positions, kernels):
    return positions * kernels * (inputs + 1)


def _with_the_positions(inputs, positions, kernels):
    return inputs * (positions + 1) * kernels


@claim("conv.params")
@lie("the bias is counted with the positions", printed="002/1", biased=_with_the_positions)
@lie("a convolutional layer has a bias at each position", shared=0.0)
def parameters_with_and_without_sharing(draw, biased=_one_for_each_unit, shared=1.0, counts=parameter_counts):
    """Fifty drawn sizes: torch's convolution, its linear layer, and one linear layer for each position."""
    found, built, formula, plain, unbiased = ([] for _ in range(5))
    for _ in range(50):
        p, q, c, K = draw.integers(1, 4, 4).tolist()
        m, n = p + int(draw.integers(0, 3, 1)), q + int(draw.integers(1, 4, 1))
        positions = (m - p + 1) * (n - q + 1)
        conv = nn.Conv2d(c, K, (p, q), device="meta")
        window, whole = nn.Linear(p * q * c, K, device="meta"), nn.Linear(m * n * c, positions * K, device="meta")
        sizes = [sum(w.numel() for w in layer.parameters()) for layer in (conv, window, whole)]
        built.append((sizes[0], positions * sizes[1], sizes[2]))
        found.append(counts(m, n, c, (p, q), K))
        convolutional = K * (p * q * c + shared + (1 - shared) * positions)
        formula.append((convolutional, biased(p * q * c, positions, K), biased(m * n * c, positions, K)))
        plain.append(counts(m, n, c, (p, q), K, bias=False))
        unbiased.append((conv.weight.numel(), positions * window.weight.numel(), whole.weight.numel()))
    return all_of(
        exactly(torch.tensor(found), torch.tensor(built)),
        exactly(torch.tensor(built).double(), torch.tensor(formula).double()),
        exactly(torch.tensor(plain), torch.tensor(unbiased)),
    )
