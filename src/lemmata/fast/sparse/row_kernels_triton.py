r"""Sums over the entries of rows, and attention over them, on an NVIDIA GPU: each program takes one row.

Entries are read in blocks, columns of a block side by side, so that each row of features is read in whole lines. Sums
are in single precision for halves, in the order of the blocks: the same input gives the same bits. One launch for each
operation, whatever the graph.
"""

import triton
import triton.language as tl

__all__ = []


@triton.jit
def sum_rows(
    x, weights, pointers, columns, entries, y, features,
    WEIGHTED: tl.constexpr, WIDE: tl.constexpr, E: tl.constexpr, F: tl.constexpr,
):  # fmt: skip
    """y[r] = sum of weights[entries[k]] * x[columns[k]], a block of F features."""
    row = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * F + tl.arange(0, F)
    inside = f < features
    first, last = tl.load(pointers + row), tl.load(pointers + row + 1)
    total = tl.zeros((F,), WIDE)
    for start in range(first, last, E):
        k = start + tl.arange(0, E)
        there = k < last
        c = tl.load(columns + k, mask=there, other=0)
        tile = tl.load(x + c[:, None] * features + f[None, :], mask=there[:, None] & inside[None, :], other=0.0)
        tile = tile.to(WIDE)  # (E, F)
        if WEIGHTED:
            e = tl.load(entries + k, mask=there, other=0)
            tile = tile * tl.load(weights + e, mask=there, other=0.0).to(WIDE)[:, None]
        total += tl.sum(tile, 0)
    tl.store(y + row * features + f, total, mask=inside)


@triton.jit
def dot_entries(a, b, pointers, columns, entries, d, features, WIDE: tl.constexpr, E: tl.constexpr, F: tl.constexpr):
    """d[entries[k]] = <a[r], b[columns[k]]>."""
    row = tl.program_id(0).to(tl.int64)
    first, last = tl.load(pointers + row), tl.load(pointers + row + 1)
    for start in range(first, last, E):
        k = start + tl.arange(0, E)
        there = k < last
        c = tl.load(columns + k, mask=there, other=0)
        total = tl.zeros((E,), WIDE)
        for begin in range(0, features, F):
            f = begin + tl.arange(0, F)
            inside = f < features
            own = tl.load(a + row * features + f, mask=inside, other=0.0).to(WIDE)
            tile = tl.load(b + c[:, None] * features + f[None, :], mask=there[:, None] & inside[None, :], other=0.0)
            total += tl.sum(tile.to(WIDE) * own[None, :], 1)
        e = tl.load(entries + k, mask=there, other=0)
        tl.store(d + e, total, mask=there)


@triton.jit
def scores_of(to, source, more, c, e, h, mask, heads, MORE: tl.constexpr):
    """to[h] + source[c, h] + more[e, h] for a block of entries: (E, H)."""
    s = to[None, :] + tl.load(source + c[:, None] * heads + h[None, :], mask=mask, other=0.0)
    if MORE:
        s += tl.load(more + e[:, None] * heads + h[None, :], mask=mask, other=0.0)
    return s


