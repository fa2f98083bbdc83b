r"""Weighted sums over the entries of each row, and the products that are their gradients."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.fast.sparse.arguments import check_one_device, check_pair, check_tensor, check_weights
from lemmata.fast.sparse.paths import checked_sums, dots, sums
from lemmata.fast.sparse.reference import gathered_dots, gathered_sums
from lemmata.fast.sparse.rows import PATTERN, Rows, check_rows, is_looked_at

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
    precision is added up in single precision. Gradients of gradients work too, and torch.func by the readable path.

    >>> from lemmata.fast.sparse.rows import rows_of
    >>> r, c = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 0])
    >>> row_sums(torch.tensor([[1.0], [2.0], [4.0]]), rows_of(r, c, 2), rows_of(c, r, 3))
    tensor([[6.],
            [1.]])
    """
    check_pair(rows, transposed)
    check_tensor("x", x, rows)
    check_rows("x", x, transposed.number)
    if weights is not None:
        check_weights(weights, x, rows)
    return _weighted_sums(x, weights, *rows, *transposed)


def entry_dots(
    a: Float[Tensor, "rows features"], b: Float[Tensor, "columns features"], rows: Rows, transposed: Rows
) -> Float[Tensor, " entries"]:
    r"""For each entry the inner product $\langle a_r, b_c\rangle$, in the order of the list."""
    check_pair(rows, transposed)
    check_tensor("a", a, rows)
    check_tensor("b", b, rows)
    check_rows("a", a, rows.number)
    check_rows("b", b, transposed.number)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"a and b must have as many features, got {a.shape[1]} and {b.shape[1]}")
    return _row_dots(a, b, *rows, *transposed)


# --- Each of the two is the gradient of the other. Gradients that torch.library registers would take longer. ---


def _weighted_sums(x: Tensor, weights: Tensor | None, *pattern: Tensor) -> Tensor:
    if torch._C._are_functorch_transforms_active():
        return gathered_sums(x, weights, Rows(*pattern[:3]))
    return _RowSums.apply(x, weights, *pattern)


def _row_dots(a: Tensor, b: Tensor, *pattern: Tensor) -> Tensor:
    if torch._C._are_functorch_transforms_active():
        return gathered_dots(a, b, Rows(*pattern[:3]))
    return _EntryDots.apply(a, b, *pattern)


class _RowSums(torch.autograd.Function):
    """Sums, and what comes back to features and weights."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor | None, *pattern: Tensor) -> Tensor:
        ctx.save_for_backward(x, weights, *pattern)
        if is_looked_at() and x.device.type != "meta":  # without the way through torch's dispatcher
            return checked_sums(x, weights, Rows(*pattern[:3]))
        return torch.ops.lemmata.row_sums(x, weights, *pattern[:3])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weights, *pattern = ctx.saved_tensors
        dx = _weighted_sums(grad, weights, *pattern[3:], *pattern[:3]) if ctx.needs_input_grad[0] else None
        dw = _row_dots(grad, x, *pattern) if ctx.needs_input_grad[1] else None
        return (dx, dw, *[None] * 6)


class _EntryDots(torch.autograd.Function):
    """Inner products, and what comes back to both."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, *pattern: Tensor) -> Tensor:
        ctx.save_for_backward(a, b, *pattern)
        return torch.ops.lemmata.entry_dots(a, b, *pattern[:3])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        a, b, *pattern = ctx.saved_tensors
        da = _weighted_sums(b, grad, *pattern) if ctx.needs_input_grad[0] else None
        db = _weighted_sums(a, grad, *pattern[3:], *pattern[:3]) if ctx.needs_input_grad[1] else None
        return (da, db, *[None] * 6)


# --- The operators that torch.compile sees ---

_library = torch.library.Library("lemmata", "FRAGMENT")
_library.define(f"row_sums(Tensor x, Tensor? weights, {PATTERN}) -> Tensor")
_library.define(f"entry_dots(Tensor a, Tensor b, {PATTERN}) -> Tensor")


def _row_sums(x: Tensor, weights: Tensor | None, *pattern: Tensor) -> Tensor:
    return sums(x, weights, Rows(*pattern))


def _entry_dots(a: Tensor, b: Tensor, *pattern: Tensor) -> Tensor:
    return dots(a, b, Rows(*pattern))


_library.impl("row_sums", _row_sums, "CompositeExplicitAutograd")
_library.impl("entry_dots", _entry_dots, "CompositeExplicitAutograd")


@torch.library.register_fake("lemmata::row_sums", lib=_library)
def _(x: Tensor, weights: Tensor | None, *pattern: Tensor) -> Tensor:
    check_one_device(x, weights, *pattern)
    return x.new_empty(pattern[0].shape[0] - 1, x.shape[1])


@torch.library.register_fake("lemmata::entry_dots", lib=_library)
def _(a: Tensor, b: Tensor, *pattern: Tensor) -> Tensor:
    check_one_device(a, b, *pattern)
    return a.new_empty(pattern[1].shape[0])
