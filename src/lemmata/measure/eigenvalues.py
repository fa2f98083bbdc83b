r"""The ends of the spectrum of a symmetric operator, with how far from eigenvalues they can be."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.lanczos import KrylovSpace, krylov_space, measured_pair

__all__ = ["EigenPairs", "extreme_eigenpairs"]


class EigenPairs(NamedTuple):
    r"""Approximate eigenvalues, their unit vectors as rows, and the lengths $\|Hx - \theta x\|$ of the residuals.

    Some eigenvalue is at most as far from each value as its residual. Where `certified` is true this includes what
    rounding did to the products; where it is not, that comes on top. `products` counts all, also those that measure.
    """

    values: Tensor
    vectors: Tensor
    residuals: Tensor
    products: int
    certified: bool


@system("eigenvalues", title="Ends of a spectrum with residuals", kind="function")
def extreme_eigenpairs(
    operator: Callable[[Tensor], Tensor],
    start: Float[Tensor, " n"] | None = None,
    count: int = 1,
    end: str = "largest",
    accuracy: int | float = 1e-3,
    steps: int = 100,
    rounding: int | float | None = None,
    generator: torch.Generator | None = None,
) -> EigenPairs:
    r"""The largest, the smallest, or the eigenvalues of largest magnitude of a symmetric operator.

    $$ |\lambda - \theta| \le \|Hx - \theta x\| \quad \text{for some eigenvalue } \lambda \text{ of } H, \qquad
       \theta = x^\top H x, \; \|x\| = 1 $$

    Lanczos's iteration, all vectors kept orthogonal, runs until the residuals are estimated to be at most `accuracy`
    times the largest size of a value, but at most for `steps` steps. Values and residuals are then measured in double
    precision at the vectors that are returned. The residual bounds the distance to *some* eigenvalue; that it is the
    outermost one, nothing proves, but a random start misses it only where the iteration ends after few steps. One that
    comes several times may be found only once.

    `rounding` is a proved bound on $\|\mathrm{fl}(Hx) - Hx\|$ for unit vectors, where one is known: for a matrix
    $A$ it is $\gamma_n \|A\|_F$. Only with it the pairs are `certified`. For products with the curvature of a network
    no such bound is known.

    Shapes:
        operator: from (..., n) to (..., n), start: (n,)    returns: values (count,), vectors (count, n)

    Source: C. Lanczos 1950; B. Parlett, The symmetric eigenvalue problem (1980).

    >>> diagonal = torch.tensor([-4.0, 1.0, 2.0, 3.0])
    >>> extreme_eigenpairs(lambda x: diagonal * x, torch.ones(4), count=2).values
    tensor([3., 2.])
    >>> extreme_eigenpairs(lambda x: diagonal * x, torch.ones(4), end="magnitude").values
    tensor([-4.])
    """
    start = first_vectors(operator, start, generator)
    wanted = min(validate.count("count", count), len(start))
    validate.one_of("end", end, ("largest", "smallest", "magnitude"))
    validate.positive("accuracy", accuracy)
    most = max(validate.count("steps", steps), wanted)
    if rounding is not None:
        validate.number("rounding", rounding, least=0.0)

    def chosen(values: Tensor) -> Tensor:
        keys = {"largest": values, "smallest": -values, "magnitude": values.abs()}[end]
        return keys.argsort(descending=True)[:wanted]

    def done(space: KrylovSpace) -> bool:
        if len(space.tridiagonal) < wanted:
            return False
        values, vectors = torch.linalg.eigh(space.tridiagonal)
        residuals = space.remainder * vectors[-1, chosen(values)].abs()
        return bool((residuals <= accuracy * values.abs().max()).all())

    space = krylov_space(operator, start, most, generator, done)
    values, vectors = torch.linalg.eigh(space.tridiagonal)
    best = chosen(values)
    found = vectors[:, best].mT.to(start) @ space.basis  # (count, n)
    found = found / torch.linalg.vector_norm(found, dim=-1, keepdim=True)
    pairs = measured_pair(operator, found, lost_at_most=float(rounding or 0.0))
    return EigenPairs(*pairs, products=len(values) + len(best), certified=rounding is not None)


def first_vectors(
    operator: Callable[[Tensor], Tensor], start: Tensor | None, generator: torch.Generator | None, *block: int
) -> Tensor:
    """The start that is given, or a random one for an operator that says its size."""
    if start is None:
        draw = getattr(operator, "start", None)
        if draw is None:
            raise ValueError("start must be given for an operator that does not say its size: use torch.randn(n)")
        start = draw(*block, generator=generator)
    assert start is not None
    return start if block else validate.vector("start", start)
