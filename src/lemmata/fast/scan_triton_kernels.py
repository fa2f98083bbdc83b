"""The two kernels of the linear recurrence on a GPU.

`strips` gives each program a strip of D columns and lets it go through time tile by tile, the state in its registers.
It is the one for many columns. With few there would be too few programs, and `relay` cuts time among them: each scans
one tile and publishes what the tile comes to; a state reaches a program through the last one of the group before, and
from there through the tiles of its own group. Which numbers are composed in which order depends on the place alone,
never on who was quicker: the same input gives the same bits.

Both also run backwards for the gradient, in one pass: then `states` holds the states of the forward pass, the gate of
a step is the conjugate of the one that was applied to it, and the gradient of the gates is written beside.
"""

# ruff: noqa: RET505 (a branch on a constant is compiled alone, and only an else keeps what follows a return out)

import triton
import triton.language as tl

from lemmata.fast.scan_triton_tiles import (
    pick,
    places,
    prefixes,
    read,
    scan_tile,
    spread,
    states_from,
    step,
    times,
    write,
)
from lemmata.fast.scan_triton_words import READY, missing, publish, take

__all__ = []


@triton.jit
def load_tile(
    gates, inputs, base, offset, time, present, length, time_step, gr, gi,
    R: tl.constexpr, S: tl.constexpr, D: tl.constexpr, BACKWARD: tl.constexpr,
    TIME_LAST: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr, CONSTANT: tl.constexpr,
):  # fmt: skip
    """Gates and inputs of a tile. Entries outside the sequence come last in its order: nothing depends on them."""
    inside = present & (time >= 0) & (time < length)
    br, bi = read(inputs, base, offset, inside, COMPLEX)
    if CONSTANT:
        ar, ai = spread(gr, R, S, D, TIME_LAST), spread(gi, R, S, D, TIME_LAST)
    elif BACKWARD:
        # The derivative flows from t + 1 to t through the gate of t + 1 (from t - 1 through that of t - 1).
        SHIFT: tl.constexpr = 1 if REVERSE else -1
        known = inside & (time + SHIFT >= 0) & (time + SHIFT < length)
        ar, ai = read(gates, base + SHIFT * time_step, offset, known, COMPLEX)
        ai = -ai
    else:
        ar, ai = read(gates, base, offset, inside, COMPLEX)
    return ar, ai, br, bi, inside


@triton.jit
def gate_products(
    states, base, offset, time, inside, length, time_step, zr, zi, REVERSE: tl.constexpr, COMPLEX: tl.constexpr
):
    """The gradient of each gate: that of its state times the conjugate of the state before it, zero for the first."""
    SHIFT: tl.constexpr = -1 if REVERSE else 1
    known = inside & (time + SHIFT >= 0) & (time + SHIFT < length)
    sr, si = read(states, base + SHIFT * time_step, offset, known, COMPLEX)
    return times(zr, zi, sr, -si, COMPLEX)


@triton.jit
def total(xr, xi, inside, COMPLEX: tl.constexpr, TIME_LAST: tl.constexpr):
    """The sum over the time of a tile, a number a column."""
    INNER: tl.constexpr = 2 if TIME_LAST else 1
    real = tl.sum(tl.sum(tl.where(inside, xr, 0.0), INNER), 0)
    if COMPLEX:
        return real, tl.sum(tl.sum(tl.where(inside, xi, 0.0), INNER), 0)
    else:
        return real, real


