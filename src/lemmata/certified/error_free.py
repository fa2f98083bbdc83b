r"""Sums and products of floats together with exactly what rounding took from them.

Where the remainder is zero, so is the error: structured numbers, halves and thirds of nothing but powers of two, are
then known exactly at the price of a few more operations.
"""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = []  # for certificates; users meet only their answers

SPLITTER = 2.0**27 + 1  # cuts the 53 digits of a double into two halves whose products are exact
SMALLEST = 2.0**-960  # below it the remainder of a product may itself be rounded
DIGITS = 53


def two_sum(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
    r"""The rounded sum and its remainder: $a + b = s + r$ exactly.

    Source: D. Knuth, The Art of Computer Programming 2, section 4.2.2.

    >>> two_sum(torch.tensor(1.0, dtype=torch.float64), torch.tensor(2.0**-60, dtype=torch.float64))[1] == 2.0**-60
    tensor(True)
    """
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def two_product(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
    r"""The rounded product and its remainder: $a b = p + r$ exactly, for products between $2^{-960}$ and $2^{990}$.

    Source: T. Dekker, A floating-point technique for extending the available precision (1971).

    >>> third = torch.tensor(1 / 3, dtype=torch.float64)
    >>> [remainder.item() for remainder in two_product(third, torch.tensor(3.0, dtype=torch.float64))]
    [1.0, -5.551115123125783e-17]
    """
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split_halves(a), _split_halves(b)
    remainder = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, remainder


def _split_halves(a: Tensor) -> tuple[Tensor, Tensor]:
    scaled = SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def grain(*tensors: Float[Tensor, "*shape"]) -> float:
    """The largest power of two of which all these numbers are whole multiples; 1 if all are zero.

    >>> grain(torch.tensor([0.75, 3.0, 0.0], dtype=torch.float64))
    0.25
    """
    least = None
    for values in tensors:
        mantissa, exponent = torch.frexp(values[values != 0].detach().double())
        whole = torch.ldexp(mantissa, torch.tensor(DIGITS, device=values.device)).long()
        if len(whole):
            # The lowest bit of an integer is what it shares with its negative.
            lowest = torch.frexp((whole & -whole).double()).exponent - 1
            found = int((exponent - DIGITS + lowest).min())
            least = found if least is None else min(least, found)
    return 1.0 if least is None else 2.0**least
