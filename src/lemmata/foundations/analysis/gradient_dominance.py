r"""The Polyak-Lojasiewicz condition, measured: how much gradient a function has where it is above its minimum."""

import torch
from torch import Tensor

from lemmata import validate
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

    A convex `QuadraticFunction` is certified: its least eigenvalue above zero. Any other function is searched, and the
    witness is the point of the least ratio: $\mu$ is at most that. `minimum` is $f^*$ over the whole space; where it
    is not given, the least value found in the box stands for it.

    Shapes:
        f: one vector (n,) to one number; region: (low, high)

    Claims: pl.definition, pl.strong_implies_pl

    >>> found = pl_constant(lambda x: (x**2 + 3 * torch.sin(x) ** 2).sum(), (-20.0, 20.0), minimum=0.0)
    >>> round(found.value, 2), found.certified
    (0.18, False)
    """
    if isinstance(f, QuadraticFunction):
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
    least = f.minimiser  # an error where there is no minimum
    curved = (f.eigenvalues > f.rounding).nonzero()
    if not len(curved):
        raise ValueError("f must not be constant: every constant is a PL constant of it")
    index = int(curved[0])
    witness = least + f.eigenvectors[:, index]
    # Half the squared gradient over the height, seen from the minimum, where no large value is subtracted.
    step = witness - least
    seen = float((f.matrix @ step).square().sum() / (step @ f.matrix @ step))
    value = float(f.eigenvalues[index]) - f.rounding
    return Measured("PL constant", value, True, "the least positive eigenvalue of its matrix", (witness,), seen)
