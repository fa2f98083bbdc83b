r"""Weighted sums over the entries of each row, and the products that are their gradients."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.fast.sparse.paths import dots, sums
from lemmata.fast.sparse.rows import PATTERN, Rows, check_rows

__all__ = ["entry_dots", "row_sums"]


def row_sums(
    x: Float[Tensor, "columns features"],
    rows: Rows,
    transposed: Rows,
    weights: Float[Tensor, " entries"] | None = None,
) -> Float[Tensor, "rows features"]:
    r"""The sum over the entries of each row: $y_r = \sum_{e = (r, c)} w_e\, x_c$, a sparse matrix times a dense one.

    `weights` are in the order of the list of entries, all one if left out. `transposed` is the same pattern by columns,
    with which gradients come back: $\bar x_c = \sum_e w_e \bar y_r$ and $\bar w_e = \langle \bar y_r, x_c\rangle$. Half
    precision is added up in single precision. Gradients of gradients work too.

    >>> from lemmata.fast.sparse.rows import rows_of
    >>> r, c = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 0])
    >>> row_sums(torch.tensor([[1.0], [2.0], [4.0]]), rows_of(r, c, 2), rows_of(c, r, 3))
    tensor([[6.],
            [1.]])
    """
    check_rows("x", x, transposed.number)
    if weights is not None and weights.shape != rows.columns.shape:
        raise ValueError(f"weights must have shape {tuple(rows.columns.shape)}, got {tuple(weights.shape)}")
    return torch.ops.lemmata.row_sums(x, weights, *rows, *transposed)


def entry_dots(
    a: Float[Tensor, "rows features"], b: Float[Tensor, "columns features"], rows: Rows, transposed: Rows
) -> Float[Tensor, " entries"]:
    r"""For each entry the inner product $\langle a_r, b_c\rangle$, in the order of the list."""
    check_rows("a", a, rows.number)
    check_rows("b", b, transposed.number)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"a and b must have as many features, got {a.shape[1]} and {b.shape[1]}")
    return torch.ops.lemmata.entry_dots(a, b, *rows, *transposed)


# --- The operators that torch.compile sees, and their gradients: each is the gradient of the other ---

_library = torch.library.Library("lemmata", "FRAGMENT")
_library.define(f"row_sums(Tensor x, Tensor? weights, {PATTERN}) -> Tensor")
_library.define(f"entry_dots(Tensor a, Tensor b, {PATTERN}) -> Tensor")


def _row_sums(x: Tensor, weights: Tensor | None, *pattern: Tensor) -> Tensor:
    return sums(x, weights, Rows(*pattern[:3]))


def _entry_dots(a: Tensor, b: Tensor, *pattern: Tensor) -> Tensor:
    return dots(a, b, Rows(*pattern[:3]))


_library.impl("row_sums", _row_sums, "CompositeExplicitAutograd")
_library.impl("entry_dots", _entry_dots, "CompositeExplicitAutograd")


def _save_sums(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weights, *pattern = inputs
    ctx.weighted = weights is not None
    ctx.save_for_backward(x, *([weights] if ctx.weighted else []), *pattern)


def _sums_back(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, *rest = ctx.saved_tensors
    weights, pattern = (rest[0], rest[1:]) if ctx.weighted else (None, rest)
    turned = (*pattern[3:], *pattern[:3])
    dx = torch.ops.lemmata.row_sums(grad, weights, *turned) if ctx.needs_input_grad[0] else None
    dw = torch.ops.lemmata.entry_dots(grad, x, *pattern) if ctx.needs_input_grad[1] else None
    return (dx, dw, *[None] * 6)


def _save_dots(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _dots_back(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    a, b, *pattern = ctx.saved_tensors
    turned = (*pattern[3:], *pattern[:3])
    da = torch.ops.lemmata.row_sums(b, grad, *pattern) if ctx.needs_input_grad[0] else None
    db = torch.ops.lemmata.row_sums(a, grad, *turned) if ctx.needs_input_grad[1] else None
    return (da, db, *[None] * 6)


@torch.library.register_fake("lemmata::row_sums", lib=_library)
def _(x: Tensor, weights: Tensor | None, *pattern: Tensor) -> Tensor:
    return x.new_empty(pattern[0].shape[0] - 1, x.shape[1])


@torch.library.register_fake("lemmata::entry_dots", lib=_library)
def _(a: Tensor, b: Tensor, *pattern: Tensor) -> Tensor:
    return a.new_empty(pattern[1].shape[0])


torch.library.register_autograd("lemmata::row_sums", _sums_back, setup_context=_save_sums, lib=_library)
torch.library.register_autograd("lemmata::entry_dots", _dots_back, setup_context=_save_dots, lib=_library)
