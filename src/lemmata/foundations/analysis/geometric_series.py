r"""Geometric series: finite sums, infinite sums, and what is left after some terms."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["geometric_remainder", "geometric_sum"]


@system("geometric_sum", title="Geometric series", kind="function")
def geometric_sum(
    first: int | float | Tensor, ratio: Float[Tensor, "..."], terms: int | None = None
) -> Float[Tensor, "..."]:
    r"""The sum of a geometric series, of all its terms or of the first n.

    $$ \sum_{k=0}^{\infty} a r^k = \frac{a}{1-r} \text{ for } |r| < 1, \qquad
       \sum_{k=0}^{n-1} a r^k = a\,\frac{1-r^n}{1-r} \text{ for } r \ne 1, \text{ and } na \text{ for } r = 1 $$

    Shapes:
        first: $a$, a number or a tensor; ratio: $r$, any shape; terms: n, or None for all    returns: broadcast shape

    Claims: calculus.geometric_series

    >>> geometric_sum(1.0, torch.tensor([0.5, -0.5])), geometric_sum(1.0, torch.tensor(2.0), terms=4)
    (tensor([2.0000, 0.6667]), tensor(15.))
    """
    validate.floating("ratio", ratio)
    if terms is None:
        _converges(ratio)
        return first / (1 - ratio)
    validate.count("terms", terms, least=0)
    gap = ratio - 1
    near = gap.abs() < 0.5  # there 1 - r^n would be lost to rounding
    small = torch.where(near & (gap != 0), gap, 0.25)  # not used where it is 0.25
    close = torch.expm1(terms * torch.log1p(small)) / small
    apart = (ratio**terms - 1) / torch.where(near, 1, gap)
    return first * torch.where(gap == 0, terms, torch.where(near, close, apart))


def geometric_remainder(first: int | float | Tensor, ratio: Float[Tensor, "..."], terms: int) -> Float[Tensor, "..."]:
    r"""What a convergent geometric series still adds after its first n terms.

    $$ \sum_{k=n}^{\infty} a r^k = \frac{a r^n}{1-r}, \qquad |r| < 1 $$

    Shapes:
        as for `geometric_sum`

    Claims: calculus.geometric_series

    >>> geometric_remainder(1.0, torch.tensor(0.5), terms=3)
    tensor(0.2500)
    """
    validate.floating("ratio", ratio)
    _converges(ratio)
    return first * ratio ** validate.count("terms", terms, least=0) / (1 - ratio)


def _converges(ratio: Tensor) -> None:
    if (ratio.abs() >= 1).any():
        worst = ratio.flatten()[ratio.abs().argmax()].item()
        raise ValueError(f"ratio must be in (-1, 1) for the series to converge, got {worst:g}: give terms= for a sum")
