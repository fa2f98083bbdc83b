r"""Norms of vectors and matrices, the constants between them, and Hölder's bound on inner products."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.validate import broadcast, fits, matrices

__all__ = ["p_norm", "norm_ratio_bound", "dual_exponent", "holder_bound", "frobenius_norm"]


@system("p_norm", title="p-norms of vectors", kind="function")
def p_norm(x: Float[Tensor, "..."], p: int | float = 2.0, dim: int = -1) -> Float[Tensor, "..."]:
    r"""The p-norm along one axis, for every $p$ from 0 (the number of entries that are not zero) to infinity.

    $$ \|x\|_p = \Big(\sum_i |x_i|^p\Big)^{1/p}, \qquad \|x\|_\infty = \max_i |x_i|, \qquad
       \|x\|_0 = |\{i : x_i \ne 0\}| $$

    A norm for $p \ge 1$ only: below 1 the triangle inequality fails, and the count does not scale with $x$.

    Shapes:
        x: (..., d, ...)    returns: x without the axis `dim`

    Claims: norms.lp, norms.chain
    Differs: torch.linalg.vector_norm overflows where a power of an entry does; here entries are divided by the
        largest one first, so that the norm is finite whenever it can be represented.

    >>> p_norm(torch.tensor([3.0, -4.0])), p_norm(torch.tensor([3.0, -4.0]), p=1), p_norm(torch.tensor([3e30, -4e30]))
    (tensor(5.), tensor(7.), tensor(5.0000e+30))
    """
    x = validate.floating("x", x)
    _exponent("p", p, least=0.0)
    _axis(x, dim)
    if p in (0, math.inf):
        return torch.linalg.vector_norm(x, p, dim=dim)
    largest = x.detach().abs().amax(dim, keepdim=True)
    size = torch.where(largest == 0, torch.ones_like(largest), largest)  # zeros stay zero at any size
    return torch.linalg.vector_norm(x / size, p, dim=dim) * size.squeeze(dim)


def norm_ratio_bound(p: int | float, q: int | float, dimension: int) -> float:
    r"""The smallest $C$ with $\|x\|_p \le C\,\|x\|_q$ for every $x \in \mathbb R^d$.

    $$ C = d^{\max(0,\, 1/p - 1/q)}, \qquad p, q \ge 1 $$

    Attained by constant vectors if $p < q$, and by multiples of basis vectors otherwise.

    Claims: norms.chain

    >>> norm_ratio_bound(1, 2, dimension=9), norm_ratio_bound(2, 1, dimension=9), norm_ratio_bound(2, torch.inf, 9)
    (3.0, 1.0, 3.0)
    """
    _exponent("p", p, least=1.0)
    _exponent("q", q, least=1.0)
    return float(validate.count("dimension", dimension) ** max(0.0, 1 / p - 1 / q))


def dual_exponent(p: int | float) -> float:
    r"""The exponent $q$ of the dual norm, with $1/p + 1/q = 1$.

    $$ q = \frac{p}{p - 1}, \qquad 1 \leftrightarrow \infty, \qquad
       \|y\|_q = \max_{\|x\|_p \le 1} \langle x, y\rangle $$

    Claims: geometry.cauchy_schwarz

    >>> dual_exponent(2), dual_exponent(1), dual_exponent(torch.inf), dual_exponent(3)
    (2.0, inf, 1.0, 1.5)
    """
    _exponent("p", p, least=1.0)
    if p == 1:
        return math.inf
    return float(p / (p - 1)) if p < math.inf else 1.0


def holder_bound(
    x: Float[Tensor, "*#batch d"], y: Float[Tensor, "*#batch d"], p: int | float = 2.0
) -> Float[Tensor, "*#batch"]:
    r"""Hölder's bound on an inner product; with $p = 2$ it is the inequality of Cauchy and Schwarz.

    $$ |\langle x, y\rangle| \le \|x\|_p\,\|y\|_q, \qquad \tfrac1p + \tfrac1q = 1 $$

    Shapes:
        x, y: (..., d)    returns: (...)

    Claims: geometry.cauchy_schwarz

    >>> holder_bound(torch.tensor([3.0, 4.0]), torch.tensor([1.0, 0.0]))
    tensor(5.)
    """
    _axis(validate.floating("x", x), -1)
    fits("y", y, (x.shape[-1],), like=x, whose="x")
    broadcast(x=tuple(x.shape), y=tuple(y.shape))
    return p_norm(x, p) * p_norm(y, dual_exponent(p))


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


def _exponent(name: str, value: int | float, least: float) -> None:
    if value != math.inf and validate.finite_number(name, value) < least:
        raise ValueError(f"{name} must be >= {least:g} or infinity, got {value}")


def _axis(x: Tensor, dim: int) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"dim must be an integer, got {type(dim).__name__}")
    if not -x.ndim <= dim < x.ndim:
        raise ValueError(f"dim must name an axis of x, got {dim} for shape {tuple(x.shape)}")
