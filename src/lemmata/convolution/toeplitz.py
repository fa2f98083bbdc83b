r"""Convolutions written as matrices: constant along diagonals, and transposed by the transposed convolution."""

from collections.abc import Sequence

import torch
from jaxtyping import Num
from torch import Tensor

from lemmata import validate
from lemmata.convolution.convolution_layer import windows
from lemmata.convolution.padding import amounts_of, pad_space, per_axis
from lemmata.convolution.sizes import output_size
from lemmata.marks import system

__all__ = ["convolution_matrix", "toeplitz_matrix"]


@system("toeplitz_matrix", title="Toeplitz matrix of a kernel", kind="function")
def toeplitz_matrix(h: Num[Tensor, "m"], n: int) -> Num[Tensor, "rows n"]:
    r"""The matrix of $f\mapsto f*h$ on $\mathbb R^n$: the kernel in every column, one place lower each time.

    $$ H_{ij} = h_{i-j+1}, \qquad 0 \text{ outside } 1..m $$

    Shapes:
        h: (m,)    returns: (n + m - 1, n)

    Claims: conv.toeplitz

    >>> toeplitz_matrix(torch.tensor([1, 2]), 3)
    tensor([[1, 0, 0],
            [2, 1, 0],
            [0, 2, 1],
            [0, 0, 2]])
    """
    if validate.tensor("h", h).ndim != 1 or len(h) == 0:
        raise ValueError(f"h must have one axis and at least one entry, got shape {tuple(h.shape)}")
    rows = torch.arange(validate.count("n", n) + len(h) - 1, device=h.device)
    tap = rows[:, None] - torch.arange(n, device=h.device)  # (rows, n)
    return torch.where((tap >= 0) & (tap < len(h)), h[tap.clamp(0, len(h) - 1)], 0)


@system("convolution_matrix", title="Matrix of a convolutional layer", kind="function")
def convolution_matrix(
    weight: Num[Tensor, "outputs group_inputs *kernel"],
    size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
) -> Num[Tensor, "rows columns"]:
    r"""The sparse matrix C of a convolutional layer without bias: $\mathrm{vec}(y) = C\,\mathrm{vec}(x)$.

    In one dimension it is a block of Toeplitz matrices for each pair of channels, in two a doubly block Toeplitz
    matrix. $C^\top$ is the transposed convolution, and what a gradient is multiplied by on its way back.

    Shapes:
        weight: (outputs, inputs / groups, *kernel), as nn.Conv1d, Conv2d and Conv3d keep it; size: that of the input
        returns: sparse (outputs * places of the output, inputs * places of the input)

    Claims: conv.toeplitz_2d

    >>> layer = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
    >>> C = convolution_matrix(layer.weight, 6, layer.stride, layer.padding, layer.dilation, layer.groups)
    >>> x = torch.randn(1, 3, 6, 6)
    >>> torch.allclose((C @ x.flatten()[:, None]).flatten(), layer(x).flatten(), atol=1e-5)
    True
    """
    axes = validate.tensor("weight", weight).ndim - 2
    if axes < 1 or weight.numel() == 0 or len(weight) % validate.count("groups", groups):
        told = f"{tuple(weight.shape)} and {groups}"
        raise ValueError(f"weight must be (outputs, inputs / groups, *kernel), groups divide outputs, got {told}")
    kernel, space = weight.shape[2:], per_axis("size", size, axes)
    steps, gaps = per_axis("stride", stride, axes), per_axis("dilation", dilation, axes)
    outputs, inputs = len(weight), weight.shape[1]
    # Which entry of the input stands at each place once it is padded; 0 says none, so that zeros stay zeros.
    entry = torch.arange(1, 1 + inputs * groups * torch.Size(space).numel(), device=weight.device)
    padded = pad_space(entry.reshape(groups, inputs, *space), amounts_of(padding, kernel, gaps, steps), padding_mode)
    for one in zip(padded.shape[2:], kernel, steps, [0] * axes, gaps, strict=True):
        output_size(*one)  # says what is wrong where no window fits
    met = windows(padded, kernel, steps, gaps)  # (groups, inputs of it, *sizes, *kernel)
    met = met.flatten(2, 1 + axes).flatten(3).movedim(1, 2)  # (groups, places, inputs of it, taps)
    met = met[:, None].expand(-1, outputs // groups, -1, -1, -1)  # (groups, outputs of it, places, inputs, taps)
    places = met.shape[2]
    values = weight.reshape(groups, -1, 1, inputs, kernel.numel()).expand(met.shape)
    rows = torch.arange(outputs * places, device=weight.device).reshape(groups, -1, places, 1, 1).expand(met.shape)
    kept = met > 0
    indices = torch.stack([rows[kept], met[kept] - 1])
    shape = (outputs * places, len(entry))
    with torch.sparse.check_sparse_tensor_invariants(enable=False):  # by the argument alone torch 2.11 still warns
        return torch.sparse_coo_tensor(indices, values[kept], shape).coalesce()
