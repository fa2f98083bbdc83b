r"""Convexity of functions: a chord that lies below the graph refutes it, a proved curvature confirms it."""

import torch
from torch import Tensor

from lemmata import validate
from lemmata.certified.intervals import Interval
from lemmata.foundations.analysis.curvature import strong_convexity
from lemmata.foundations.analysis.enclosures import enclosed_value, exactly
from lemmata.foundations.analysis.function_values import Function, batch_values
from lemmata.foundations.analysis.measurements import Measured, invisible
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system

__all__ = ["is_convex"]

LENGTHS = (1e-3, 1e-2, 0.1, 0.5)  # of chords along the least curvature, as fractions of the box
FRACTIONS = (0.25, 0.5, 0.75)  # of the length of a chord, where it is looked at


@system("is_convex", title="Convexity of a function", kind="function")
def is_convex(
    f: Function, region: Box | tuple, points: int = POINTS, generator: torch.Generator | None = None
) -> Measured:
    r"""Whether a function is convex in a box; a "no" comes with a chord that shows it.

    $$ f(\lambda x + (1 - \lambda) y) \le \lambda f(x) + (1 - \lambda) f(y) $$

    A "no" is certified where intervals enclose the values at its witness $(x, y, \lambda)$ and prove the function above
    the chord. Where they do not know the function, it must lie above by more than rounding usually explains,
    $\sqrt\epsilon$ of its values in their dtype: that is seen, not proved. A "yes" is certified where the least
    curvature is proved not to be negative, by intervals or by the matrix of a `QuadraticFunction`; else it says only
    that no chord was found, of random ones and of those along the least curvature.

    Shapes:
        f: one vector (n,) to one number; region: (low, high)

    Claims: convex.function, convex.second_order

    >>> print(is_convex(lambda x: torch.sin(x).sum(), (-3.0, 3.0)))
    convex no (certified: the function lies above a chord by 1.18)
    >>> is_convex(lambda x: torch.logsumexp(x, 0), (-torch.ones(3), torch.ones(3))).value
    True
    """
    box = box_region(region)
    generator = seeded(generator)
    x, y = box.sample(validate.count("points", points), generator), box.sample(points, generator)
    found = _lowest_chord(f, x, y)
    curvature = _least_curvature(f, box, points, generator) if found.value else None
    if curvature is None:
        return found
    # None was found: look where the curvature is least. A quadratic bends alike everywhere; its witness shows the
    # direction alone.
    first, second = curvature.witness
    middle = box.centre if type(f) is QuadraticFunction else ((first + second) / 2).to(box.low)
    chords = [box.pair(middle, (second - first).to(middle), fraction) for fraction in LENGTHS]
    found = _lowest_chord(f, *(torch.stack(ends) for ends in zip(*chords, strict=True)))
    if not (found.value and curvature.certified and float(curvature.value) >= 0):
        return found
    reason = f"least curvature {curvature.value:.3g}, {curvature.reason}"
    return Measured("convex", True, True, reason, found.witness, found.seen)


def _lowest_chord(f: Function, x: Tensor, y: Tensor) -> Measured:
    """The chord that lies lowest against the function, of those between the pairs."""
    fractions = x.new_tensor(FRACTIONS)[:, None]
    first, second = batch_values(f, x).detach(), batch_values(f, y).detach()
    between = batch_values(f, fractions[..., None] * x + (1 - fractions[..., None]) * y).detach()
    chord = fractions * first + (1 - fractions) * second
    gaps = torch.where(chord == torch.inf, torch.inf, chord - between)  # an infinite chord lies below nothing
    if gaps.isnan().any():
        bad = x[gaps.isnan().any(0)][0].tolist()
        raise ValueError(f"f must not be NaN or -inf in the region, but is on the way from {bad}: shrink it")
    rounding = invisible(torch.maximum(first.abs(), second.abs()))
    for most in (gaps + rounding, gaps):  # the lowest beyond rounding, and the lowest
        row, column = divmod(int(most.argmin()), len(x))
        witness, gap = (x[column], y[column], fractions[row, 0]), float(gaps[row, column])
        bounds = _chord_bounds(f, *witness) if gap < 0 else None
        if bounds is not None and float(bounds.high) < 0:
            reason = f"the function lies above a chord by {-float(bounds.high):.3g}"
            return Measured("convex", False, True, reason, witness, gap)
        if bounds is None and gap < -float(rounding[column]):
            reason = f"the function was seen above a chord by {-gap:.3g}"
            return Measured("convex", False, False, reason, witness, gap)
    return Measured("convex", True, False, "no chord below the function was found", witness, gap)


def _chord_bounds(f: Function, x: Tensor, y: Tensor, fraction: Tensor) -> Interval | None:
    """Two numbers around the height of a chord above the function, at the very point between its ends."""
    weight, rest = exactly(fraction), exactly(1 - fraction)  # quarters, exact in every dtype
    first, second = enclosed_value(f, exactly(x), x.dtype), enclosed_value(f, exactly(y), x.dtype)
    between = enclosed_value(f, weight * exactly(x) + rest * exactly(y), x.dtype)
    if first is None or second is None or between is None:
        return None
    return weight * first + rest * second + -between


def _least_curvature(f: Function, box: Box, points: int, generator: torch.Generator) -> Measured | None:
    if box.low.dtype in (torch.float32, torch.float64):
        return strong_convexity(f, box, points, generator)
    try:  # torch finds no eigenvalues in half precision
        return strong_convexity(f, Box(box.low.double(), box.high.double()), points, generator)
    except RuntimeError:  # a function that holds numbers in half precision itself
        return None
