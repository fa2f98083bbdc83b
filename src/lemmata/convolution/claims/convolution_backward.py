"""Gradients of convolutions: sums over the places that share a weight, and convolutions with what is turned around."""

import itertools

import torch

from lemmata.convolution.convolution_backward import conv_input_gradient, conv_weight_gradient
from lemmata.convolution.convolution_layer import conv_nd
from lemmata.convolution.discrete_convolution import convolve, correlate
from lemmata.convolution.toeplitz import convolution_matrix
from lemmata.judge import all_of, claim, close, lie


@claim("conv.backprop.shared_weight")
@lie("the mean over the units", joined=torch.mean)
@lie("the largest contribution", joined=torch.amax)
def a_shared_weight_adds_up_its_gradients(draw, joined=torch.sum, gradient=conv_weight_gradient):
    """Every entry of the layer's matrix with a gradient of its own; those that stand for the same weight are joined."""
    tied, untied, ours = [], [], []
    for space, kernel, s, p in (((9,), (3,), 1, 0), ((9,), (4,), 2, 1), ((5, 6), (3, 2), 1, 1), ((6, 5), (2, 3), 2, 0)):
        x, w = draw.normal(1, 1, *space), draw.normal(1, 1, *kernel).requires_grad_()
        y = conv_nd(x, w, stride=s, padding=p)
        v = draw.normal(y.numel())
        risk = (y.flatten() * v).tanh().sum()
        names = torch.arange(1, w.numel() + 1).reshape(w.shape)  # which weight stands in each entry of the matrix
        place = convolution_matrix(names, space, stride=s, padding=p).to_dense()
        free = convolution_matrix(w.detach(), space, stride=s, padding=p).to_dense().requires_grad_()
        free_risk = ((free @ x.flatten()) * v).tanh().sum()
        entries = torch.autograd.grad(free_risk, free)[0]
        delta = torch.autograd.grad(risk, y, retain_graph=True)[0]
        tied.append(torch.autograd.grad(risk, w)[0].flatten())
        untied.append(torch.stack([joined(entries[place == name]) for name in names.flatten()]))
        ours.append(gradient(x, kernel, delta, stride=s, padding=p).flatten())
    return all_of(
        close(torch.cat(untied), torch.cat(tied), ulps=1000),
        close(torch.cat(ours), torch.cat(tied), ulps=1000),
    )


def _rotated_kernel(x):
    """The values of x[-i], and the index of the first of them."""
    return x.flip(tuple(range(x.ndim))), [1 - size for size in x.shape]


def _as_it_is(x):
    return x, [0] * x.ndim


def _restricted_convolution(delta, x, turned, size):
    """The convolution of delta with x, turned, at the indices from 0 to below size."""
    values, first = turned(x)
    whole = convolve(delta, values)
    return whole[tuple(slice(-start, -start + places) for start, places in zip(first, size, strict=True))]


def _index_difference(k, i):
    return k - i


def _mirrored_difference(k, i):
    return i - k


@claim("conv.backprop.as_convolution")
@lie("nothing is turned around", printed="000/1", turned=_as_it_is)
@lie("the index changes its sign", printed="002/3", index=_mirrored_difference)
@lie("the kernel's gradient of a cross-correlation is a convolution", slid=convolve)
def gradients_are_convolutions(draw, turned=_rotated_kernel, index=_index_difference, slid=correlate, layer=conv_nd):
    """Signals and pictures, both conventions: autograd, the formulas, and the library's own backward passes."""
    found, formula, crossed, passes = [], [], [], []
    for space, kernel in (((8,), (3,)), ((5,), (4,)), ((1,), (1,)), ((8, 7), (3, 3)), ((4, 6), (1, 3))):
        x, w = draw.normal(*space).requires_grad_(), draw.normal(*kernel).requires_grad_()
        y = convolve(x, w)
        delta = draw.normal(*y.shape)
        found += [g.flatten() for g in torch.autograd.grad(y, (w, x), delta)]
        formula += [
            _restricted_convolution(delta, x, turned, kernel).flatten(),
            _restricted_convolution(delta, w, turned, space).flatten(),
        ]
        y = layer(x[None, None], w[None, None])
        delta = draw.normal(*y.shape)
        crossed += [g.flatten() for g in torch.autograd.grad(y, (x, w), delta)] * 2
        inside = tuple(slice(n - 1, n - 1 + k) for n, k in zip(y.shape[2:], kernel, strict=True))
        passes += [convolve(delta[0, 0], w).flatten(), slid(delta[0, 0], x)[inside].flatten()]
        passes += [conv_input_gradient(space, w[None, None], delta).flatten()]
        passes += [conv_weight_gradient(x[None, None], kernel, delta).flatten()]
    x, w = draw.normal(7), draw.normal(3).requires_grad_()
    delta = draw.normal(9)
    reads = [(k, i, index(k, i)) for k, i in itertools.product(range(9), range(3))]
    terms = [torch.stack([delta[k] * x[t] for k, j, t in reads if j == i and 0 <= t < 7]).sum() for i in range(3)]
    return all_of(
        close(torch.cat(formula).detach(), torch.cat(found), ulps=1000),
        close(torch.cat(passes).detach(), torch.cat(crossed), ulps=1000),
        close(torch.stack(terms), torch.autograd.grad(convolve(x, w), w, delta)[0], ulps=1000),
    )
