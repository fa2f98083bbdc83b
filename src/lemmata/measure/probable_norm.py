r"""The spectral norm from a random start: a bound that holds with any probability asked for, without cubic cost."""

import math
from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.definiteness import EPS
from lemmata.certified.rounding import form, power_of_two, scaled_down, scaled_up
from lemmata.marks import system
from lemmata.measure.lanczos import largest_ritz_pair
from lemmata.measure.spectral import SpectralNormBounds, length_at_least
from lemmata.validate import matrices

__all__ = ["probable_spectral_norm"]

STARTS = range(3, 9)  # independent ones, that cost little more than one: reading the matrix is what takes time
ROUNDED = 0.1  # the share of a failure that rounding may cause
CACHED = 1 << 17  # numbers of a matrix at a time, for each thread


def krylov_miss_probability(size: int, steps: int, error: float) -> float:
    r"""How likely Lanczos's iteration from a random vector misses the largest eigenvalue by more than an error.

    $$ P\big(\theta_k < (1 - \varepsilon)\,\lambda_{\max}\big) \le \sqrt{\frac{2n}{\pi}} \Big/
       T_{k-1}\Big(\frac{1 + \varepsilon}{1 - \varepsilon}\Big) $$

    For every positive semidefinite matrix of this size, whatever its spectrum; $T$ is Chebyshev's polynomial. Proof: if
    all quotients in the space are between 0 and $c = (1-\varepsilon)\lambda_{\max}$, then $T_{k-1}(2G/c - I)\,b$, which
    lies in it, is no longer than $b$. But its component along the top eigenvector is that of $b$ times the $T_{k-1}$
    above; so that of $b$ is as small as a random direction hardly ever has it.

    Claims: linalg.spectral_norm
    Source: after J. Kuczynski and H. Wozniakowski, Estimating the largest eigenvalue by the power and Lanczos
        algorithms with a random start (1992), whose bound is larger by the root of $(1 - \varepsilon)/\varepsilon$.

    >>> round(krylov_miss_probability(size=4096, steps=60, error=0.02), 8)
    5.16e-06
    """
    validate.count("size", size)
    validate.count("steps", steps)
    if not 0 < validate.finite_number("error", error) < 1:
        raise ValueError(f"error must lie between 0 and 1, got {error}")
    degree = steps - 1
    # The logarithm of Chebyshev's polynomial beyond 1, which itself would overflow.
    angle = degree * 2 * math.atanh(math.sqrt(error))  # acosh of the argument, which would be rounded so near 1
    chebyshev = angle + math.log1p(math.exp(-2 * angle)) - math.log(2)
    logarithm = 0.5 * math.log(2 * size / math.pi) - chebyshev
    # Above what rounding of a logarithm down to -700 may cost, and never 0.
    return min(1.0, math.nextafter(math.exp(logarithm) * (1 + 1e-12), math.inf))


