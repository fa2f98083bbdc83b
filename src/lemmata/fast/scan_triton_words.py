"""Numbers handed from one running GPU program to another, through memory that starts as zeros.

32 bits of a value and the bit READY share a word of 64 bits, which is written and read in one piece: who sees the bit
sees the value. No fence and no order between words is needed.
"""

# ruff: noqa: RET505 (a branch on a constant is compiled alone, and only an else keeps what follows a return out)

import triton
import triton.language as tl

__all__ = []

READY = tl.constexpr(1 << 32)  # a bit above the 32 that carry a value


@triton.jit
def publish_real(words, x, mask, plane):
    """Write one real number a word; two words for double precision."""
    if x.dtype == tl.float64:
        bits = x.to(tl.uint64, bitcast=True)
        tl.atomic_xchg(words, ((bits & 0xFFFFFFFF) | READY).to(tl.int64), mask=mask, sem="relaxed")
        tl.atomic_xchg(words + plane, ((bits >> 32) | READY).to(tl.int64), mask=mask, sem="relaxed")
    else:
        bits = x.to(tl.uint32, bitcast=True).to(tl.int64)
        tl.atomic_xchg(words, bits | READY, mask=mask, sem="relaxed")


@triton.jit
def publish(words, real, imag, mask, plane, PIECES: tl.constexpr, COMPLEX: tl.constexpr):
    """Write numbers, each piece of 32 bits into a plane of its own."""
    publish_real(words, real, mask, plane)
    if COMPLEX:
        publish_real(words + PIECES * plane, imag, mask, plane)


@triton.jit
def missing(words, mask, plane, PLANES: tl.constexpr):
    """A number below READY as long as a word of some planes is missing."""
    word = tl.load(words, mask=mask, other=READY, volatile=True)
    for other in tl.static_range(1, PLANES):
        word = tl.minimum(word, tl.load(words + other * plane, mask=mask, other=READY, volatile=True))
    return tl.min(word)


@triton.jit
def take_real(words, mask, plane, PIECES: tl.constexpr):
    """What was published."""
    bits = tl.load(words, mask=mask, other=0, volatile=True) & 0xFFFFFFFF
    if PIECES == 2:
        bits |= tl.load(words + plane, mask=mask, other=0, volatile=True) << 32
        return bits.to(tl.float64, bitcast=True)
    else:
        return bits.to(tl.uint32).to(tl.float32, bitcast=True)


@triton.jit
def take(words, mask, plane, PIECES: tl.constexpr, COMPLEX: tl.constexpr):
    """The reverse of `publish`, once nothing is `missing` for any thread.

    The words are loaded anew, although they were just looked at: the compiler runs a load once for each layout in
    which it wants the tensor, so a value and the look that found it there might be of different times.
    """
    real = take_real(words, mask, plane, PIECES)
    if COMPLEX:
        return real, take_real(words + PIECES * plane, mask, plane, PIECES)
    else:
        return real, real
