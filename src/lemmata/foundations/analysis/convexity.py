r"""Convexity of functions: a chord that lies below the graph refutes it, a proved curvature confirms it."""

import torch
from torch import Tensor

from lemmata import validate
from lemmata.foundations.analysis.curvature import strong_convexity
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

    A "no" is certified by its witness $(x, y, \lambda)$, where the function lies above the chord by more than rounding
    explains, $\sqrt\epsilon$ of its values in their dtype. A "yes" is certified for a `QuadraticFunction` and for
    functions whose Hessians intervals enclose; else it says only that no chord was found, of random ones and of those
    along the least curvature.

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
    below = _lowest_chord(f, x, y)
    if below.value:  # none was found: look where the curvature is least
        curvature = strong_convexity(f, box, points, generator)
        # A quadratic bends alike everywhere; its witness shows the direction alone.
        first, second = curvature.witness
        middle = box.centre if isinstance(f, QuadraticFunction) else (first + second) / 2
        chords = [box.pair(middle, (second - first).to(middle), fraction) for fraction in LENGTHS]
        below = _lowest_chord(f, *(torch.stack(ends) for ends in zip(*chords, strict=True)))
        if curvature.certified and float(curvature.value) >= 0:
            reason = f"least curvature {curvature.value:.3g}, {curvature.reason}"
            return Measured("convex", True, True, reason, below.witness, below.seen)
    return below


def _lowest_chord(f: Function, x: Tensor, y: Tensor) -> Measured:
    """The chord that lies lowest against the function, of those between the pairs."""
    fractions = x.new_tensor(FRACTIONS)[:, None]
    first, second = batch_values(f, x).detach(), batch_values(f, y).detach()
    between = batch_values(f, fractions[..., None] * x + (1 - fractions[..., None]) * y).detach()
    gaps = fractions * first + (1 - fractions) * second - between
    rounding = invisible(torch.maximum(first.abs(), second.abs()))
    row, column = divmod(int((gaps + rounding).argmin()), len(x))
    witness, gap = (x[column], y[column], fractions[row, 0]), float(gaps[row, column])
    if gap < -float(rounding[column]):
        return Measured("convex", False, True, f"the function lies above a chord by {-gap:.3g}", witness, gap)
    return Measured("convex", True, False, "no chord below the function was found", witness, gap)
