r"""How many regions hyperplanes cut space into: exactly, for any position, and at most."""

import math
from fractions import Fraction

from jaxtyping import Shaped
from torch import Tensor

from lemmata import validate
from lemmata.certified.rounding import fractions
from lemmata.marks import system

__all__ = ["arrangement_regions", "most_regions"]


def most_regions(hyperplanes: int, dimensions: int) -> int:
    r"""The largest number of regions into which $m$ hyperplanes cut $\mathbb R^n$, which general position attains.

    $$ R(m) = \sum_{i=0}^{\min\{n,m\}} \binom mi $$

    Claims: relu.zaslavsky
    Source: T. Zaslavsky, Facing up to arrangements (1975).

    >>> most_regions(5, dimensions=2), most_regions(2, dimensions=3)
    (16, 4)
    """
    validate.count("hyperplanes", hyperplanes, least=0)
    validate.count("dimensions", dimensions)
    return sum(math.comb(hyperplanes, i) for i in range(min(dimensions, hyperplanes) + 1))


@system("arrangement_regions", title="Regions of a hyperplane arrangement", kind="function")
def arrangement_regions(weight: Shaped[Tensor, "hyperplanes n"], bias: Shaped[Tensor, "hyperplanes"]) -> int:
    r"""Into how many regions the hyperplanes $w_j^\top x + b_j = 0$ cut $\mathbb R^n$, whatever their position.

    $$ r(\mathcal A) = r(\mathcal A \setminus H) + r(\mathcal A^H) $$

    A hyperplane $H$ doubles those regions of the others that it meets, and these are the regions that the others leave
    on $H$ itself: an arrangement of one dimension less. Parallel, equal and concurrent hyperplanes are told apart in
    fractions, which stored numbers are. One that is nowhere or everywhere ($w = 0$) cuts nothing.

    Shapes:
        weight: (hyperplanes, n), bias: (hyperplanes,)    returns: an integer

    Claims: relu.zaslavsky
    Source: T. Zaslavsky, Facing up to arrangements (1975).

    >>> arrangement_regions(torch.tensor([[1, 0], [0, 1], [1, 1]]), torch.tensor([0, 0, 0]))  # three through one point
    6
    """
    if validate.tensor("weight", weight).ndim != 2 or validate.tensor("bias", bias).shape != weight.shape[:1]:
        shapes = f"{tuple(weight.shape)} and {tuple(bias.shape)}"
        raise ValueError(f"weight and bias must be (hyperplanes, n) and (hyperplanes,), got {shapes}")
    if not (weight.double().isfinite().all() and bias.double().isfinite().all()):
        raise ValueError("weight and bias must be finite, got NaN or infinity: remove these hyperplanes")
    rows = [[*normal, offset] for normal, offset in zip(fractions(weight), fractions(bias), strict=True)]
    return _count_regions({plane for row in rows if (plane := _normalized_row(row)) is not None})


Plane = tuple[Fraction, ...]


def _normalized_row(row: list[Fraction]) -> Plane | None:
    """The hyperplane with 1 as its first coefficient, by which equal ones are equal; None where there is none."""
    first = next((value for value in row[:-1] if value), None)
    return None if first is None else tuple(value / first for value in row)


def _count_regions(planes: set[Plane]) -> int:
    count, before = 1, []
    for plane in sorted(planes):
        count += _count_regions({cut for other in before if (cut := _restrict_plane(other, plane)) is not None})
        before.append(plane)
    return count


def _restrict_plane(other: Plane, plane: Plane) -> Plane | None:
    """What another hyperplane is on this one: its first coordinate that counts is expressed by the others."""
    pivot = next(index for index, value in enumerate(plane) if value)  # where the coefficient is 1
    row = [a - other[pivot] * b for a, b in zip(other, plane, strict=True)]
    return _normalized_row(row[:pivot] + row[pivot + 1 :])
