"""What units see: matrices, gradients, and the recursion over layers; small kernels in place of a large one."""

import itertools

import torch
from torch import nn

from lemmata.convolution.receptive_fields import gradient_field, receptive_field
from lemmata.convolution.toeplitz import convolution_matrix
from lemmata.judge import all_of, always, claim, exactly, lie


def _positive_weights(draw, model):
    """The model with positive weights, so that no gradient cancels."""
    for values in model.parameters():
        values.data = draw.uniform(*values.shape, low=0.5, high=1.5)
    return model.double()


def _stride_product(strides):
    return int(torch.tensor([1, *strides]).prod())


def _last_stride(strides):
    return strides[-1] if strides else 1


def _no_stride(strides):
    return 1


@claim("conv.receptive_field")
@lie("strides do not count", moves=_no_stride)
@lie("only the stride of the layer before counts", moves=_last_stride)
@lie("counted from nothing", alone=0)
def fields_grow_with_the_strides_before(draw, moves=_stride_product, alone=1, field=receptive_field):
    """Matrices of single layers and where gradients are zero; stacks of 1 to 5 layers of drawn settings."""
    entries, reached, found, formula, extents = ([] for _ in range(5))
    for k, s, p, d in itertools.product((1, 2, 3), (1, 2), (0, 1), (1, 3)):
        layer = _positive_weights(draw, nn.Conv1d(1, 1, k, s, p, d, bias=False))
        W = convolution_matrix(layer.weight.detach(), 12, s, p, d).to_dense()
        jacobian = torch.autograd.functional.jacobian(layer, draw.normal(1, 1, 12)).reshape(W.shape)
        entries.append((W != 0).flatten())
        reached.append((jacobian != 0).flatten())
    for depth, _ in itertools.product(range(1, 6), range(4)):
        settings = [[int(draw.integers(1, high, 1)) for high in (4, 3, 3)] for _ in range(depth)]
        stack = _positive_weights(draw, nn.Sequential(*[nn.Conv1d(1, 1, k, s, dilation=d) for k, s, d in settings]))
        strides = [s for _, s, _ in settings]
        formula.append(alone + sum(d * (k - 1) * moves(strides[:i]) for i, (k, _, d) in enumerate(settings)))
        found.append(field(stack, (1, 300)).size[0])
        places = gradient_field(stack, draw.normal(1, 1, 300), (2,)).nonzero()
        extents.append(int(places[-1] - places[0]) + 1)
    return all_of(
        exactly(torch.cat(entries), torch.cat(reached)),
        exactly(extents, formula),
        exactly(found, formula),
    )


def _layer_stack(layers, channels):
    parts = [[nn.Conv2d(channels, channels, 3, bias=False), nn.ReLU()] for _ in range(layers)]
    return nn.Sequential(*itertools.chain(*parts))


@claim("conv.vgg.stacking")
@lie("two layers see 6 x 6 pixels", two=6)
@lie("three layers see 9 x 9 pixels", three=9)
@lie("as many weights as the large kernel", weights=25)
@lie("nine weights for each pair of channels, once", more=9)
def small_kernels_see_what_a_large_one_sees(draw, two=5, three=7, weights=18, more=27):
    """Stacks of two and three layers: what a gradient reaches, weights beside those of one layer, and relus."""
    sides, sizes, counts, larger, relus = ([] for _ in range(5))
    for layers in (2, 3):
        stack = _positive_weights(draw, _layer_stack(layers, 2))
        reached = gradient_field(stack, draw.uniform(1, 2, 15, 15, low=0.5), (3, 4)) != 0
        large = nn.Conv2d(2, 2, 2 * layers + 1, bias=False).double()
        sides += [reached.any(1).sum(), reached.any(0).sum()]
        sizes += [receptive_field(stack, (2, 15, 15)).size, receptive_field(large, (2, 15, 15)).size]
        counts.append(sum(values.numel() for values in stack.parameters()))
        larger.append(large.weight.numel())
        relus.append(sum(isinstance(part, nn.ReLU) for part in stack))
    return all_of(
        exactly([int(side) for side in sides], [two, two, three, three]),
        exactly(sizes, [(two, two), (two, two), (three, three), (three, three)]),
        exactly(counts, [4 * weights, 4 * more]),
        exactly(larger, [4 * 25, 4 * 49]),
        always([counts[0] < larger[0], counts[1] < larger[1], min(relus) > 1]),
    )
