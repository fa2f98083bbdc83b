r"""Sums, maxima and attention over the entries of rows on an NVIDIA GPU: each program takes one row, or a piece of one.

Entries are read in blocks, columns of a block side by side, so that each row of features is read in whole lines. Sums
are in single precision for halves, in the order of the blocks: the same input gives the same bits. A program takes the
entries `starts[p] .. ends[p]`; with LONG it leaves out rows of more entries, whose pieces are taken by others.
"""

import triton
import triton.language as tl

__all__ = []

NOWHERE = tl.constexpr(1 << 62)


@triton.jit
def own_entries(starts, ends, LONG: tl.constexpr):
    """Where the entries of this program begin and end, and whether it takes them."""
    place = tl.program_id(0).to(tl.int64)
    first, last = tl.load(starts + place), tl.load(ends + place)
    taken = last >= first
    if LONG > 0:
        taken = last - first <= LONG
        last = tl.where(taken, last, first)
    return place, first, last, taken


@triton.jit
def sum_rows(
    x, weights, starts, ends, columns, entries, targets, y, features,
    LONG: tl.constexpr, WEIGHTED: tl.constexpr, SENT: tl.constexpr, WIDE: tl.constexpr,
    E: tl.constexpr, F: tl.constexpr,
):  # fmt: skip
    """y[r] = sum of weights[entries[k]] * x[columns[k]], a block of F features; with SENT r is targets[p]."""
    row, first, last, taken = own_entries(starts, ends, LONG)
    f = tl.program_id(1) * F + tl.arange(0, F)
    inside = f < features
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
    if SENT:
        row = tl.load(targets + row)
    tl.store(y + row * features + f, total, mask=inside & taken)


@triton.jit
def dot_entries(
    a, b, starts, ends, columns, entries, owners, d, features,
    LONG: tl.constexpr, OWNED: tl.constexpr, WIDE: tl.constexpr, E: tl.constexpr, F: tl.constexpr,
):  # fmt: skip
    """d[entries[k]] = <a[r], b[columns[k]]>; with OWNED r is owners[p]."""
    row, first, last, _ = own_entries(starts, ends, LONG)
    if OWNED:
        row = tl.load(owners + row)
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
def extremes_of_rows(
    x, starts, ends, columns, at, features,
    LONG: tl.constexpr, SIGN: tl.constexpr, WIDE: tl.constexpr, E: tl.constexpr, F: tl.constexpr,
):  # fmt: skip
    """at[r] = the column of the largest SIGN * x, the first of equals, or of the first NaN; -1 where there is none."""
    row, first, last, taken = own_entries(starts, ends, LONG)
    f = tl.program_id(1) * F + tl.arange(0, F)
    inside = f < features
    best = tl.full((F,), float("-inf"), WIDE)
    found, broken = tl.full((F,), NOWHERE, tl.int64), tl.full((F,), NOWHERE, tl.int64)
    for start in range(first, last, E):
        k = (start + tl.arange(0, E)).to(tl.int64)
        there = k < last
        mask = there[:, None] & inside[None, :]  # (E, F)
        c = tl.load(columns + k, mask=there, other=0)
        tile = SIGN * tl.load(x + c[:, None] * features + f[None, :], mask=mask, other=0.0).to(WIDE)
        number = tile == tile
        broken = tl.minimum(broken, tl.min(tl.where(mask & (tile != tile), k[:, None], NOWHERE), 0))
        tile = tl.where(mask & number, tile, float("-inf"))
        high = tl.max(tile, 0)
        where = tl.min(tl.where(mask & (tile == high[None, :]), k[:, None], NOWHERE), 0)
        better = (high > best) | (found == NOWHERE)  # in a row of nothing but -inf the first one counts
        best, found = tl.where(better, high, best), tl.where(better, where, found)
    found = tl.where(broken < NOWHERE, broken, found)
    column = tl.load(columns + found, mask=inside & (found < NOWHERE), other=-1)
    tl.store(at + row * features + f, column, mask=inside & taken)


@triton.jit
def scores_of(to, source, more, c, e, h, mask, heads, MORE: tl.constexpr):
    """to[h] + source[c, h] + more[e, h] for a block of entries: (E, H)."""
    s = to[None, :] + tl.load(source + c[:, None] * heads + h[None, :], mask=mask, other=0.0)
    if MORE:
        s += tl.load(more + e[:, None] * heads + h[None, :], mask=mask, other=0.0)
    return s


