r"""Sums over the entries of each row beside a linear map, as one node of autograd."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata.fast.sparse.arguments import check_map, check_pair, check_tensor, check_weights
from lemmata.fast.sparse.neighbour_sum import entry_dots, row_sums
from lemmata.fast.sparse.paths import checked_sums, dots
from lemmata.fast.sparse.rows import Rows, check_rows, has_values, is_looked_at

__all__ = ["linear_row_sums"]


def linear_row_sums(
    x: Float[Tensor, "columns inputs"],
    matrix: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None,
    rows: Rows,
    transposed: Rows,
    weights: Float[Tensor, " entries"],
) -> Float[Tensor, "rows outputs"]:
    r"""The sum over the entries of each row and a linear map: $Y = A X W^\top + b$, where $A$ has the given pattern.

    The smaller of inputs and outputs goes along the entries. Several nodes of autograd would take longer than the work
    of a small graph, and on a GPU longer than its kernels. Gradients of gradients work too.

    >>> from lemmata.fast.sparse.rows import rows_of
    >>> r, c = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 0])
    >>> x, twice, one = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[2.0]]), torch.ones(1)
    >>> linear_row_sums(x, twice, one, rows_of(r, c, 2), rows_of(c, r, 3), torch.ones(3))
    tensor([[13.],
            [ 3.]])
    """
    check_pair(rows, transposed)
    check_tensor("x", x, rows)
    check_rows("x", x, transposed.number)
    check_weights(weights, x, rows)
    check_map(x, matrix, bias, rows)
    alone = is_looked_at() and has_values(x) and not torch.is_autocast_enabled(x.device.type)
    if alone and x.dtype == matrix.dtype == weights.dtype:
        return _LinearRowSums.apply(x, matrix, bias, weights, *rows, *transposed)
    if _is_narrowing(matrix):
        found = row_sums(functional.linear(x, matrix), rows, transposed, weights)  # (rows, outputs)
        return found if bias is None else found + bias
    return functional.linear(row_sums(x, rows, transposed, weights), matrix, bias)


def _is_narrowing(matrix: Tensor) -> bool:
    return matrix.shape[0] <= matrix.shape[1]


class _LinearRowSums(torch.autograd.Function):
    """What goes along the entries is kept where a gradient needs it: the inputs' sums of a map that widens."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, bias: Tensor | None, weights: Tensor, *pattern: Tensor) -> Tensor:
        rows, summed = Rows(*pattern[:3]), None
        if _is_narrowing(matrix):
            y = checked_sums(x @ matrix.mT, weights, rows)
            if bias is not None:
                y += bias
        else:
            summed = checked_sums(x, weights, rows)  # (rows, inputs)
            y = functional.linear(summed, matrix, bias)
        ctx.save_for_backward(x, matrix, weights, summed, *pattern)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, matrix, weights, summed, *pattern = ctx.saved_tensors
        rows, turned = Rows(*pattern[:3]), Rows(*pattern[3:])
        needs_x, needs_matrix, needs_bias, needs_weights = ctx.needs_input_grad[:4]
        again = torch.is_grad_enabled()  # somebody wants the gradient of this gradient

        def back(values: Tensor) -> Tensor:
            return row_sums(values, turned, rows, weights) if again else checked_sums(values, weights, turned)

        d_x = d_matrix = d_weights = None
        if _is_narrowing(matrix):
            pulled = back(grad) if needs_x or needs_matrix else None  # (columns, outputs)
            d_x = pulled @ matrix if needs_x and pulled is not None else None
            d_matrix = pulled.mT @ x if needs_matrix and pulled is not None else None
            ends = grad, (x @ matrix.mT if needs_weights else x)
        else:
            ends = (grad @ matrix if needs_x or needs_weights else grad), x  # (rows, inputs)
            d_x = back(ends[0]) if needs_x else None
            if needs_matrix:
                d_matrix = grad.mT @ (row_sums(x, rows, turned, weights) if again else summed)
        if needs_weights:
            d_weights = entry_dots(*ends, rows, turned) if again else dots(*ends, rows)
        return d_x, d_matrix, grad.sum(0) if needs_bias else None, d_weights, *[None] * 6
