r"""Norms of vectors and matrices that neither overflow nor vanish where the norm itself does not."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.validate import matrices

__all__ = []  # torch has norms; these are for certificates, whose numbers may be tiny or huge

EXACT = 8  # exponent up to which no power of an entry between 1 and 2 leaves the range of a half


def p_norm(x: Float[Tensor, "..."], p: int | float = 2.0, dim: int = -1) -> Float[Tensor, "..."]:
    r"""The p-norm along one axis, for every $p$ from 0 (the number of entries that are not zero) to infinity.

    $$ \|x\|_p = \Big(\sum_i |x_i|^p\Big)^{1/p}, \qquad \|x\|_\infty = \max_i |x_i|, \qquad
       \|x\|_0 = |\{i : x_i \ne 0\}| $$

    A norm for $p \ge 1$ only: below 1 the triangle inequality fails, and the count does not scale with $x$.

    Shapes:
        x: (..., d, ...)    returns: x without the axis `dim`

    Claims: norms.lp, norms.chain
    Differs: torch.linalg.vector_norm overflows where a power of an entry does; here entries are divided by a power of
        two first, which rounds nothing, so that the norm is finite whenever it can be represented. For $p > 8$, where
        powers of 2 would overflow, they are divided by the largest one.

    >>> p_norm(torch.tensor([3.0, -4.0])), p_norm(torch.tensor([3.0, -4.0]), p=1), p_norm(torch.tensor([3e30, -4e30]))
    (tensor(5.), tensor(7.), tensor(5.0000e+30))
    """
    x = validate.floating("x", x)
    if p != math.inf and validate.finite_number("p", p) < 0:
        raise ValueError(f"p must be >= 0 or infinity, got {p}")
    _checked_axis(x, dim)
    if p in (0, math.inf):
        return torch.linalg.vector_norm(x, p, dim=dim)
    largest = x.detach().abs().amax(dim, keepdim=True)
    if p <= EXACT:
        size = torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 1)
    else:
        size = torch.where(largest == 0, torch.ones_like(largest), largest)  # zeros stay zero at any size
    return torch.linalg.vector_norm(x / size, p, dim=dim) * size.squeeze(dim)


def frobenius_norm(matrix: Float[Tensor, "*batch rows columns"]) -> Float[Tensor, "*batch"]:
    r"""The Frobenius norm: the length of a matrix read as one long vector.

    $$ \|A\|_F = \sqrt{\sum_{ij} |A_{ij}|^2} = \sqrt{\mathrm{Tr}(A^\top A)} = \sqrt{\sum_i \sigma_i^2} $$

    Shapes:
        matrix: (..., rows, columns)    returns: (...)

    Claims: linalg.frobenius_definition, linalg.frobenius_trace, linalg.frobenius_singular, linalg.frobenius_orthogonal

    >>> frobenius_norm(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(5.)
    """
    return p_norm(matrices("matrix", matrix).flatten(-2))


def _checked_axis(x: Tensor, dim: int) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"dim must be an integer, got {type(dim).__name__}")
    if not -x.ndim <= dim < x.ndim:
        raise ValueError(f"dim must name an axis of x, got {dim} for shape {tuple(x.shape)}")
