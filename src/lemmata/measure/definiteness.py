r"""Definiteness with a certificate: a proved floor under the smallest eigenvalue, and a vector that shows a ceiling."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.norms import frobenius_norm
from lemmata.measure.rounding import power_of_two
from lemmata.validate import symmetric

__all__ = ["DefinitenessCertificate", "certify_definiteness"]

EPS = torch.finfo(torch.float64).eps  # twice the unit of rounding


@dataclass(frozen=True, eq=False)
class DefinitenessCertificate:
    r"""The answer of `certify_definiteness`: two bounds on the smallest eigenvalue, with what proves them.

    $$ \text{floor} \le \lambda_{\min}(M) \le \text{ceiling}, \qquad
       M - \text{floor}\cdot I \succeq 0, \qquad \frac{x^\top M x}{\|x\|^2} \le \text{ceiling} $$

    `witness` is the unit vector $x$ of least curvature that was found; where the ceiling is below zero, it violates
    $x^\top M x \ge 0$, and anyone can multiply it out. Where the floor is above zero, a Cholesky factorisation of
    $M - \text{floor}\cdot I$ succeeds. Both bounds include all rounding. `curvature` is $x^\top M x$ in the dtype of
    the matrix; its derivative is that of the smallest eigenvalue where that is simple. Bounds and witness are float64.

    Claims: linalg.psd_definition, linalg.psd_eigenvalues

    >>> certificate = certify_definiteness(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    >>> bool(certificate.semidefinite), certificate.witness.abs(), certificate.curvature
    (False, tensor([0.7071, 0.7071], dtype=torch.float64), tensor(-1.0000))
    """

    floor: Float[Tensor, "*batch"]
    ceiling: Float[Tensor, "*batch"]
    witness: Float[Tensor, "*batch n"]
    curvature: Float[Tensor, "*batch"]
    tolerance: Float[Tensor, "*batch"]

    @property
    def definite(self) -> Bool[Tensor, "*batch"]:
        """Proved positive definite."""
        return self.floor > 0

    @property
    def semidefinite(self) -> Bool[Tensor, "*batch"]:
        """Not violated by more than the tolerance: positive semidefinite as far as these digits can tell."""
        return self.ceiling >= -self.tolerance


@system("definiteness", title="Definiteness with a certificate", kind="function")
def certify_definiteness(
    matrix: Float[Tensor, "*batch n n"], tolerance: int | float | None = None
) -> DefinitenessCertificate:
    r"""Decide whether a symmetric matrix is positive (semi-)definite, and prove it or show a vector that violates it.

    $$ M \succeq 0 \iff x^\top M x \ge 0\ \forall x \iff \lambda_i \ge 0\ \forall i, \qquad
       M \succ 0 \iff x^\top M x > 0\ \forall x \ne 0 $$

    The eigenvector of the smallest eigenvalue gives the ceiling. The floor is a number $t$ for which the Cholesky
    factorisation of $M - tI$ ran to its end in float64: then $M - tI$ is positive semidefinite but for a rounding
    error of at most $(n + 2)\,\epsilon\,\mathrm{Tr}(M - tI)$, which is subtracted. A semidefinite matrix that is
    singular cannot be told from a slightly indefinite one by rounded numbers: `semidefinite` allows a violation of
    `tolerance`, which defaults to the rounding $n\,\epsilon\,\|M\|_F$ of the dtype in which the matrix is stored.
    With `tolerance=0` any proved violation counts. For small matrices `definiteness_by_minors` decides exactly.

    Shapes:
        matrix: (..., n, n) symmetric    returns: bounds (...), witness (..., n)

    Claims: linalg.psd_definition, linalg.psd_eigenvalues, linalg.kernel_psd, linalg.rayleigh
    Source: N. Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.3; S. Rump, Verification of positive
        definiteness (2006). They hold for any order of summation, and in blocks, but not for fast multiplication.

    >>> proof = certify_definiteness(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> bool(proof.definite), round(proof.floor.item(), 12), round(proof.ceiling.item(), 12)
    (True, 1.0, 1.0)
    """
    symmetric("matrix", matrix)
    original, size = matrix, matrix.shape[-1]
    matrix = matrix.detach().double()
    unit = power_of_two(matrix)
    matrix = matrix / unit[..., None, None]
    matrix = matrix / 2 + matrix.mT / 2
    values, vectors = torch.linalg.eigh(matrix)
    witness = vectors[..., 0]
    # A form is a sum of n sums of n terms, of a vector of length 1 but for rounding: wrong by at most 3 (n + 2) u |M|.
    rounding = 2 * (size + 2) * EPS * frobenius_norm(matrix)
    ceiling = _form(matrix, witness) + rounding
    floor = cholesky_floor(matrix, values[..., 0], slack=rounding) - rounding
    curvature = _form(original, witness.to(original))
    if tolerance is None:
        allowed = size * torch.finfo(original.dtype).eps * frobenius_norm(matrix) * unit
    else:
        allowed = torch.full_like(unit, _not_negative(tolerance))
    return DefinitenessCertificate(floor * unit, ceiling * unit, witness, curvature, allowed)


def cholesky_floor(
    matrix: Float[Tensor, "*batch n n"], guess: Float[Tensor, "*batch"], slack: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """A number below every eigenvalue, proved by a factorisation at `slack` below the guess, or further down.

    The matrix is float64 with entries of size about 1; only its lower triangle is read.
    """
    slack = slack.clamp(min=torch.finfo(matrix.dtype).tiny)  # or a zero matrix would be tried at 0 for ever
    while True:
        floor = guess - slack
        shifted = matrix.clone()
        shifted.diagonal(dim1=-2, dim2=-1).sub_(floor[..., None])
        failed = torch.linalg.cholesky_ex(shifted).info > 0
        if not failed.any():
            break
        slack = torch.where(failed, 8 * slack, slack)
    # The factors multiply to within (n + 1) u Tr of what was factored, the shift rounds by u Tr more; u is EPS / 2.
    allowance = (matrix.shape[-1] + 2) * EPS
    return floor - allowance * shifted.diagonal(dim1=-2, dim2=-1).sum(-1)


def _not_negative(tolerance: int | float) -> int | float:
    if validate.finite_number("tolerance", tolerance) < 0:
        raise ValueError(f"tolerance must be >= 0, got {tolerance}")
    return tolerance


def _form(matrix: Tensor, vector: Tensor) -> Tensor:
    return (vector * (matrix @ vector[..., None])[..., 0]).sum(-1)
