r"""Sums over neighbours on a GPU: sizes of blocks, and one launch of a Triton kernel for each operation."""

from typing import Any

import torch
import triton
from torch import Tensor

from lemmata.fast.sparse import row_kernels_triton
from lemmata.fast.sparse.rows import Rows

__all__ = []

KERNELS: Any = row_kernels_triton
TILE = 1024  # numbers of features that a program holds at once: more would not stay in registers
NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def fits(values: Tensor) -> bool:
    """Whether there are kernels for such numbers and sizes: all heads of one node must fit into a tile."""
    heads, width = values.shape[1:] if values.ndim == 3 else (1, 1)
    return values.dtype in NUMBERS and _power(heads) * _power(width) <= TILE


def sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The sum over the entries of each row; halves are added up in single precision."""
    x, features = x.contiguous(), x.shape[1]
    y = x.new_empty(rows.number, features)
    if not y.numel():
        return y
    width = min(_power(features), 128)
    given = x if weights is None else weights.contiguous()
    launch = KERNELS.sum_rows[(rows.number, triton.cdiv(features, width))]
    _on(x, launch, x, given, *rows, y, features, WEIGHTED=weights is not None, **_blocks(x, width), F=width)
    return y


def dots(a: Tensor, b: Tensor, rows: Rows) -> Tensor:
    """The inner product of each entry's row and column, in the order of the list."""
    a, b = a.contiguous(), b.to(a.dtype).contiguous()
    d = a.new_empty(len(rows.columns))
    if d.numel():
        width = min(_power(a.shape[1]), 128)
        _on(a, KERNELS.dot_entries[(rows.number,)], a, b, *rows, d, a.shape[1], **_blocks(a, width), F=width)
    return d


def attention(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows
) -> tuple[Tensor, Tensor]:
    """What each row gets, (rows, heads, width), and its highest score and one over its sum, (rows, 2, heads)."""
    heads, width = values.shape[1:]
    to, source, values = to.contiguous(), source.contiguous(), values.contiguous()
    softmax, y = values.new_empty(rows.number, 2, heads), values.new_empty(rows.number, heads, width)
    if y.numel():
        given = to if more is None else more.contiguous()
        arguments = (to, source, given, values, *rows, softmax, y, heads, width)
        _on(to, KERNELS.attend_rows[(rows.number,)], *arguments, **_heads(values, more, slope))
    return y, softmax


def attention_back(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows, transposed: Rows,
    softmax: Tensor, y: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients to `to`, `source`, the scores' own part of each entry, and the values."""
    heads, width = values.shape[1:]
    of_rows = torch.cat([to[:, None], softmax, (grad * y).sum(-1)[:, None]], 1)  # (rows, 4, heads)
    d = values.new_zeros(len(rows.columns), heads)
    d_source, d_values = values.new_zeros(source.shape), values.new_zeros(values.shape)
    if values.numel():
        grad, source, values = grad.contiguous(), source.contiguous(), values.contiguous()
        given = source if more is None else more.contiguous()
        arguments = (grad, of_rows, source, given, values, *transposed, d, d_source, d_values, heads, width)
        _on(values, KERNELS.pull_columns[(transposed.number,)], *arguments, **_heads(values, more, slope))
    return sums(d, None, rows._replace(columns=rows.entries)), d_source, d, d_values


def _power(size: int) -> int:
    return triton.next_power_of_2(max(size, 1))


def _blocks(x: Tensor, width: int) -> dict[str, Any]:
    """Entries at a time, so that a tile is a thousand numbers; four warps read it in lines of 16 bytes a thread."""
    return {"E": min(max(TILE // width, 1), 32), "WIDE": _wide(x), "num_warps": 4 if width >= 32 else 2}


def _heads(values: Tensor, more: Tensor | None, slope: float) -> dict[str, Any]:
    heads, width = (_power(size) for size in values.shape[1:])
    entries = min(max(TILE // (heads * width), 1), 32)
    sizes = {"E": entries, "H": heads, "W": width, "num_warps": 4}
    return {"SLOPE": slope, "MORE": more is not None, "WIDE": _wide(values)} | sizes


def _wide(x: Tensor) -> Any:
    return row_kernels_triton.tl.float64 if x.dtype is torch.float64 else row_kernels_triton.tl.float32


def _on(x: Tensor, launch: Any, *arguments: Any, **options: Any) -> None:
    """Launched where the tensors lie, which need not be the current device."""
    if x.device.type != "cuda":  # Triton's interpreter
        launch(*arguments, **options)
        return
    with torch.cuda.device(x.device):
        launch(*arguments, **options)