def krylov_steps(size: int, error: float, failure: float = 1e-9) -> int:
    r"""The number of steps after which the largest eigenvalue is missed with at most this probability.

    $$ k = O\Big(\frac{1}{\sqrt\varepsilon} \log\frac{n}{\delta}\Big) $$

    After as many steps as the matrix has rows there is nothing left to miss.

    Claims: linalg.spectral_norm

    >>> krylov_steps(size=4096, error=0.02)
    91
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

    For every matrix; the probability is that of the random starts, which must not depend on the matrix. It multiplies
    by vectors alone, so that it also serves where no factorisation fits. `certified_spectral_norm` proves its bound
    and makes it as tight as rounding permits, at cubic cost.

    The theorem speaks of exact arithmetic. In double precision the space is that of a matrix which differs from
    $A^\top A$ by some $\varphi\,\|A\|^2$ that depends on the start; then a start misses if its component along the top
    vector is below $1/T_{k-1} + 2\varphi/\varepsilon$, as the recurrence of Chebyshev's polynomials shows term by term.
    So there are three or more independent starts, of which all must miss: each may with the root of the probability,
    a tenth of it by rounding. Where the tolerance is too small for eight of them, the bounds are further apart.

    Shapes:
        matrix: (..., rows, columns)    returns: as for `certified_spectral_norm`; each matrix has its own starts

    Claims: linalg.spectral_norm

    >>> bounds = probable_spectral_norm(torch.diag(torch.tensor([3.0, -4.0])))
    >>> round(bounds.lower.item(), 4), round(bounds.upper.item(), 4)
    (4.0, 4.04)
    """
    matrices("matrix", matrix)
    validate.positive("tolerance", tolerance)
    if not 0 < validate.finite_number("failure", failure) < 1:
        raise ValueError(f"failure must lie between 0 and 1, got {failure}")
    size = power_of_two(matrix.detach()).double()
    # Only numbers whose fourth powers might not be numbers are scaled.
    unit = torch.where((size > 2.0**-200) & (size < 2.0**200), 1.0, size)
    wide = matrix.shape[-1] > matrix.shape[-2]  # both Gram matrices have the same norm; this one is smaller
    tall = matrix.detach().mT if wide else matrix.detach()
    batch, (rows, columns) = tall.shape[:-2], tall.shape[-2:]
    blocks = _row_blocks(tall.reshape(-1, rows, columns), unit.reshape(-1, 1, 1))
    apart, starts, steps, lost = _iteration_plan(rows, columns, tolerance, failure)
    start = torch.randn(math.prod(batch), starts, columns, generator=generator, dtype=unit.dtype, device=unit.device)

    def gram(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        for part in blocks():  # each serves twice while it is in the cache, so that the matrix is read once
            out.baddbmm_(x @ part.mT, part)
        return out

    found = largest_ritz_pair(gram, start, steps, generator=generator)
    right = found.vector[range(len(start)), found.value.argmax(-1)]
    products = [((part @ right[..., None])[..., 0], part.square().sum((-2, -1))) for part in blocks()]
    image, right = torch.cat([image for image, _ in products], dim=-1).reshape(*batch, rows), right.reshape(*batch, -1)
    length = torch.linalg.vector_norm(image, dim=-1)
    frobenius = 1.01 * torch.stack([square for _, square in products]).sum(0).sqrt().reshape(batch)
    lower = length_at_least(length, rows, columns, frobenius)
    upper = (1 + apart) * (1 + 4 * lost) * (length * (1 + (rows + 8) * EPS) + columns * EPS * frobenius)
    left = torch.nn.functional.normalize(image, dim=-1, eps=torch.finfo(image.dtype).tiny)
    left, right = (right, left) if wide else (left, right)
    value = form(matrix, left, right, size)
    return SpectralNormBounds(scaled_down(lower, unit), scaled_up(upper, unit), left, right, value)


def _row_blocks(
    matrix: Float[Tensor, "batch rows columns"], unit: Float[Tensor, "batch 1 1"]
) -> Callable[[], Iterator[Float[Tensor, "batch some columns"]]]:
    """Some rows at a time, in double precision and divided by their power of two, in a copy that stays in the cache."""
    size = max(1, CACHED * torch.get_num_threads() // (matrix.numel() // matrix.shape[-2]))
    if size >= matrix.shape[-2] or matrix.device.type != "cpu":
        whole = matrix.double() / unit
        return lambda: iter([whole])
    copy = torch.empty_like(matrix[:, :size], dtype=torch.float64, memory_format=torch.contiguous_format)
    pieces = [(rows, copy[:, : rows.shape[-2]]) for rows in matrix.split(size, dim=-2)]
    ordinary = bool((unit == 1).all())

    def blocks() -> Iterator[Tensor]:
        for rows, place in pieces:
            place.copy_(rows)
            yield place if ordinary else place.div_(unit)

    return blocks


def _iteration_plan(rows: int, columns: int, tolerance: float, failure: float) -> tuple[float, int, int, float]:
    """How far apart the bounds are, the number of starts and of steps, and the share of A^T A that rounding may be.

    A product with A^T A is wrong by (rows + columns) u |A|_F |A|, making an image orthogonal to k vectors, twice, by
    4 n u sqrt(k) times its length, and a combination of k images by sqrt(k) times that; twice as much is allowed.
    """
    error, starts = 1 - (1 + tolerance) ** -2, STARTS[0]  # the norm is the root of the eigenvalue
    while True:
        chance = failure ** (1 / starts)
        steps = krylov_steps(columns, error, (1 - ROUNDED) * chance)
        lost = EPS * math.sqrt(steps) * ((rows + columns) * math.sqrt(columns) + 4 * columns * math.sqrt(steps))
        least = math.sqrt(2 * columns / math.pi) * 2 * lost / (ROUNDED * chance)
        if steps == columns or error >= least:  # a whole space misses nothing
            return (1 - error) ** -0.5 - 1, starts, steps, lost
        error, starts = (error, starts + 1) if starts < STARTS[-1] else (2 * error, starts)