@triton.jit
def attend_rows(
    to, source, more, values, starts, ends, columns, entries, owners, softmax, y, heads, width,
    LONG: tl.constexpr, OWNED: tl.constexpr, SLOPE: tl.constexpr, MORE: tl.constexpr, WIDE: tl.constexpr,
    E: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """All heads of one row in one pass; what was added up shrinks when a higher score comes.

    softmax: the highest score, and one over the sum of exp(score - highest). Of a piece (OWNED) the sum itself, and y
    is not divided by it: pieces are joined afterwards.
    """
    row, first, last, taken = own_entries(starts, ends, LONG)
    h, w = tl.arange(0, H), tl.arange(0, W)
    head, wide = h < heads, w < width
    own = tl.load(to + (tl.load(owners + row) if OWNED else row) * heads + h, mask=head, other=0.0)
    slope = tl.full((1, 1), SLOPE, WIDE)  # a number among the arguments would be rounded to single precision
    high = tl.full((H,), float("-inf"), WIDE)
    total = tl.zeros((H,), WIDE)
    out = tl.zeros((H, W), WIDE)
    place = h[:, None] * width + w[None, :]  # (H, W)
    for start in range(first, last, E):
        k = start + tl.arange(0, E)
        mask = (k < last)[:, None] & head[None, :]  # (E, H)
        c = tl.load(columns + k, mask=k < last, other=0)
        e = tl.load(entries + k, mask=k < last, other=0) if MORE else c
        s = scores_of(own, source, more, c, e, h, mask, heads, MORE)
        s = tl.where(mask, tl.where(s > 0, s, s * slope), float("-inf"))
        higher = tl.maximum(high, tl.max(s, 0))
        shift = tl.where(higher == float("-inf"), 0.0, higher)  # as long as all scores are -inf
        shrunk = tl.exp(high - shift)
        high = higher
        share = tl.exp(s - shift[None, :])
        total = total * shrunk + tl.sum(share, 0)
        tile = tl.load(
            values + c[:, None, None] * (heads * width) + place[None, :, :],
            mask=mask[:, :, None] & wide[None, None, :], other=0.0,
        )  # (E, H, W)  # fmt: skip
        out = out * shrunk[:, None] + tl.sum(share[:, :, None] * tile, 0)
    if not OWNED:
        total = tl.where(last > first, 1.0 / total, 0.0)
        out = tl.where(last > first, out * total[:, None], 0.0)
        high = tl.where(last > first, high, 0.0)
    tl.store(softmax + row * 2 * heads + h, high, mask=head & taken)
    tl.store(softmax + row * 2 * heads + heads + h, total, mask=head & taken)
    tl.store(y + row * heads * width + place, out, mask=head[:, None] & wide[None, :] & taken)


@triton.jit
def pull_columns(
    grad, rows, source, more, values, starts, ends, columns, entries, owners, d, d_source, d_values, heads, width,
    LONG: tl.constexpr, OWNED: tl.constexpr, SLOPE: tl.constexpr, MORE: tl.constexpr, WIDE: tl.constexpr,
    E: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Gradients of one column from the rows it stands in: their to, top, inverse and <grad, y> stand in `rows`."""
    place, first, last, taken = own_entries(starts, ends, LONG)
    column = tl.load(owners + place) if OWNED else place
    h, w = tl.arange(0, H), tl.arange(0, W)
    head, wide = h < heads, w < width
    spread = h[:, None] * width + w[None, :]  # (H, W)
    whole = head[:, None] & wide[None, :]
    own = tl.load(source + column * heads + h, mask=head, other=0.0)
    value = tl.load(values + column * heads * width + spread, mask=whole, other=0.0)
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
            grad + r[:, None, None] * (heads * width) + spread[None, :, :],
            mask=mask[:, :, None] & wide[None, None, :], other=0.0,
        )  # (E, H, W)  # fmt: skip
        pulled = share * (tl.sum(g * value[None, :, :], 2) - mean) * slant
        tl.store(d + e[:, None] * heads + h[None, :], pulled, mask=mask)
        total += tl.sum(tl.where(mask, pulled, 0.0), 0)
        out += tl.sum(share[:, :, None] * g, 0)
    tl.store(d_source + place * heads + h, total, mask=head & taken)
    tl.store(d_values + place * heads * width + spread, out, mask=whole & taken)
