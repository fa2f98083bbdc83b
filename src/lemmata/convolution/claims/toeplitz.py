"""Convolutions as matrices: the kernel in every column, and the transpose."""

import itertools
from typing import Any

import torch

from lemmata.convolution.convolution_layer import conv_nd, conv_transpose_nd
from lemmata.convolution.discrete_convolution import convolve
from lemmata.convolution.sizes import transposed_output_size
from lemmata.convolution.toeplitz import convolution_matrix, toeplitz_matrix
from lemmata.judge import all_of, always, claim, close, exactly, lie


def _upper_toeplitz(h, n):
    """The kernel in every row instead, one place further right each time."""
    return toeplitz_matrix(h, n + len(h) - 1).mT[: n + len(h) - 1, :n]


@claim("conv.toeplitz")
@lie("the band is an upper one", matrix=_upper_toeplitz)
@lie("n + m rows", less=0)
def a_kernel_fills_the_diagonals(draw, matrix=toeplitz_matrix, less=1):
    """All sizes up to 7, in whole numbers: products, rows, constant diagonals and how many numbers there are."""
    products, rows, predicted, constant = [], [], [], []
    for n, m in itertools.product(range(1, 8), repeat=2):
        f, h = draw.integers(1, 10, n), torch.arange(1, m + 1)
        H = matrix(h, n)
        products.append(torch.equal(H @ f, convolve(f, h)) if H.shape == (n + m - 1, n) else False)
        rows.append(len(H))
        predicted.append(n + m - less)
        constant.append(torch.equal(H[1:, 1:], H[:-1, :-1]) and len(H.unique()) == m + (n > 1))
    return all_of(always(products), exactly(rows, predicted), always(constant))


@claim("conv.toeplitz_2d")
@lie("the transposed convolution inverts", back=torch.linalg.pinv)
@lie("a size one less", last=0)
def a_transposed_convolution_is_the_transpose(draw, back=torch.t, last=1):
    """Strides, paddings and dilations on 5 by 6 inputs of 2 channels: forward, back, the gradient and the size."""
    forward, gradients, transposed, sizes, predicted, blocks = ([] for _ in range(6))
    for s, p, d in itertools.product((1, 2, 3), (0, 1, 2), (1, 2)):
        settings: dict[str, Any] = {"stride": s, "padding": p, "dilation": d}
        x, w = draw.normal(1, 2, 5, 6).requires_grad_(), draw.normal(3, 2, 2, 3)
        C = convolution_matrix(w, (5, 6), **settings).to_dense()
        y = conv_nd(x, w, **settings)
        v = draw.normal(*y.shape)
        left = [
            size - transposed_output_size(u, k, s, p, d) for size, u, k in zip((5, 6), y.shape[2:], (2, 3), strict=True)
        ]
        forward.append((C @ x.flatten() - y.flatten()).abs().max().detach())
        gradients.append((torch.autograd.grad(y, x, v)[0].flatten() - C.mT @ v.flatten()).abs().max())
        up = conv_transpose_nd(v, w, output_padding=left, **settings)
        transposed.append((up.flatten() - back(C) @ v.flatten()).abs().max())
        sizes.append(list(up.shape[2:]))
        formula = [
            (u - 1) * s - 2 * p + d * (k - 1) + o + last for u, k, o in zip(y.shape[2:], (2, 3), left, strict=True)
        ]
        predicted.append(formula)
        entries = C.reshape(3, *y.shape[2:], 2, 5, 6)  # rows and columns of the output, then of the input
        if s == 1:  # blocks depend on the difference of the rows alone, and entries of a block on that of the columns
            blocks.append(torch.equal(entries[:, 1:, :, :, 1:], entries[:, :-1, :, :, :-1]))
            blocks.append(torch.equal(entries[:, :, 1:, :, :, 1:], entries[:, :, :-1, :, :, :-1]))
    # A sum of at most 18 products of normal numbers, each below 36.
    rounding = 18 * 36 * 64 * torch.finfo(torch.float64).eps
    return all_of(
        close(torch.stack(forward), 0.0, within=rounding),
        close(torch.stack(gradients), 0.0, within=rounding),
        close(torch.stack(transposed), 0.0, within=rounding),
        exactly(sizes, predicted),
        always(blocks),
    )
