r"""Sums over neighbours as one would write them down: gather a row for every entry, weigh it, and add it up.

What torch.func transforms (grad, vmap, jvp and what is made of them) goes this way.
"""

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.fast.sparse.arguments import check_attention, check_dots, check_extremes, check_sums
from lemmata.fast.sparse.rows import Rows, is_looked_at

__all__ = ["gathered_attention", "gathered_dots", "gathered_extremes", "gathered_sums"]

WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def gathered_sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The sum over the entries of each row; half precision is added up in single precision."""
    if is_looked_at():
        check_sums(x, weights, rows)
    wide = WIDER.get(x.dtype, x.dtype)
    messages = x[rows.columns].to(wide)  # (entries, features)
    if weights is not None:
        messages = messages * weights[rows.entries, None].to(wide)
    total = messages.new_zeros(rows.number, x.shape[1])
    return total.index_add(0, rows.row_of_each(), messages).to(x.dtype)


def gathered_dots(a: Tensor, b: Tensor, rows: Rows) -> Tensor:
    """The inner product of each entry's row of a and column of b, in the order of the list."""
    if is_looked_at():
        check_dots(a, b, rows)
    wide = WIDER.get(a.dtype, a.dtype)
    found = (a[rows.row_of_each()].to(wide) * b[rows.columns].to(wide)).sum(-1)  # (entries,)
    return torch.empty_like(found).index_copy(0, rows.entries, found).to(a.dtype)


def gathered_extremes(x: Tensor, sign: float, rows: Rows) -> Tensor:
    """The column of the largest (sign 1) or smallest (sign -1) feature in each row, the first of equals; -1 if none."""
    if is_looked_at():
        check_extremes(x, sign, rows)
    r, values = rows.row_of_each()[:, None].expand(-1, x.shape[1]), sign * x[rows.columns]  # (entries, features)
    lowest = values.new_full((rows.number, x.shape[1]), -torch.inf)
    best = lowest.scatter_reduce(0, r, values, "amax")
    won = (values == best.gather(0, r)) | values.isnan()
    places = torch.arange(len(rows.columns), device=x.device)[:, None].expand_as(r)
    beyond = len(rows.columns)
    first = torch.full_like(lowest, beyond, dtype=torch.int64)
    first = first.scatter_reduce(0, r, torch.where(won, places, beyond), "amin")
    columns = torch.cat([rows.columns, rows.columns.new_full((1,), -1)])
    return columns[first]


def gathered_attention(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows
) -> tuple[Tensor, Tensor]:
    """Softmax over the entries of each row of leaky(to + source + more), and the values summed with these shares.

    Returns sums (rows, heads, width), and shares (entries, heads) in the order of the list.
    """
    if is_looked_at():
        check_attention(to, source, more, values, slope, rows, mixed=True)
    r, c = rows.row_of_each(), rows.columns
    score = to[r] + source[c]  # (entries, heads)
    if more is not None:
        score = score + more[rows.entries]
    score = functional.leaky_relu(score, slope)
    lowest = score.new_full((rows.number, score.shape[1]), -torch.inf)
    # The highest score of a row goes from all of them: nothing overflows, and the shares stay the same.
    highest = lowest.scatter_reduce(0, r[:, None].expand_as(score), score.detach(), "amax")
    grown = (score - highest[r]).exp()
    total = torch.zeros_like(lowest).index_add(0, r, grown)
    q = grown / total[r]
    y = values.new_zeros(rows.number, *values.shape[1:]).index_add(0, r, q[..., None] * values[c])
    return y, torch.empty_like(q).index_copy(0, rows.entries, q)
