r"""The spectral norm between two proved bounds, without a singular value decomposition."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.definiteness import EPS, cholesky_floor
from lemmata.certified.norms import p_norm
from lemmata.certified.rounding import form, power_of_two, scaled_down, scaled_up
from lemmata.marks import system
from lemmata.measure.lanczos import largest_ritz_pair
from lemmata.validate import matrices

__all__ = ["SpectralNormBounds", "certified_spectral_norm"]

# Steps of Lanczos; 80 to 90 suffice for the edge of a random 4,096 x 4,096 matrix.
MAX_STEPS = 300
STRIP = 512  # columns at a time, for speed
LARGE = 1024  # columns from which the search waits for memory, and is done in single precision


@dataclass(frozen=True, eq=False)
class SpectralNormBounds:
    r"""The answer of `certified_spectral_norm`: two bounds on $\|A\|_2$, with the vectors that show the lower one.

    $$ \text{lower} \le \|A\|_2 \le \text{upper}, \qquad \text{lower} \le \frac{\|A v\|}{\|v\|}, \qquad
       \text{upper}^2 I - A^\top A \succeq 0 $$

    `right` is the unit vector $v$, `left` the direction of $Av$; both bounds and both vectors are float64. `value` is
    $u^\top A v$ in the dtype of the matrix; its derivative $u v^\top$ is that of the norm where the largest singular
    value is simple.

    Claims: linalg.spectral_norm

    >>> bounds = certified_spectral_norm(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))  # whose eigenvalues are all zero
    >>> round(bounds.lower.item(), 9), round(bounds.upper.item(), 5)
    (1.0, 1.0)
    """

    lower: Float[Tensor, "*batch"]
    upper: Float[Tensor, "*batch"]
    left: Float[Tensor, "*batch rows"]
    right: Float[Tensor, "*batch columns"]
    value: Float[Tensor, "*batch"]


@system("spectral_norm", title="Spectral norm with a certificate", kind="function")
def certified_spectral_norm(
    matrix: Float[Tensor, "*batch rows columns"], tolerance: int | float = 1e-6
) -> SpectralNormBounds:
    r"""The largest singular value between two bounds that hold whatever the iteration did.

    $$ \|A\|_2 = \max_{\|x\|=1} \|Ax\|_2 = \sigma_1(A) = \sqrt{\lambda_{\max}(A^\top A)} $$

    Lanczos's iteration on $A^\top A$ finds a vector $v$; $\|Av\|/\|v\|$ is the lower bound, for any vector is one.
    That alone proves nothing from above: a small residual says that some singular value is near, never that no larger
    one exists. The upper bound is a number $s$ for which the Cholesky factorisation of $s^2 I - A^\top A$ ran to its
    end, with all rounding added; if it breaks down, because the iteration missed the largest value, $s$ is raised
    until it does not. The bounds are about `tolerance` apart, or by as much as rounding costs: $n^2 \cdot 10^{-16}$.

    Proved on the premise that products and factorisation are the classical algorithms in IEEE double precision, in any
    order of summation. Other precisions are widened first, and a power of two is taken out, so that the bounds hold at
    every scale: where they are subnormal they are rounded outwards, and only the upper one may be infinite.

    Shapes:
        matrix: (..., rows, columns)    returns: bounds and value (...), left (..., rows), right (..., columns)

    Claims: linalg.spectral_norm
    Source: as for `certify_definiteness`.
    Differs: torch.linalg.matrix_norm(A, 2) computes all singular values to full precision; this is several times
        faster for large matrices and says how far off it may be.

    >>> bounds = certified_spectral_norm(torch.diag(torch.tensor([3.0, -4.0])))
    >>> bool(bounds.lower <= 4 <= bounds.upper), bounds.value
    (True, tensor(4.))
    """
    matrices("matrix", matrix)
    validate.positive("tolerance", tolerance)
    plain = matrix.detach() if matrix.itemsize >= 4 else matrix.detach().float()
    unit = power_of_two(plain).double()
    scaled = plain.to(torch.float64, copy=True).div_(unit[..., None, None])
    wide = scaled.shape[-1] > scaled.shape[-2]  # both Gram matrices have the same norm; this one is smaller
    scaled = scaled.mT if wide else scaled
    rows, columns = scaled.shape[-2:]
    single = columns >= LARGE and tolerance >= 1e-6
    negative, gram = _gram_products(scaled, torch.float32 if single else torch.float64)
    frobenius = (-negative.diagonal(dim1=-2, dim2=-1).sum(-1)).sqrt()
    right = _top_eigenvector(gram, tolerance)
    image = (scaled @ right[..., None])[..., 0]
    lower = length_at_least(p_norm(image), rows, columns, frobenius)
    upper = _norm_at_most(negative, lower, rows, frobenius, tolerance)
    # The Frobenius norm bounds the spectral norm too, sharply for matrices of rank one.
    upper = torch.minimum(upper, frobenius * (1 + (rows * columns + 4) * EPS))
    left = image / p_norm(image).clamp(min=torch.finfo(image.dtype).tiny)[..., None]
    left, right = (right, left) if wide else (left, right)
    value = form(matrix, left, right, unit)
    return SpectralNormBounds(scaled_down(lower, unit), scaled_up(upper, unit), left, right, value)


def _gram_products(
    matrix: Float[Tensor, "*batch rows columns"], dtype: torch.dtype
) -> tuple[Float[Tensor, "*batch columns columns"], Float[Tensor, "*batch columns columns"]]:
    """The products of all columns, each pair once: their negatives below the diagonal, and all in another dtype."""
    size = matrix.shape[-1]
    negative = matrix.new_empty(*matrix.shape[:-2], size, size)  # of which nobody reads what is above the diagonal
    gram = torch.empty_like(negative, dtype=dtype)
    for first in range(0, size, STRIP):
        end = first + STRIP
        strip = matrix[..., first:].mT @ matrix[..., first:end]
        narrow = strip.to(dtype)
        gram[..., first:, first:end], gram[..., first:end, first:] = narrow, narrow.mT
        negative[..., first:, first:end] = strip.neg_()
    return negative, gram


def _top_eigenvector(gram: Float[Tensor, "*batch n n"], tolerance: float) -> Float[Tensor, "*batch n"]:
    """About the eigenvector of the largest eigenvalue, from a fixed start.

    Nothing is proved here: a poor answer makes the bounds wide, not wrong.
    """
    generator = torch.Generator(gram.device).manual_seed(0)
    start = torch.randn(gram.shape[:-1], generator=generator, dtype=gram.dtype, device=gram.device)
    # The error of the value is about the square of the residual over the gap to the next.
    accuracy = tolerance**0.75
    found = largest_ritz_pair(lambda x: (gram @ x[..., None])[..., 0], start, MAX_STEPS, accuracy, generator)
    return torch.nn.functional.normalize(found.vector.double(), dim=-1)


def length_at_least(length: Tensor, rows: int, columns: int, frobenius: Tensor) -> Tensor:
    """A bound below |Av| for a unit vector v: each entry is a sum of n products, wrong by less than n u |row|."""
    lost = columns * EPS * frobenius
    # The lengths of Av and of v are sums of at most m squares.
    found = length * (1 - (rows + 8) * EPS)
    return (found - lost).clamp(min=0.0)


def _norm_at_most(negative: Tensor, lower: Tensor, rows: int, frobenius: Tensor, tolerance: float) -> Tensor:
    """A bound above the norm, from the first factorisation of s^2 I - A^T A that succeeds."""
    # Each entry of A^T A is a sum of m products, wrong by less than m u |column||column|; a few more u for the rest,
    # also for subnormal products: the Frobenius norm is at least 1.
    lost = (rows + 8) * EPS * frobenius**2
    slack = ((1 + tolerance) ** 2 - 1) * lower**2 + lost
    return (lost - cholesky_floor(negative, -(lower**2), slack)).sqrt()
