r"""General position: no more dependence among points than their number forces, with the guilty subset if there is."""

import itertools
import math

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.certified.exact_elimination import exact_rank
from lemmata.certified.rounding import gamma, power_of_two
from lemmata.marks import system

__all__ = ["dependent_subset"]

MAX_SUBSETS = 200_000  # some seconds
AT_ONCE = 4096  # subsets


@system("general_position", title="General position with the dependent subset", kind="function")
def dependent_subset(points: Shaped[Tensor, "points features"], affine: bool = False) -> tuple[int, ...] | None:
    r"""The smallest subset of points that breaks general position, or None if the points are in it.

    $$ \text{every } S' \subseteq S,\ |S'| \le d, \text{ is linearly independent} $$

    With `affine=True` the same is asked of affine independence and up to $d + 1$ points: no two are equal, no three
    lie on a line, no four in a plane. Dependence is decided without rounding, on the numbers as they are stored.

    Shapes:
        points: (points, features), floating point or integer    returns: indices of points, ascending

    Claims: linalg.general_position

    >>> flat = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])  # any two are independent
    >>> dependent_subset(flat), dependent_subset(flat[[0, 1, 3]])
    ((0, 1, 2), None)
    """
    if not isinstance(points, Tensor) or points.ndim != 2 or not points.numel():
        raise ValueError("points must be a (points, features) tensor that is not empty")
    # A combination is affine if its coefficients sum to 0: one more feature that is 1 for all.
    ones = torch.ones_like(points[:, :1])
    rows = torch.cat([points, ones], dim=1) if validate.flag("affine", affine) else points
    size = min(rows.shape)
    if math.comb(len(rows), size) > MAX_SUBSETS:
        raise ValueError(f"points must be fewer: {len(rows)} of them have more than {MAX_SUBSETS:,} subsets to test")
    if _first_dependent(rows, size) is None:  # then no smaller subset is
        return None
    found = (_first_dependent(rows, smaller) for smaller in range(1, size + 1))
    return next(subset for subset in found if subset is not None)


def _first_dependent(rows: Tensor, size: int) -> tuple[int, ...] | None:
    """The first dependent subset of this size: floats prove what they can, and exact elimination decides the rest."""
    wide = rows.detach().cpu().double()
    wide = wide / power_of_two(wide[:, None, :])[:, None]  # no rescaling of a point changes anything
    subsets = itertools.combinations(range(len(rows)), size)
    while some := list(itertools.islice(subsets, AT_ONCE)):
        for place in (~_proved_independent(wide, torch.tensor(some))).nonzero().flatten().tolist():
            if exact_rank(rows[list(some[place])]) < size:
                return some[place]
    return None


def _proved_independent(
    rows: Float[Tensor, "points features"], subsets: Int[Tensor, "subsets size"]
) -> Bool[Tensor, "subsets"]:
    """Whether a matrix R is at hand for which A R is so near to the identity that A must have full rank.

    Any R will do, so that only the last product is bounded; numbers that were widened or scaled are off by less than
    the unit of rounding, or below the smallest normal number.
    """
    chosen = rows[subsets]  # (subsets, size, features)
    identity = torch.eye(subsets.shape[-1], dtype=rows.dtype)
    q, r = torch.linalg.qr(chosen.mT)
    inverse = q @ torch.linalg.solve_triangular(r.mT, identity.expand_as(r), upper=False)
    lost = 2 * gamma(rows.shape[-1] + 4) * ((chosen.abs() + torch.finfo(rows.dtype).tiny) @ inverse.abs())
    off = (chosen @ inverse - identity).abs() + lost
    return off.sum(-1).amax(-1) < 0.5  # and False where there is no number
