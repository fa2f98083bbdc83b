"""Tiles of the linear recurrence on a GPU: read, scan, write.

A tile is a cube of R runs x S steps x D columns, a column being one sequence. A run is S neighbouring steps; its axis
is chosen so that Triton gives every run to one thread, which then goes through its steps one after another, in
registers; only what R runs come to is scanned across threads. The axes are (run, step, column), or (run, column, step)
where time lies last in memory: the axis of neighbours in memory must be the last one.

Numbers travel as two tensors, real and imaginary part. For real numbers the second one is the first again, is never
looked at, and costs nothing. Half precision is computed in single precision.
"""

# ruff: noqa: RET505 (a branch on a constant is compiled alone, and only an else keeps what follows a return out)

import triton
import triton.language as tl

__all__ = []

# --- Numbers ---


@triton.jit
def read(pointer, base, offset, mask, COMPLEX: tl.constexpr):
    """Numbers at base + offset, zero outside the mask. complex64 comes as words of 64 bits: whole lines are loaded."""
    if not COMPLEX:
        x = tl.load(pointer + base + offset, mask=mask, other=0.0)
        if x.dtype != tl.float64:
            x = x.to(tl.float32)
        return x, x
    elif pointer.dtype.element_ty == tl.int64:
        word = tl.load(pointer + base + offset, mask=mask, other=0)
        real, imag = word.to(tl.int32), (word >> 32).to(tl.int32)
        return real.to(tl.float32, bitcast=True), imag.to(tl.float32, bitcast=True)
    else:
        pairs = pointer + 2 * base
        return tl.load(pairs + 2 * offset, mask=mask, other=0.0), tl.load(pairs + 2 * offset + 1, mask=mask, other=0.0)


@triton.jit
def write(pointer, base, offset, mask, real, imag, COMPLEX: tl.constexpr):
    """The reverse of `read`."""
    if not COMPLEX:
        tl.store(pointer + base + offset, real.to(pointer.dtype.element_ty), mask=mask)
    elif pointer.dtype.element_ty == tl.int64:
        low = real.to(tl.uint32, bitcast=True).to(tl.uint64)
        high = imag.to(tl.uint32, bitcast=True).to(tl.uint64)
        tl.store(pointer + base + offset, (low | (high << 32)).to(tl.int64, bitcast=True), mask=mask)
    else:
        pairs = pointer + 2 * base
        tl.store(pairs + 2 * offset, real, mask=mask)
        tl.store(pairs + 2 * offset + 1, imag, mask=mask)


@triton.jit
def times(ar, ai, br, bi, COMPLEX: tl.constexpr):
    """a * b."""
    if COMPLEX:
        return ar * br - ai * bi, ar * bi + ai * br
    else:
        return ar * br, ar * br


@triton.jit
def step(ar, ai, zr, zi, br, bi, COMPLEX: tl.constexpr):
    """a * z + b."""
    if COMPLEX:
        return br + ar * zr - ai * zi, bi + ar * zi + ai * zr  # in this order: four fused multiply-adds
    else:
        return ar * zr + br, ar * zr + br


# --- Prefixes ---


@triton.jit
def compose_real(a1, b1, a2, b2):
    """The step (a1, b1) and then the step (a2, b2), as one step."""
    return a1 * a2, a2 * b1 + b2


@triton.jit
def compose_complex(ar1, ai1, br1, bi1, ar2, ai2, br2, bi2):
    """The same for complex numbers."""
    ar, ai = times(ar1, ai1, ar2, ai2, True)
    br, bi = step(ar2, ai2, br1, bi1, br2, bi2, True)
    return ar, ai, br, bi


@triton.jit
def prefixes(ar, ai, br, bi, AXIS: tl.constexpr, COMPLEX: tl.constexpr):
    """All steps of an axis composed, from its beginning to each."""
    if COMPLEX:
        return tl.associative_scan((ar, ai, br, bi), AXIS, compose_complex)
    else:
        a, b = tl.associative_scan((ar, br), AXIS, compose_real)
        return a, a, b, b


@triton.jit
def pick(xr, xi, index, INDEX: tl.constexpr, AXIS: tl.constexpr, COMPLEX: tl.constexpr):
    """The entry at one place of an axis, along which `index` counts."""
    real = tl.sum(tl.where(index == INDEX, xr, 0.0), AXIS)
    if COMPLEX:
        return real, tl.sum(tl.where(index == INDEX, xi, 0.0), AXIS)
    else:
        return real, real


@triton.jit
def shift_real(a1, b1, c1, d1, a2, b2, c2, d2):
    """Compose steps, and in (c, d) all but the last of them."""
    return a1 * a2, a2 * b1 + b2, c2 * a1, c2 * b1 + d2


