r"""General position: no more dependence among points than their number forces, with the guilty subset if there is."""

import itertools
import math

import torch
from jaxtyping import Shaped
from torch import Tensor

from lemmata import validate
from lemmata.foundations.linear_algebra.exact_elimination import exact_rank
from lemmata.marks import system

__all__ = ["dependent_subset"]

MAX_SUBSETS = 20_000  # a second or two


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
    rows = torch.nn.functional.pad(points, (0, 1), value=1) if validate.flag("affine", affine) else points
    sizes = range(1, min(rows.shape) + 1)
    if sum(math.comb(len(rows), size) for size in sizes) > MAX_SUBSETS:
        raise ValueError(f"points must be fewer: {len(rows)} of them have more than {MAX_SUBSETS:,} subsets to test")
    subsets = (subset for size in sizes for subset in itertools.combinations(range(len(rows)), size))
    return next((subset for subset in subsets if exact_rank(rows[list(subset)]) < len(subset)), None)