@triton.jit
def attend_rows(
    to, source, more, values, pointers, columns, entries, softmax, y, heads, width,
    SLOPE: tl.constexpr, MORE: tl.constexpr, WIDE: tl.constexpr, E: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """All heads of one row: highest scores, then shares and sums; shares are divided once, at the end."""
    row = tl.program_id(0).to(tl.int64)
    h, w = tl.arange(0, H), tl.arange(0, W)
    head, wide = h < heads, w < width
    first, last = tl.load(pointers + row), tl.load(pointers + row + 1)
    own = tl.load(to + row * heads + h, mask=head, other=0.0)
    slope = tl.full((1, 1), SLOPE, WIDE)  # a number among the arguments would be rounded to single precision
    high = tl.full((H,), float("-inf"), WIDE)
    for start in range(first, last, E):
        k = start + tl.arange(0, E)
        mask = (k < last)[:, None] & head[None, :]  # (E, H)
        c, e = tl.load(columns + k, mask=k < last, other=0), tl.load(entries + k, mask=k < last, other=0)
        s = scores_of(own, source, more, c, e, h, mask, heads, MORE)
        s = tl.where(s > 0, s, s * slope)
        high = tl.maximum(high, tl.max(tl.where(mask, s, float("-inf")), 0))
    total = tl.zeros((H,), WIDE)
    out = tl.zeros((H, W), WIDE)
    place = h[:, None] * width + w[None, :]  # (H, W)
    for start in range(first, last, E):
        k = start + tl.arange(0, E)
        mask = (k < last)[:, None] & head[None, :]
        c, e = tl.load(columns + k, mask=k < last, other=0), tl.load(entries + k, mask=k < last, other=0)
        s = scores_of(own, source, more, c, e, h, mask, heads, MORE)
        s = tl.where(s > 0, s, s * slope)
        share = tl.where(mask, tl.exp(s - high[None, :]), 0.0)
        total += tl.sum(share, 0)
        tile = tl.load(
            values + c[:, None, None] * (heads * width) + place[None, :, :],
            mask=mask[:, :, None] & wide[None, None, :], other=0.0,
        )  # (E, H, W)  # fmt: skip
        out += tl.sum(share[:, :, None] * tile, 0)
    some = last > first
    inverse = tl.where(some, 1.0 / total, 0.0)
    tl.store(softmax + row * 2 * heads + h, tl.where(some, high, 0.0), mask=head)
    tl.store(softmax + row * 2 * heads + heads + h, inverse, mask=head)
    out = tl.where(some, out * inverse[:, None], 0.0)
    tl.store(y + row * heads * width + place, out, mask=head[:, None] & wide[None, :])


@triton.jit
def pull_columns(
    grad, rows, source, more, values, pointers, columns, entries, d, d_source, d_values, heads, width,
    SLOPE: tl.constexpr, MORE: tl.constexpr, WIDE: tl.constexpr, E: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Gradients of one column from the rows it stands in: their to, top, inverse and <grad, y> stand in `rows`."""
    column = tl.program_id(0).to(tl.int64)
    h, w = tl.arange(0, H), tl.arange(0, W)
    head, wide = h < heads, w < width
    place = h[:, None] * width + w[None, :]  # (H, W)
    whole = head[:, None] & wide[None, :]
    first, last = tl.load(pointers + column), tl.load(pointers + column + 1)
    own = tl.load(source + column * heads + h, mask=head, other=0.0)
    value = tl.load(values + column * heads * width + place, mask=whole, other=0.0)
    slope = tl.full((1, 1), SLOPE, WIDE)
    total = tl.zeros((H,), WIDE)
    out = tl.zeros((H, W), WIDE)
    for start in range(first, last, E):
        k = start + tl.arange(0, E)
        mask = (k < last)[:, None] & head[None, :]  # (E, H)
        r, e = tl.load(columns + k, mask=k < last, other=0), tl.load(entries + k, mask=k < last, other=0)
        of_row = rows + r[:, None] * (4 * heads) + h[None, :]
        s = scores_of(own, rows, more, 4 * r, e, h, mask, heads, MORE)
        slant = tl.where(s > 0, 1.0, slope)
        top = tl.load(of_row + heads, mask=mask, other=0.0)
        inverse = tl.load(of_row + 2 * heads, mask=mask, other=0.0)
        mean = tl.load(of_row + 3 * heads, mask=mask, other=0.0)
        share = tl.where(mask, tl.exp(s * slant - top) * inverse, 0.0)
        g = tl.load(
            grad + r[:, None, None] * (heads * width) + place[None, :, :],
            mask=mask[:, :, None] & wide[None, None, :], other=0.0,
        )  # (E, H, W)  # fmt: skip
        pulled = share * (tl.sum(g * value[None, :, :], 2) - mean) * slant
        tl.store(d + e[:, None] * heads + h[None, :], pulled, mask=mask)
        total += tl.sum(tl.where(mask, pulled, 0.0), 0)
        out += tl.sum(share[:, :, None] * g, 0)
    tl.store(d_source + column * heads + h, total, mask=head)
    tl.store(d_values + column * heads * width + place, out, mask=whole)
