r"""The linear systems of Gaussian processes: Cholesky with least jitter, and conjugate gradients with a certificate."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.certified.rounding import gamma
from lemmata.foundations.linear_algebra.woodbury import DiagonalPlusLowRank

__all__ = []  # for Gaussian processes

Product = Callable[[Tensor], Tensor]
EPS = torch.finfo(torch.float64).eps


class Factored(NamedTuple):
    """The lower triangle of a covariance, and what had to be added to its diagonal for it."""

    cholesky: Float[Tensor, "n n"]
    jitter: float


def factored(gram: Float[Tensor, "n n"], noise: float = 0.0, size: float = 0.0) -> Factored:
    r"""The Cholesky factor of $K + (\text{noise} + \text{jitter})I$ in float64, with no jitter where none is needed.

    Rounding of the entries and of the factorisation moves eigenvalues by about $n\epsilon$ times the largest entry of
    the diagonal. A pivot below that has no digit that is right: then four times as much is added, and more only if that
    does not do, up to what the bound for any order of summation asks for (Higham, theorem 10.3), $n$ times that.
    `size` is that of the terms which cancelled in the diagonal, where there were any.
    """
    n = len(gram)
    largest = max(float(gram.diagonal().max()) + noise, size)
    rounding = n * EPS * largest
    jitter = 0.0
    while jitter <= 4 * n * rounding:
        shifted = gram.clone()
        shifted.diagonal().add_(noise + jitter)
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if not failed and float(factor.diagonal().min()) ** 2 > rounding:
            return Factored(factor, jitter)
        jitter = 4 * max(jitter, rounding)
    raise ValueError(_indefinite_message(gram, noise, jitter))


def _indefinite_message(gram: Tensor, noise: float, jitter: float) -> str:
    sizes = gram.diagonal()
    apart = sizes[:, None] + sizes - 2 * gram
    apart.fill_diagonal_(torch.inf)
    first, second = divmod(int(apart.argmin()), len(gram))
    nearest = f"points {min(first, second)} and {max(first, second)} are nearest" if len(gram) > 1 else "of one point"
    return f"kernel must be positive semidefinite, but fails with noise {noise:.3g} and jitter {jitter:.3g} ({nearest})"


# --- Without a factor ---


class Solved(NamedTuple):
    """A solution, what is left of the right sides (norms with an allowance for rounding), and the steps it took."""

    solution: Float[Tensor, "n columns"]
    residual: Float[Tensor, "columns"]
    steps: int


def pivoted_cholesky(
    diagonal: Float[Tensor, "n"], column: Callable[[int], Float[Tensor, "n"]], rank: int
) -> Float[Tensor, "n rank"]:
    """A factor of low rank from the columns of a matrix that explain most of its diagonal, the largest rest first."""
    rest, parts = diagonal.clone(), [diagonal.new_zeros(len(diagonal), 0)]
    for _ in range(min(rank, len(diagonal))):
        at = int(rest.argmax())
        if float(rest[at]) <= len(diagonal) * EPS * float(diagonal.max()):
            break
        found = torch.cat(parts, 1)  # (n, so many)
        fresh = (column(at) - found @ found[at]) / rest[at].sqrt()
        rest = (rest - fresh.square()).clamp(min=0.0)
        rest[at] = 0.0
        parts = [found, fresh[:, None]]
    return torch.cat(parts, 1)


def conjugate_gradients(
    product: Product,
    right: Float[Tensor, "n columns"],
    low_rank: Float[Tensor, "n rank"],
    noise: float,
    size: float,
    tolerance: Float[Tensor, "columns"],
    max_steps: int,
) -> Solved:
    r"""Solve $(K + \sigma^2 I)s = b$ for several columns, until what is left of each is at most its tolerance.

    `product` multiplies by $K + \sigma^2 I$, whose entries are at most `size`; the preconditioner is the same with
    `low_rank` in place of $K$. The residual is computed anew from the solution at the end, and what rounding may hide
    in it is added: $\gamma_{n+64}(\text{size}\cdot\sqrt n\,\|s\|_1 + \|b\|)$. Where it stays above ten tolerances, this
    is an ArithmeticError.
    """
    precondition = DiagonalPlusLowRank(right.new_full((len(right),), noise), low_rank, low_rank.mT.contiguous())
    solution, rest = torch.zeros_like(right), right.clone()
    toward = precondition.solve(rest)
    way, inner = toward, (rest * toward).sum(0)
    steps = 0
    while steps < max_steps and bool((rest.norm(dim=0) > tolerance).any()):
        image = product(way)
        curved = (way * image).sum(0)
        length = torch.where(curved > 0, inner / curved, 0.0)
        solution, rest = solution + length * way, rest - length * image
        toward = precondition.solve(rest)
        before, inner = inner, (rest * toward).sum(0)
        way = toward + torch.where(before > 0, inner / before, 0.0) * way
        steps += 1
    measured = (right - product(solution)).norm(dim=0)
    hidden = gamma(len(right) + 64) * (size * len(right) ** 0.5 * solution.norm(1, dim=0) + right.norm(dim=0))
    missed = (measured / tolerance.clamp(min=torch.finfo(right.dtype).tiny)).max()
    if not float(missed) <= 10:
        told = f"conjugate gradients left {float(missed):.2g} times the tolerance after {steps} steps"
        raise ArithmeticError(f"{told}: raise noise, max_steps or rank, or use fewer points")
    return Solved(solution, measured + hidden, steps)