@triton.jit
def strips(
    gates, inputs, states, start, outputs, gate_grads, length, columns, batch_step, column_step, time_step,
    R: tl.constexpr, S: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
    TIME_LAST: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr, CONSTANT: tl.constexpr,
):  # fmt: skip
    """All time of D columns."""
    BACKWARD: tl.constexpr = states is not None
    across = tl.cdiv(columns, D)
    batch = (tl.program_id(0) // across).to(tl.int64)
    first = (tl.program_id(0) % across) * D
    place, column = places(R, S, D, TIME_LAST, REVERSE)
    offset = place * time_step + column * column_step
    origin = batch * batch_step + first.to(tl.int64) * column_step
    present = first + column < columns
    mine = batch * columns + first
    each = tl.arange(0, D)
    real_columns = first + each < columns
    zero, _ = read(inputs, 0, each, each < 0, COMPLEX)
    cr, ci = zero, zero
    if start is not None:
        cr, ci = read(start, mine, each, real_columns, COMPLEX)
    gr, gi = zero, zero
    if CONSTANT:
        gr, gi = read(gates, mine, each, real_columns, COMPLEX)
        gi = -gi if BACKWARD else gi
    sum_r, sum_i = zero, zero
    for chunk in tl.range(0, tl.cdiv(length, R * S), num_stages=STAGES):
        begin = length - (chunk + 1) * (R * S) if REVERSE else chunk * (R * S)
        base = origin + begin.to(tl.int64) * time_step
        time = begin + place
        ar, ai, br, bi, inside = load_tile(
            gates, inputs, base, offset, time, present, length, time_step, gr, gi,
            R, S, D, BACKWARD, TIME_LAST, REVERSE, COMPLEX, CONSTANT,
        )  # fmt: skip
        pr, pi, qr, qi, wr, wi, vr, vi = scan_tile(
            ar, ai, br, bi, R, S, D, TIME_LAST, REVERSE, COMPLEX, CONSTANT, gr, gi
        )
        zr, zi = states_from(ar, ai, br, bi, pr, pi, qr, qi, cr, ci, R, S, D, TIME_LAST, REVERSE, COMPLEX)
        write(outputs, base, offset, inside, zr, zi, COMPLEX)
        cr, ci = step(wr, wi, cr, ci, vr, vi, COMPLEX)
        if BACKWARD:
            dr, di = gate_products(states, base, offset, time, inside, length, time_step, zr, zi, REVERSE, COMPLEX)
            if CONSTANT:
                dr, di = total(dr, di, inside, COMPLEX, TIME_LAST)
                sum_r, sum_i = sum_r + dr, sum_i + di
            else:
                write(gate_grads, base, offset, inside, dr, di, COMPLEX)
    if BACKWARD and CONSTANT:
        write(gate_grads, mine, each, real_columns, sum_r, sum_i, COMPLEX)


@triton.jit(do_not_specialize=["chunks"])  # a one would come as a constant, which has no type
def relay(
    gates, inputs, states, start, outputs, gate_grads, length, columns, batch_step, column_step, time_step,
    words, counter, rows, chunks,
    R: tl.constexpr, S: tl.constexpr, D: tl.constexpr, GROUP: tl.constexpr, PIECES: tl.constexpr,
    TIME_LAST: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr, CONSTANT: tl.constexpr,
):  # fmt: skip
    """One tile. Programs take their places in the order in which they begin, so nobody waits for one yet to begin."""
    BACKWARD: tl.constexpr = states is not None
    PARTS: tl.constexpr = PIECES * (2 if COMPLEX else 1)
    across = tl.cdiv(columns, D)
    ticket = tl.atomic_add(counter, 1, sem="relaxed")
    chunk = (ticket // (rows // columns * across)).to(tl.int32)
    strip = (ticket % (rows // columns * across)).to(tl.int32)
    batch = (strip // across).to(tl.int64)
    first = (strip % across) * D
    place, column = places(R, S, D, TIME_LAST, REVERSE)
    offset = place * time_step + column * column_step
    begin = length - (chunk + 1) * (R * S) if REVERSE else chunk * (R * S)
    base = batch * batch_step + first.to(tl.int64) * column_step + begin.to(tl.int64) * time_step
    time = begin + place
    present = first + column < columns
    mine = batch * columns + first
    each = tl.arange(0, D)
    real_columns = first + each < columns
    zero, _ = read(inputs, 0, each, each < 0, COMPLEX)
    gr, gi = zero, zero
    if CONSTANT:
        gr, gi = read(gates, mine, each, real_columns, COMPLEX)
        gi = -gi if BACKWARD else gi
    ar, ai, br, bi, inside = load_tile(
        gates, inputs, base, offset, time, present, length, time_step, gr, gi,
        R, S, D, BACKWARD, TIME_LAST, REVERSE, COMPLEX, CONSTANT,
    )  # fmt: skip
    pr, pi, qr, qi, wr, wi, vr, vi = scan_tile(ar, ai, br, bi, R, S, D, TIME_LAST, REVERSE, COMPLEX, CONSTANT, gr, gi)

    # Planes of words: what tiles add, by what they multiply (unless constant), then the states after each group.
    group, member = chunk // GROUP, chunk % GROUP
    plane, groups = chunks.to(tl.int64) * rows, tl.cdiv(chunks, GROUP)
    chunk_step = 1 if TIME_LAST else rows
    own = (mine + each) * (chunks if TIME_LAST else 1)
    here = words + own + chunk.to(tl.int64) * chunk_step
    after = words + (PARTS if CONSTANT else 2 * PARTS) * plane + (mine + each) * (groups if TIME_LAST else 1)
    if member < GROUP - 1:
        publish(here, vr, vi, real_columns, plane, PIECES, COMPLEX)
        if not CONSTANT:
            publish(here + PARTS * plane, wr, wi, real_columns, plane, PIECES, COMPLEX)

    # What the earlier tiles of the group come to.
    index = tl.arange(0, GROUP)[:, None]
    wanted = (index < member) & real_columns[None, :]
    there = words + own[None, :] + (group * GROUP + index).to(tl.int64) * chunk_step
    # A loop carries a scalar and nothing else: over tensors the compiler stumbles.
    least = tl.full((), 0, tl.int64)
    while least < READY:
        least = missing(there, wanted, plane, PARTS if CONSTANT else 2 * PARTS)
    tl.debug_barrier()
    xr, xi = take(there, wanted, plane, PIECES, COMPLEX)
    if CONSTANT:
        yr, yi = tl.broadcast_to(wr[None, :], (GROUP, D)), tl.broadcast_to(wi[None, :], (GROUP, D))
    else:
        yr, yi = take(there + PARTS * plane, wanted, plane, PIECES, COMPLEX)
    yr, yi = tl.where(index < member, yr, 1.0), tl.where(index < member, yi, 0.0)
    yr, yi, xr, xi = prefixes(yr, yi, xr, xi, 0, COMPLEX)
    yr, yi = pick(yr, yi, index, GROUP - 1, 0, COMPLEX)
    xr, xi = pick(xr, xi, index, GROUP - 1, 0, COMPLEX)

    # The state before the group, and for the last of the group the state after it.
    last, known = after + (group - 1).to(tl.int64) * chunk_step, real_columns & (group > 0)
    short = groups.to(tl.int64) * rows
    least = tl.full((), 0, tl.int64)
    while least < READY:
        least = missing(last, known, short, PARTS)
    tl.debug_barrier()
    cr, ci = take(last, known, short, PIECES, COMPLEX)
    if start is not None:
        sr, si = read(start, mine, each, real_columns, COMPLEX)
        cr, ci = tl.where(group > 0, cr, sr), tl.where(group > 0, ci, si)
    cr, ci = step(yr, yi, cr, ci, xr, xi, COMPLEX)
    if member == GROUP - 1:
        er, ei = step(wr, wi, cr, ci, vr, vi, COMPLEX)
        publish(after + group.to(tl.int64) * chunk_step, er, ei, real_columns, short, PIECES, COMPLEX)

    zr, zi = states_from(ar, ai, br, bi, pr, pi, qr, qi, cr, ci, R, S, D, TIME_LAST, REVERSE, COMPLEX)
    write(outputs, base, offset, inside, zr, zi, COMPLEX)
    if BACKWARD:
        dr, di = gate_products(states, base, offset, time, inside, length, time_step, zr, zi, REVERSE, COMPLEX)
        if CONSTANT:
            dr, di = total(dr, di, inside, COMPLEX, TIME_LAST)
            write(gate_grads, chunk.to(tl.int64) * rows + mine, each, real_columns, dr, di, COMPLEX)
        else:
            write(gate_grads, base, offset, inside, dr, di, COMPLEX)
