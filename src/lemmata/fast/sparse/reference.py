r"""Sums over neighbours as one would write them down: gather a row for every entry, weigh it, and add it up."""

import torch
from torch import Tensor

from lemmata.fast.sparse.rows import Rows

__all__ = ["gathered_dots", "gathered_sums"]

WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def gathered_sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The sum over the entries of each row; half precision is added up in single precision."""
    wide = WIDER.get(x.dtype, x.dtype)
    messages = x[rows.columns].to(wide)  # (entries, features)
    if weights is not None:
        messages = messages * weights[rows.entries, None].to(wide)
    total = messages.new_zeros(len(rows), x.shape[1])
    return total.index_add_(0, rows.row_of_each(), messages).to(x.dtype)


def gathered_dots(a: Tensor, b: Tensor, rows: Rows) -> Tensor:
    """The inner product of each entry's row of a and column of b, in the order of the list."""
    wide = WIDER.get(a.dtype, a.dtype)
    found = (a[rows.row_of_each()].to(wide) * b[rows.columns].to(wide)).sum(-1)  # (entries,)
    return torch.empty_like(found).index_copy_(0, rows.entries, found).to(a.dtype)