@triton.jit
def shift_complex(
    ar1, ai1, br1, bi1, cr1, ci1, dr1, di1, ar2, ai2, br2, bi2, cr2, ci2, dr2, di2
):  # fmt: skip
    """The same for complex numbers."""
    ar, ai, br, bi = compose_complex(ar1, ai1, br1, bi1, ar2, ai2, br2, bi2)
    cr, ci, dr, di = compose_complex(ar1, ai1, br1, bi1, cr2, ci2, dr2, di2)
    return ar, ai, br, bi, cr, ci, dr, di


@triton.jit
def prefixes_before(ar, ai, br, bi, COMPLEX: tl.constexpr):
    """Along the first axis, all steps up to each, with it and without it."""
    one, none = tl.full(ar.shape, 1.0, ar.dtype), tl.full(ar.shape, 0.0, ar.dtype)
    if COMPLEX:
        return tl.associative_scan((ar, ai, br, bi, one, none, none, none), 0, shift_complex)
    else:
        a, b, c, d = tl.associative_scan((ar, br, one, none), 0, shift_real)
        return a, a, b, b, c, c, d, d


# --- Powers of a constant gate ---


@triton.jit
def power(xr, xi, N: tl.constexpr, COMPLEX: tl.constexpr):
    """x to the N, a power of two."""
    if N == 1:
        return xr, xi
    else:
        xr, xi = times(xr, xi, xr, xi, COMPLEX)
        return power(xr, xi, N // 2, COMPLEX)


@triton.jit
def gate_powers(gr, gi, R: tl.constexpr, S: tl.constexpr, COMPLEX: tl.constexpr):
    """What constant gates come to in a run and in a tile.

    Rounded to single precision after each squaring, all powers would lean to the same side, as if the gate were another
    one: the error would grow with the memory 1 / (1 - |gate|). So they are taken in double precision and rounded once.
    """
    sr, si = power(gr.to(tl.float64), gi.to(tl.float64), S, COMPLEX)
    wr, wi = power(sr, si, R, COMPLEX)
    return sr.to(gr.dtype), si.to(gr.dtype), wr.to(gr.dtype), wi.to(gr.dtype)


# --- Runs whose steps lie last ---
#
# A scan along the last axis would be free too, but not backwards: Triton then moves every entry between threads. Here
# the steps of a run are halved by name instead, and each thread has all of them: nothing moves in either direction.


@triton.jit
def halves(x, R: tl.constexpr, D: tl.constexpr, S: tl.constexpr, REVERSE: tl.constexpr):
    """Every second step, beginning with the one that comes first, and the ones after them."""
    if S == 2:
        even, odd = tl.split(x)
    else:
        even, odd = tl.split(tl.reshape(x, (R, D, S // 2, 2)))
    if REVERSE:
        return odd, even
    else:
        return even, odd


@triton.jit
def joined(one, two, R: tl.constexpr, D: tl.constexpr, S: tl.constexpr, REVERSE: tl.constexpr):
    """The reverse of `halves`."""
    both = tl.join(two, one) if REVERSE else tl.join(one, two)
    return tl.reshape(both, (R, D, S))


@triton.jit
def pairs(
    ar, ai, br, bi, R: tl.constexpr, D: tl.constexpr, S: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr
):
    """Each two steps in a row as one, and the first of the two."""
    ar1, ar2 = halves(ar, R, D, S, REVERSE)
    br1, br2 = halves(br, R, D, S, REVERSE)
    if COMPLEX:
        ai1, ai2 = halves(ai, R, D, S, REVERSE)
        bi1, bi2 = halves(bi, R, D, S, REVERSE)
        ar, ai, br, bi = compose_complex(ar1, ai1, br1, bi1, ar2, ai2, br2, bi2)
        return ar, ai, br, bi, ar1, ai1, br1, bi1
    else:
        a, b = compose_real(ar1, br1, ar2, br2)
        return a, a, b, b, ar1, ar1, br1, br1


@triton.jit
def whole_run(
    ar, ai, br, bi, R: tl.constexpr, D: tl.constexpr, S: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr
):
    """All steps of a run (run, column, step) as one."""
    if S == 1:
        return tl.reshape(ar, (R, D)), tl.reshape(ai, (R, D)), tl.reshape(br, (R, D)), tl.reshape(bi, (R, D))
    else:
        ar, ai, br, bi, _, _, _, _ = pairs(ar, ai, br, bi, R, D, S, REVERSE, COMPLEX)
        if S == 2:
            return ar, ai, br, bi
        else:
            return whole_run(ar, ai, br, bi, R, D, S // 2, REVERSE, COMPLEX)


@triton.jit
def states_before(
    ar, ai, br, bi, cr, ci,
    R: tl.constexpr, D: tl.constexpr, S: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr,
):  # fmt: skip
    """The state before each step, given the one before each run."""
    if S == 1:
        return tl.reshape(cr, (R, D, 1)), tl.reshape(ci, (R, D, 1))
    else:
        ar, ai, br, bi, ar1, ai1, br1, bi1 = pairs(ar, ai, br, bi, R, D, S, REVERSE, COMPLEX)
        if S > 2:
            cr, ci = states_before(ar, ai, br, bi, cr, ci, R, D, S // 2, REVERSE, COMPLEX)
        er, ei = step(ar1, ai1, cr, ci, br1, bi1, COMPLEX)
        real = joined(cr, er, R, D, S, REVERSE)
        if COMPLEX:
            return real, joined(ci, ei, R, D, S, REVERSE)
        else:
            return real, real


# --- Tiles ---


@triton.jit
def places(R: tl.constexpr, S: tl.constexpr, D: tl.constexpr, TIME_LAST: tl.constexpr, REVERSE: tl.constexpr):
    """Place in the chunk and column of each entry. Backwards, runs and steps change places: a scan only runs forward.

    With time last the steps keep theirs, since a thread loads them as neighbours in memory.
    """
    run, inner, column = tl.arange(0, R)[:, None, None], tl.arange(0, S), tl.arange(0, D)
    if REVERSE:
        run = R - 1 - run
        if not TIME_LAST:
            inner = S - 1 - inner
    if TIME_LAST:
        return run * S + inner[None, None, :], column[None, :, None]
    else:
        return run * S + inner[None, :, None], column[None, None, :]


@triton.jit
def spread(x, R: tl.constexpr, S: tl.constexpr, D: tl.constexpr, TIME_LAST: tl.constexpr):
    """One number a column, for the whole tile."""
    if TIME_LAST:
        return tl.broadcast_to(x[None, :, None], (R, D, S))
    else:
        return tl.broadcast_to(x[None, None, :], (R, S, D))


@triton.jit
def scan_tile(
    ar, ai, br, bi,
    R: tl.constexpr, S: tl.constexpr, D: tl.constexpr,
    TIME_LAST: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr, CONSTANT: tl.constexpr, gr, gi,
):  # fmt: skip
    """A tile as far as it goes without the state before it: all runs before each as one step, and the whole as one.

    These are two numbers for each run and each column, and two for each column. (gr, gi) are gates that are CONSTANT.
    """
    if TIME_LAST:
        pr, pi, qr, qi = whole_run(ar, ai, br, bi, R, D, S, REVERSE, COMPLEX)
    else:
        ar, ai, br, bi = prefixes(ar, ai, br, bi, 1, COMPLEX)
        index = tl.arange(0, S)[None, :, None]
        pr, pi = pick(ar, ai, index, S - 1, 1, COMPLEX)
        qr, qi = pick(br, bi, index, S - 1, 1, COMPLEX)
    run = tl.arange(0, R)[:, None]
    if CONSTANT:
        pr, pi, wr, wi = gate_powers(gr, gi, R, S, COMPLEX)
        pr, pi = tl.broadcast_to(pr[None, :], (R, D)), tl.broadcast_to(pi[None, :], (R, D))
        _, _, vr, vi, pr, pi, qr, qi = prefixes_before(pr, pi, qr, qi, COMPLEX)
    else:
        wr, wi, vr, vi, pr, pi, qr, qi = prefixes_before(pr, pi, qr, qi, COMPLEX)
        wr, wi = pick(wr, wi, run, R - 1, 0, COMPLEX)
    vr, vi = pick(vr, vi, run, R - 1, 0, COMPLEX)
    return pr, pi, qr, qi, wr, wi, vr, vi


@triton.jit
def states_from(
    ar, ai, br, bi, pr, pi, qr, qi, cr, ci,
    R: tl.constexpr, S: tl.constexpr, D: tl.constexpr,
    TIME_LAST: tl.constexpr, REVERSE: tl.constexpr, COMPLEX: tl.constexpr,
):  # fmt: skip
    """The states of a tile, given its runs as `scan_tile` tells them and the state before it, a number a column."""
    cr, ci = step(pr, pi, cr[None, :], ci[None, :], qr, qi, COMPLEX)
    if TIME_LAST:
        cr, ci = states_before(ar, ai, br, bi, cr, ci, R, D, S, REVERSE, COMPLEX)
        return step(ar, ai, cr, ci, br, bi, COMPLEX)
    else:
        # The first step takes up the state before the run; the products of gates are not asked for, nor computed.
        first = tl.arange(0, S)[None, :, None] == 0
        er, ei = step(ar, ai, cr[:, None, :], ci[:, None, :], br, bi, COMPLEX)
        br, bi = tl.where(first, er, br), tl.where(first, ei, bi)
        _, _, br, bi = prefixes(ar, ai, br, bi, 1, COMPLEX)
        return br, bi
