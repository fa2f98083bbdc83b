"""Positions as sines and cosines: their frequencies, and shifts that are rotations."""

import torch

from lemmata.judge import all_of, claim, close, lie
from lemmata.transformers.positions import rotate, sinusoidal_encoding

BASE = 10_000.0


def unpaired(positions, width, dtype=None):
    """Every column with a frequency of its own: sine and cosine are no longer those of one angle."""
    column = torch.arange(width)
    angle = positions.double()[..., None] * BASE ** (-column.double() / width)  # (..., width)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


@claim("attention.positional")
@lie("the sine and the cosine of a pair have frequencies of their own", encoding=unpaired)
@lie("the index is not doubled", double=1.0)
@lie("the frequencies rise", sign=1.0)
@lie("the base is a thousand", base=1000.0)
def each_pair_turns_at_a_rate_of_its_own(draw, encoding=sinusoidal_encoding, double=2.0, sign=-1.0, base=10_000.0):
    """Every pair as a hand of a clock that takes the same small turn at each position, again and again."""
    measured, predicted = [], []
    for width in (2, 6, 64):
        rate = base ** (sign * double * torch.arange(width // 2).double() / width)
        turn = torch.polar(torch.ones_like(rate), rate)  # cosine and sine of one step
        hands = torch.cat([torch.ones(1, width // 2), turn.expand(999, -1)]).cumprod(0)  # (positions, width / 2)
        predicted.append(torch.stack([hands.imag, hands.real], -1).flatten())
        measured.append(encoding(torch.arange(1000), width, dtype=torch.float64).flatten())
    # A hand that has moved a thousand times has been rounded a thousand times.
    return close(torch.cat(measured), torch.cat(predicted), scale=1000.0)


def rotation(shift, width, turned):
    """Blocks that turn a pair (sine, cosine) by as many radians as its frequency says: (width, width)."""
    angle = turned * shift * BASE ** (-torch.arange(0, width, 2).double() / width)
    cos, sin = angle.cos(), angle.sin()
    return torch.block_diag(*torch.stack([cos, sin, -sin, cos], -1).reshape(-1, 2, 2))


def added(x, positions):
    """Positions added to queries and keys instead."""
    return x + sinusoidal_encoding(positions, x.shape[-1], dtype=x.dtype)


def unturned(x, positions):
    """Positions that change nothing."""
    return x


def turned_pairs(query, key, apart, rate):
    """The product of a query and a key as complex numbers, one for each pair, turned by their distance: (vectors,)."""
    half = query.shape[-1] // 2
    q, k = (torch.complex(x[..., :half], x[..., half:]) for x in (query, key))
    angle = rate * apart * BASE ** (-torch.arange(half).double() / half)
    return (q * k.conj() * torch.polar(torch.ones_like(angle), angle)).real.sum(-1)


@claim("attention.positional.shift")
@lie("also with a frequency of its own for each column", encoding=unpaired)
@lie("the rotation goes the other way", turned=-1.0)
@lie("the product depends on the sum of the positions", sign=1.0)
@lie("every encoding has the squared length d", half=1.0)
@lie("so does that of queries and keys to which positions are added", turn=added)
@lie("queries and keys need not be turned", turn=unturned)
@lie("queries and keys turn three times as fast as the encoding", rate=3.0)
def a_shift_is_a_rotation(draw, encoding=sinusoidal_encoding, turned=1.0, sign=-1.0, half=0.5, turn=rotate, rate=1.0):
    """Shifts near and far, back and none; products and lengths of all pairs; queries and keys as complex numbers."""
    shifted, rotated, products, cosines = [], [], [], []
    for width in (2, 8, 64):
        t = torch.arange(200)
        p = encoding(t, width, dtype=torch.float64)  # (positions, width)
        for shift in (0, 1, -7, 1000):
            shifted.append(encoding(t + shift, width, dtype=torch.float64).flatten())
            rotated.append((p @ rotation(shift, width, turned).mT).flatten())
        apart = (t[:, None] + sign * t)[..., None] * BASE ** (-torch.arange(0, width, 2).double() / width)
        products.append((p @ p.mT / width).flatten())
        cosines.append((apart.cos().sum(-1) / width).flatten())
    query, key = draw.normal(2, 50, 8)
    s, t = draw.integers(0, 500, 50), draw.integers(0, 500, 50)
    return all_of(
        close(torch.cat(shifted), torch.cat(rotated), scale=1000.0),  # the rounding of an angle of a thousand radians
        close(torch.cat(products), torch.cat(cosines), scale=200.0),
        close(
            torch.cat([(p * p).sum(-1), encoding(s, 8, dtype=torch.float64).square().sum(-1)]),
            torch.tensor([half * 64] * 200 + [half * 8] * 50).double(),
        ),
        close(
            (turn(query, s) * turn(key, t)).sum(-1), turned_pairs(query, key, (s - t)[:, None], rate), scale=500.0 * 8
        ),
    )
