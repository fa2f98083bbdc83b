r"""The Polyak-Lojasiewicz condition, measured: how much gradient a function has where it is above its minimum."""

from fractions import Fraction

import torch
from torch import Tensor

from lemmata import validate
from lemmata.certified.definiteness import certify_definiteness
from lemmata.certified.exact_elimination import exact_rank
from lemmata.certified.exact_spectra import LARGEST, eigenvalue_counts
from lemmata.certified.rounding import power_of_two
from lemmata.foundations.analysis.function_values import Function, batch_gradients, batch_values
from lemmata.foundations.analysis.measurements import Measured, invisible
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system

__all__ = ["pl_constant"]


@system("pl_constant", title="Polyak-Lojasiewicz constant", kind="function")
def pl_constant(
    f: Function,
    region: Box | tuple | None = None,
    minimum: int | float | None = None,
    points: int = POINTS,
    generator: torch.Generator | None = None,
) -> Measured:
    r"""The largest constant of the Polyak-Lojasiewicz condition in a box, in the convention with one half.

    $$ \tfrac12\|\nabla f(x)\|^2 \ge \mu\,(f(x) - f^*) $$

    Of a `QuadraticFunction` with a minimum it is the least eigenvalue that is not zero: certified by a floor under all
    of them where the matrix is proved definite, and by counting them in fractions where it is small and singular
    beyond doubt; a matrix that may be either is not. Any other function is searched, and the witness is the point of
    the least ratio: $\mu$ is at most that. `minimum` is $f^*$ over the whole space; where it is not given, the least
    value found in the box stands for it.

    Shapes:
        f: one vector (n,) to one number; region: (low, high)

    Claims: pl.definition, pl.strong_implies_pl

    >>> found = pl_constant(lambda x: (x**2 + 3 * torch.sin(x) ** 2).sum(), (-20.0, 20.0), minimum=0.0)
    >>> round(found.value, 2), found.certified
    (0.18, False)
    """
    if isinstance(f, QuadraticFunction) and type(f) is QuadraticFunction:  # a subclass may compute anything
        return _of_quadratic(f)
    if region is None:
        raise ValueError("region must be a pair (low, high): without it only a QuadraticFunction can be measured")
    box = box_region(region)
    generator = seeded(generator)
    validate.count("points", points)
    given = minimum is not None
    known = "" if given else ", above the least value found there"
    if minimum is None:
        lowest = box.worst(lambda x: -batch_values(f, x), points, generator)
        minimum = float(batch_values(f, lowest))
    floor, rounding = minimum, invisible(batch_values(f, box.corners())).max()

    def height_kept(x: Tensor) -> Tensor:
        # Close to the minimum both sides are rounding, and a point below the estimate of it says nothing.
        above = batch_values(f, x) - floor
        if given and bool((above < -rounding).any()):
            raise ValueError(f"minimum must not exceed the values of f, but f takes {floor + float(above.min()):g}")
        usable = above > rounding
        half = batch_gradients(f, x).square().sum(dim=1) / 2
        return torch.where(usable, -half / above, -torch.inf)

    point = box.worst(height_kept, points, generator)
    seen = -float(height_kept(point[None])[0])
    return Measured("PL constant", seen, False, f"the least ratio in the box, {points:,} points{known}", (point,), seen)


def _of_quadratic(f: QuadraticFunction) -> Measured:
    """The least eigenvalue that is not zero: proved where the matrix is definite, or singular beyond doubt."""
    unit = power_of_two(f.matrix.detach().double())
    matrix, linear = f.matrix.detach().double() / unit, f.linear.detach().double()
    values, vectors = torch.linalg.eigh(matrix / 2 + matrix.mT / 2)
    # Whatever made the matrix may have rounded a zero eigenvalue by so much, to either side.
    dust = 4 * len(values) * torch.finfo(values.dtype).eps * float(values.abs().max())
    proof = certify_definiteness(f.matrix.detach(), tolerance=dust * float(unit))
    curved = (values > dust) | bool(proof.definite)
    along = vectors.mT @ linear / unit
    lowest = -vectors[:, curved] @ (along[curved] / values[curved])
    lost = 4 * len(values) * torch.finfo(f.linear.dtype).eps * float(along.norm() + lowest.norm())
    if bool(proof.violated) or float(along[~curved].norm()) > lost:
        raise ValueError("the quadratic function has no minimum: along some direction it falls without end")
    if not curved.any():
        raise ValueError("f must not be constant: every constant is a PL constant of it")
    step = vectors[:, int(curved.nonzero()[0])]
    # Half the squared gradient over the height, seen from the minimum, where no large value is subtracted.
    seen = float((matrix @ step).square().sum() / (step @ matrix @ step) * unit)
    witness = ((lowest + step).to(f.matrix),)
    if bool(proof.definite):
        return Measured("PL constant", float(proof.floor), True, "a floor under all eigenvalues", witness, seen)
    proved = _proved_least(f, int((~curved).sum()), seen)
    if proved is None:
        return Measured("PL constant", seen, False, "the least eigenvalue that is no rounded zero", witness, seen)
    reason = "a floor under the eigenvalues that are not zero, counted in fractions"
    return Measured("PL constant", proved, True, reason, witness, seen)


def _proved_least(f: QuadraticFunction, zeros: int, seen: float) -> float | None:
    """A number below all eigenvalues but so many zeros, if there is a minimum; None where that is not proved."""
    matrix, linear = f.matrix.detach(), f.linear.detach()
    if len(matrix) > LARGEST or not torch.equal(matrix, matrix.mT):
        return None
    if exact_rank(torch.cat([matrix, linear[:, None]], dim=1)) != len(matrix) - zeros:  # it falls along the kernel
        return None
    if eigenvalue_counts(matrix, Fraction(0))[:2] != (0, zeros):
        return None
    below = (seen * (1 - 2.0**-40), seen / 2)  # what a computed eigenvalue is worth, or half of it
    return next((least for least in below if eigenvalue_counts(matrix, Fraction(least))[0] == zeros), None)
