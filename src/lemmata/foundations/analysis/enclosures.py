r"""Values of a function enclosed by intervals: what lies outside them is no rounding."""

import torch
from torch import Tensor

from lemmata.certified.interval_curvature import enclosed
from lemmata.certified.intervals import Interval
from lemmata.foundations.analysis.function_values import Function
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction

__all__ = []  # for certificates; users meet only their answers

LARGEST = 100  # the most coordinates: the enclosures carry second derivatives, n^3 numbers


def enclosed_value(f: Function, at: Interval, dtype: torch.dtype = torch.float64) -> Interval | None:
    """Two numbers around every value that a function takes in a small box; None where it does what they do not know.

    The function is the one that is written, in real numbers: numbers in it are exact, nothing in it is rounded.

    >>> found = enclosed_value(lambda x: (x + 1e8).square().sum() - 1e16, Interval(torch.zeros(1)))
    >>> bool(found.low < 0), bool(found.high > 0)
    (True, True)
    """
    try:
        if type(f) is QuadraticFunction:
            bend, rise = at.mapped(f.matrix.detach()) * at, at * exactly(f.linear)
            found = bend.sum(0) * exactly(0.5) + rise.sum(0) + exactly(f.constant)
        elif len(at.low) <= LARGEST:
            found = enclosed(f, at.low, at.high, dtype).value
        else:
            return None
        low, high = found.low.reshape(()), found.high.reshape(())
    except Exception:  # whatever a user's function answers to a tensor without data, it is not known
        return None
    return Interval(low, high) if bool(low.isfinite() & high.isfinite()) else None


def exactly(value: Tensor | float) -> Interval:
    """Numbers that are known in all their digits."""
    return Interval(torch.as_tensor(value, dtype=torch.float64).detach())
