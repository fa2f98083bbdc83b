r"""Which path adds up neighbours: compiled C on a processor, Triton kernels on a GPU, torch otherwise."""

import functools
from types import ModuleType

import torch
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse import compiled
from lemmata.fast.sparse.arguments import check_attention, check_attention_back, check_dots, check_extremes, check_sums
from lemmata.fast.sparse.reference import (
    WIDER,
    gathered_attention,
    gathered_dots,
    gathered_extremes,
    gathered_sums,
)
from lemmata.fast.sparse.rows import Rows

__all__ = ["sparse_path"]


def sparse_path(x: Tensor) -> str:
    """Which path adds up the neighbours of such features: compiled, triton, or torch and why.

    >>> sparse_path(torch.ones(2, 3)).split(":")[0] in ("compiled", "torch")
    True
    """
    validate.tensor("x", x)
    if x.device.type == "cuda":
        kernels = _import_triton()
        if not kernels:
            return "torch: triton is not installed"
        return "triton" if kernels.fits(x) else f"torch: no kernels for {x.dtype} of shape {tuple(x.shape)}"
    if x.device.type != "cpu":
        return f"torch: no kernels for {x.device.type}"
    problem = compiled.why_not_compiled(WIDER.get(x.dtype, x.dtype))
    return f"torch: {problem}" if problem else "compiled"


def sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The sum over the entries of each row."""
    check_sums(x, weights, rows)
    return checked_sums(x, weights, rows)


def checked_sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The same of what was looked at before."""
    if kernels := _gpu_kernels(x, weights, *rows):
        return kernels.sums(x, weights, rows)
    wide = WIDER.get(x.dtype, x.dtype)  # halves are widened first
    if not _fits_library(wide, x, weights, *rows):
        return gathered_sums(x, weights, rows)
    return compiled.compiled_sums(x.to(wide), None if weights is None else weights.to(wide), rows).to(x.dtype)


def dots(a: Tensor, b: Tensor, rows: Rows) -> Tensor:
    """The inner product of each entry's row and column, in the order of the list."""
    check_dots(a, b, rows)
    if kernels := _gpu_kernels(a, b, *rows):
        return kernels.dots(a, b, rows)
    wide = WIDER.get(a.dtype, a.dtype)
    if not _fits_library(wide, a, b, *rows):
        return gathered_dots(a, b, rows)
    return compiled.compiled_dots(a.to(wide), b.to(wide), rows).to(a.dtype)


def extremes(x: Tensor, sign: float, rows: Rows) -> Tensor:
    """The column of the largest (sign 1) or smallest (sign -1) feature in each row; -1 where there is none."""
    check_extremes(x, sign, rows)
    x = x.detach()
    if kernels := _gpu_kernels(x, *rows):
        return kernels.extremes(x, sign, rows)
    wide = WIDER.get(x.dtype, x.dtype) if x.is_floating_point() else torch.float64  # which holds integers too
    if not _fits_library(wide, x, *rows):
        return gathered_extremes(x.to(wide), sign, rows)
    return compiled.compiled_extremes(x.to(wide), sign, rows)


def attention(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows
) -> tuple[Tensor, Tensor]:
    """What each row gets, (rows, heads, width), and what the way back needs of its softmax, (rows, 2, heads)."""
    check_attention(to, source, more, values, slope, rows)
    if kernels := _gpu_kernels(values, to, source, more, *rows):
        return kernels.attention(to, source, more, values, slope, rows)
    if _fits_library(values.dtype, to, source, more, values, *rows):
        return compiled.compiled_attention(to, source, more, values, slope, rows)
    y, _ = gathered_attention(to, source, more, values, slope, rows)
    return y, y.new_zeros(rows.number, 2, y.shape[1])  # the shares are gathered again below


def attention_back(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows, transposed: Rows,
    softmax: Tensor, y: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients to `to`, `source`, `more` and the values."""
    check_attention_back((to, source, more, values, slope), rows, transposed, softmax, y, grad)
    if kernels := _gpu_kernels(values, to, source, more, *rows):
        return kernels.attention_back(to, source, more, values, slope, rows, transposed, softmax, y, grad)
    if _fits_library(values.dtype, to, source, more, values, *rows):
        return compiled.compiled_attention_back(to, source, more, values, slope, rows, transposed, softmax, y, grad)
    # By the chain rule, entry by entry.
    r, c, entries = rows.row_of_each(), rows.columns, rows.entries
    score = to[r] + source[c] + (0 if more is None else more[entries])  # (entries, heads)
    q = gathered_attention(to, source, more, values, slope, rows)[1][entries]
    pulled = (grad[r] * values[c]).sum(-1) - (grad * y).sum(-1)[r]
    d = pulled * torch.where(score > 0, q, slope * q)
    d_more = torch.empty_like(d).index_copy_(0, entries, d)
    d_values = torch.zeros_like(values).index_add_(0, c, q[..., None] * grad[r])
    return torch.zeros_like(to).index_add_(0, r, d), torch.zeros_like(source).index_add_(0, c, d), d_more, d_values


def _fits_library(wide: torch.dtype, *values: Tensor | None) -> bool:
    """Whether all lies on the processor in numbers the library knows."""
    return all(value is None or value.device.type == "cpu" for value in values) and not compiled.why_not_compiled(wide)


def _gpu_kernels(values: Tensor, *others: Tensor | None) -> ModuleType | None:
    """The GPU's kernels, where all lies on one GPU in numbers and sizes they know."""
    if values.device.type != "cuda" or any(one is not None and one.device != values.device for one in others):
        return None
    kernels = _import_triton()
    return kernels if kernels and kernels.fits(values) else None


@functools.cache
def _import_triton() -> ModuleType | None:
    try:
        from lemmata.fast.sparse import row_kernels
    except ImportError:
        return None
    return row_kernels
