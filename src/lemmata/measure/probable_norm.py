r"""The spectral norm from a random start: a bound that holds with any probability asked for, without cubic cost."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.lanczos import largest_ritz_pair
from lemmata.measure.rounding import power_of_two
from lemmata.measure.spectral import SpectralNormBounds, length_at_least
from lemmata.validate import matrices

__all__ = ["krylov_miss_probability", "krylov_steps", "probable_spectral_norm"]

COPIED = 1 << 18  # numbers at a time, so that they stay in the cache


def krylov_miss_probability(size: int, steps: int, error: float) -> float:
    r"""How likely Lanczos's iteration from a random vector misses the largest eigenvalue by more than an error.

    $$ P\big(\theta_k < (1 - \varepsilon)\,\lambda_{\max}\big) \le
       \sqrt{\frac{2n}{\pi} \cdot \frac{1 - \varepsilon}{\varepsilon}} \Big/
       T_{k-1}\Big(\frac{1 + \varepsilon}{1 - \varepsilon}\Big) $$

    For every positive semidefinite matrix of this size, whatever its spectrum; $T$ is Chebyshev's polynomial. Proof: if
    the best quotient in the space is below $c = (1-\varepsilon)\lambda_{\max}$, so is that of $T_{k-1}(2G/c - I)\,b$,
    which leaves $b$ so small a component along the top eigenvector that a random direction hardly ever has it.

    Claims: linalg.spectral_norm
    Source: after J. Kuczynski and H. Wozniakowski, Estimating the largest eigenvalue by the power and Lanczos
        algorithms with a random start (1992).

    >>> round(krylov_miss_probability(size=4096, steps=60, error=0.02), 8)
    3.614e-05
    """
    validate.count("size", size)
    validate.count("steps", steps)
    if not 0 < validate.finite_number("error", error) < 1:
        raise ValueError(f"error must lie between 0 and 1, got {error}")
    degree = steps - 1
    # The logarithm of Chebyshev's polynomial beyond 1, which itself would overflow.
    angle = degree * math.acosh((1 + error) / (1 - error))
    chebyshev = angle + math.log1p(math.exp(-2 * angle)) - math.log(2)
    return min(1.0, math.exp(0.5 * math.log(2 * size / math.pi * (1 - error) / error) - chebyshev))


def krylov_steps(size: int, error: float, failure: float = 1e-9) -> int:
    r"""The number of steps after which the largest eigenvalue is missed with at most this probability.

    $$ k = O\Big(\frac{1}{\sqrt\varepsilon} \log\frac{n}{\delta\,\varepsilon}\Big) $$

    After as many steps as the matrix has rows there is nothing left to miss.

    Claims: linalg.spectral_norm

    >>> krylov_steps(size=4096, error=0.02)
    97
    """
    if not 0 < validate.finite_number("failure", failure) < 1:
        raise ValueError(f"failure must lie between 0 and 1, got {failure}")
    few, many = 0, validate.count("size", size)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if krylov_miss_probability(size, middle, error) <= failure else (middle, many)
    return many


@system("probable_spectral_norm", title="Spectral norm from a random start", kind="function")
def probable_spectral_norm(
    matrix: Float[Tensor, "*batch rows columns"],
    tolerance: int | float = 1e-2,
    failure: float = 1e-9,
    generator: torch.Generator | None = None,
) -> SpectralNormBounds:
    r"""Bounds on the largest singular value, of which the upper one may fail with a probability you choose.

    $$ \|A v\| \le \|A\|_2 \le (1 + \text{tolerance})\,\|A v\| \quad
       \text{with probability at least } 1 - \text{failure} $$

    For every matrix; the probability is that of the random start, which must not depend on the matrix. It multiplies
    by vectors alone, so that it also serves where no factorisation fits. `certified_spectral_norm` proves its bound
    and makes it as tight as rounding permits, at cubic cost. Here the theorem speaks of exact arithmetic: tolerances
    from 1e-3 on are computed in single precision, whose rounding is some 1e-6 beside them, and smaller ones in double.

    Shapes:
        matrix: (..., rows, columns)    returns: as for `certified_spectral_norm`; each matrix has its own start

    Claims: linalg.spectral_norm

    >>> bounds = probable_spectral_norm(torch.diag(torch.tensor([3.0, -4.0])))
    >>> round(bounds.lower.item(), 4), round(bounds.upper.item(), 4)
    (4.0, 4.04)
    """
    matrices("matrix", matrix)
    validate.positive("tolerance", tolerance)
    plain = matrix.detach() if matrix.itemsize >= 4 else matrix.detach().float()
    unit = power_of_two(plain).double()
    # Only numbers whose squares might not be numbers are scaled: a copy takes as long as twenty steps.
    moderate = (unit > 2.0**-40) & (unit < 2.0**40)
    unit = torch.where(moderate, 1.0, unit)
    scaled = plain if moderate.all() else plain.double() / unit[..., None, None]
    working = scaled.float() if tolerance >= 1e-3 else scaled.double()
    wide = working.shape[-1] > working.shape[-2]  # both Gram matrices have the same norm; this one is smaller
    working = working.mT if wide else working

    def gram(x: Tensor) -> Tensor:
        return (working.mT @ (working @ x[..., None]))[..., 0]

    start = torch.randn(
        *working.shape[:-2], working.shape[-1], generator=generator, dtype=working.dtype, device=working.device
    )
    # The norm is the root of the eigenvalue.
    steps = krylov_steps(working.shape[-1], 1 - (1 + tolerance) ** -2, failure)
    right = torch.nn.functional.normalize(largest_ritz_pair(gram, start, steps).vector.double(), dim=-1)
    tall = scaled.mT if wide else scaled
    image = _product(tall, right)
    length = torch.linalg.vector_norm(image, dim=-1)
    frobenius = 1.01 * torch.linalg.matrix_norm(working).double()
    lower = length_at_least(length, tall.shape[-2], tall.shape[-1], frobenius)
    left = torch.nn.functional.normalize(image, dim=-1)
    left, right = (right, left) if wide else (left, right)
    value = (left.to(matrix) * (matrix @ right.to(matrix)[..., None])[..., 0]).sum(-1)
    return SpectralNormBounds(lower * unit, (1 + tolerance) * length * unit, left, right, value)


def _product(matrix: Tensor, vector: Tensor) -> Tensor:
    """The product in double precision, of which only some rows at a time are copied: the copies stay in the cache."""
    rows, columns = matrix.shape[-2:]
    size = max(1, COPIED // columns)
    copy, out = vector.new_empty(*matrix.shape[:-2], size, columns), vector.new_empty(matrix.shape[:-1])
    for first in range(0, rows, size):
        rest = matrix[..., first : first + size, :]
        part = copy[..., : rest.shape[-2], :].copy_(rest)
        out[..., first : first + size] = (part @ vector[..., None])[..., 0]
    return out
