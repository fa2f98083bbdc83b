r"""Definiteness with a certificate: a proved floor under the smallest eigenvalue, and a vector that shows a ceiling."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.certified.norms import frobenius_norm
from lemmata.certified.rounding import form, fractions, power_of_two, scaled_down, scaled_up
from lemmata.marks import system

__all__ = ["DefinitenessCertificate", "certify_definiteness"]

EPS = torch.finfo(torch.float64).eps  # twice the unit of rounding u
EXACT = 12  # rows up to which a sign that rounding leaves open is computed in fractions: some milliseconds

Rows = list[list[Fraction]]


@dataclass(frozen=True, eq=False)
class DefinitenessCertificate:
    r"""The answer of `certify_definiteness`: two bounds on the smallest eigenvalue, with what proves them.

    $$ \text{floor} \le \lambda_{\min}(M) \le \text{ceiling}, \qquad
       M - \text{floor}\cdot I \succeq 0, \qquad \frac{x^\top M x}{\|x\|^2} \le \text{ceiling} $$

    `witness` is the unit vector $x$ of least curvature that was found; where the ceiling is below zero, it violates
    $x^\top M x \ge 0$, and anyone can multiply it out. Where the floor is above zero, a Cholesky factorisation of
    $M - \text{floor}\cdot I$ succeeds. Both bounds include all rounding, and are bounds for the numbers as they are
    stored; where fractions decided, the witness was rounded after that. `curvature` is $x^\top M x$ in the dtype of
    the matrix (integers: float64); its derivative is that of the smallest eigenvalue where that is simple. Bounds
    and witness are float64.

    Of `semidefinite` and `violated` at most one is true; where neither is, rounding hides the answer.

    Claims: linalg.psd_definition, linalg.psd_eigenvalues

    >>> certificate = certify_definiteness(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    >>> bool(certificate.violated), certificate.witness.abs(), round(certificate.curvature.item(), 5)
    (True, tensor([0.7071, 0.7071], dtype=torch.float64), -1.0)
    """

    floor: Float[Tensor, "*batch"]
    ceiling: Float[Tensor, "*batch"]
    witness: Float[Tensor, "*batch n"]
    curvature: Float[Tensor, "*batch"]
    tolerance: float = 0.0

    @property
    def definite(self) -> Bool[Tensor, "*batch"]:
        """Proved: every eigenvalue is above zero."""
        return self.floor > 0

    @property
    def semidefinite(self) -> Bool[Tensor, "*batch"]:
        """Proved: no eigenvalue is below minus the tolerance."""
        return self.floor >= -self.tolerance

    @property
    def violated(self) -> Bool[Tensor, "*batch"]:
        """Proved: some eigenvalue is below minus the tolerance."""
        return self.ceiling < -self.tolerance


@system("definiteness", title="Definiteness with a certificate", kind="function")
def certify_definiteness(matrix: Shaped[Tensor, "*batch n n"], tolerance: int | float = 0.0) -> DefinitenessCertificate:
    r"""Decide whether a symmetric matrix is positive (semi-)definite, and prove it or show a vector that violates it.

    $$ M \succeq 0 \iff x^\top M x \ge 0\ \forall x \iff \lambda_i \ge 0\ \forall i, \qquad
       M \succ 0 \iff x^\top M x > 0\ \forall x \ne 0 $$

    The eigenvector of the smallest eigenvalue gives the ceiling. The floor is a number $t$ for which the Cholesky
    factorisation of $M - tI$ ran to its end in float64: then $M - tI$ is positive semidefinite but for a rounding
    error of at most $(n + 2)\,\epsilon\,\mathrm{Tr}(M - tI)$, which is subtracted. Where zero lies between the two,
    matrices of up to 12 rows are decided in fractions, without rounding; of larger ones that are singular, or nearly,
    nothing is said: `tolerance` is how far below zero an eigenvalue may lie for your purpose, and leaves fractions out.

    Integers of every width are taken for what they are, not for what a float makes of them. A matrix may differ from
    its transpose by rounding; the certificate is about $(M + M^\top)/2$, whose forms are the same.

    Shapes:
        matrix: (..., n, n) symmetric    returns: bounds (...), witness (..., n)

    Claims: linalg.psd_definition, linalg.psd_eigenvalues, linalg.sylvester, linalg.kernel_psd, linalg.rayleigh
    Source: N. Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.3; S. Rump, Verification of positive
        definiteness (2006). They hold for any order of summation, and in blocks, but not for fast multiplication.

    >>> proof = certify_definiteness(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> bool(proof.definite), round(proof.floor.item(), 12), round(proof.ceiling.item(), 12)
    (True, 1.0, 1.0)
    >>> bool(certify_definiteness(torch.ones(3, 3, dtype=torch.uint8)).semidefinite)
    True
    """
    original = _symmetric_matrix(matrix)
    if validate.finite_number("tolerance", tolerance) < 0:
        raise ValueError(f"tolerance must be >= 0, got {tolerance}")
    size = original.shape[-1]
    unit = power_of_two(original.detach().double())
    scaled = original.detach().double() / unit[..., None, None]
    scaled = scaled / 2 + scaled.mT / 2
    values, vectors = torch.linalg.eigh(scaled)
    witness = vectors[..., 0]
    length = torch.linalg.vector_norm(witness, dim=-1)
    # A form is a sum of n sums of n terms, the square of a length one of n: wrong by at most 3 n u |M|. Integers that
    # were widened, the mean with the transpose, the quotient and the last sums cost less than 8 u |M| more. What is
    # allowed is 4 (n + 2) u |M|, with the Frobenius norm: at least 1 here, so that it covers subnormal products too.
    frobenius = frobenius_norm(scaled)
    rounding = 2 * (size + 2) * EPS * frobenius
    ceiling = scaled_up(form(scaled, witness, witness, torch.ones_like(unit)) / length.square() + rounding, unit)
    floor = cholesky_floor(scaled, values[..., 0], slack=rounding) - rounding
    floor = scaled_down(torch.where(frobenius == 0, 0.0, floor), unit)
    if size <= EXACT and tolerance == 0:
        for place in ((floor <= 0) & (ceiling >= 0)).nonzero().tolist():
            at = tuple(place)
            floor[at], ceiling[at], witness[at] = _exact_bounds(matrix[at], floor[at], ceiling[at], witness[at])
    curvature = form(original, witness, witness, unit)
    return DefinitenessCertificate(floor, ceiling, witness, curvature, float(tolerance))


def cholesky_floor(
    matrix: Float[Tensor, "*batch n n"], guess: Float[Tensor, "*batch"], slack: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """A number below every eigenvalue, proved by a factorisation at `slack` below the guess, or further down.

    The matrix is float64 with entries of size about 1; only its lower triangle is read, and its diagonal is lent.
    """
    slack = slack.clamp(min=torch.finfo(matrix.dtype).tiny)  # or a zero matrix would be tried at 0 for ever
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    kept = diagonal.clone()
    while True:
        floor = guess - slack
        diagonal.copy_(kept - floor[..., None])
        failed = torch.linalg.cholesky_ex(matrix).info > 0
        if not failed.any():
            break
        slack = torch.where(failed, 8 * slack, slack)
    trace = diagonal.sum(-1)
    diagonal.copy_(kept)
    # The factors multiply to within (n + 1) u Tr of what was factored, the shift rounds by u Tr more; u is EPS / 2, so
    # that the rounding of the trace and terms of second order are covered. The difference itself is rounded down.
    allowance = (matrix.shape[-1] + 2) * EPS
    floor = floor - allowance * trace
    return floor.nextafter(floor.new_tensor(-math.inf))


def _symmetric_matrix(matrix: Tensor) -> Tensor:
    """The matrix, widened to float64 if it holds integers or truth values, which must be symmetric exactly."""
    if not isinstance(matrix, Tensor) or matrix.is_floating_point() or matrix.is_complex():
        return validate.symmetric("matrix", matrix)
    widened = validate.square("matrix", matrix.double())
    if not (matrix == matrix.mT).all():
        raise ValueError("matrix must be symmetric, but differs from its transpose: use matrix + matrix.mT")
    return widened


# --- Without rounding ---


def _exact_bounds(matrix: Tensor, floor: Tensor, ceiling: Tensor, witness: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Bounds and witness again: now a floor above zero, both bounds at zero, or a ceiling below zero is proved.

    But for eigenvalues that are nearer to zero than the least float64.
    """
    stored = fractions(matrix)
    rows = [[(stored[i][j] + stored[j][i]) / 2 for j in range(len(stored))] for i in range(len(stored))]
    pivots, combinations, below = _eliminate_symmetrically(rows)
    if below is not None:
        seen = [Fraction(entry) for entry in witness.tolist()]
        vector = (
            seen if _rayleigh_quotient(rows, seen) < 0 else below
        )  # the one found in floats is lower, where it is below zero
        return (
            floor,
            ceiling.new_tensor(_float_towards(_rayleigh_quotient(rows, vector), math.inf)),
            _unit_vector(vector, witness),
        )
    if 0 in pivots:
        return torch.zeros_like(floor), torch.zeros_like(ceiling), witness
    # No eigenvalue of the inverse, which is the sum over rows r of r^T r / pivot, exceeds its trace.
    trace = _total_of_terms(
        _total_of_terms(entry * entry for entry in row) / d for row, d in zip(combinations, pivots, strict=True)
    )
    return floor.new_tensor(_float_towards(1 / trace, -math.inf)), ceiling, witness


def _eliminate_symmetrically(rows: Rows) -> tuple[list[Fraction], Rows, list[Fraction] | None]:
    """Symmetric elimination: pivots D and combinations R of rows with R M R^T = D, all >= 0; or a vector below zero."""
    size = len(rows)
    rest = [list(row) for row in rows]
    combinations = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    for k in range(size):
        pivot = rest[k][k]
        if pivot < 0:
            return [], [], combinations[k]
        for i in range(k + 1, size):
            beside = rest[i][k]
            if beside == 0:
                continue
            # Beside a pivot 0 the form of this sum is r - 2 |r| - 2 |beside|, where r = rest[i][i].
            factor = beside / pivot if pivot else (abs(rest[i][i]) + abs(beside)) / beside
            combinations[i] = [a - factor * b for a, b in zip(combinations[i], combinations[k], strict=True)]
            if not pivot:
                return [], [], combinations[i]
            rest[i] = [a - factor * b for a, b in zip(rest[i], rest[k], strict=True)]
    return [rest[k][k] for k in range(size)], combinations, None


def _rayleigh_quotient(rows: Rows, vector: list[Fraction]) -> Fraction:
    images = [_total_of_terms(a * b for a, b in zip(row, vector, strict=True)) for row in rows]
    return _total_of_terms(a * b for a, b in zip(images, vector, strict=True)) / _total_of_terms(a * a for a in vector)


def _total_of_terms(terms: Iterable[Fraction]) -> Fraction:
    return sum(terms, Fraction(0))


def _float_towards(exact: Fraction, end: float) -> float:
    """The float64 next to a number on this side of it."""
    largest = Fraction(torch.finfo(torch.float64).max)
    nearest = float(max(-largest, min(exact, largest)))
    return math.nextafter(nearest, end) if (nearest < exact if end > 0 else nearest > exact) else nearest


def _unit_vector(vector: list[Fraction], like: Tensor) -> Tensor:
    largest = max(map(abs, vector))
    return torch.nn.functional.normalize(like.new_tensor([float(entry / largest) for entry in vector]), dim=-1)
