r"""On which side of the unit circle the eigenvalues of a stored matrix lie: proved in double precision, or exactly."""

import math
import warnings
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Complex, Float, Shaped
from scipy import linalg
from torch import Tensor

from lemmata.certified.definiteness import certify_definiteness
from lemmata.certified.rounding import fractions, gamma, power_of_two

__all__ = []  # `is_stable` says it in words

Place = Literal["inside", "outside", "circle", "block"]

# Rows to the fourth power times binary digits, for which exact arithmetic takes half a second: 16 rows of double
# precision with entries of about one size, or 6 with entries from the smallest to the largest.
EXACT_WORK = 5_000_000


def place_of(matrix: Shaped[Tensor, "n n"]) -> tuple[Place | None, complex | None]:
    r"""Where the outermost eigenvalues of a real or complex matrix lie, as its entries are stored; None if undecided.

    "inside": all within the circle. "outside": one beyond it. "circle": some on it, the others within, and no Jordan
    block there; "block": a Jordan block there. The last two come with an eigenvalue that is meant, rounded.

    >>> place_of(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))[0], place_of(torch.tensor([[1.0, 1e-8], [0.0, 1.0]]))[0]
    ('circle', 'block')
    """
    if not matrix.tril(-1).any() or not matrix.triu(1).any():
        place, eigenvalue = place_of_eigenvalues(matrix.diagonal())
        if place != "circle" or not _may_be_coupled(matrix):
            return place, eigenvalue
    real = _as_real(matrix.detach().cpu())
    place = _by_quadratic_form(*_scaled_matrix(real))
    if place is not None or len(real) ** 4 > EXACT_WORK:
        return place, None
    rows, scale = _integer_matrix(real)
    digits = max(scale, *(abs(entry) for row in rows for entry in row)).bit_length()
    return _by_polynomial(rows, scale) if len(rows) ** 4 * digits <= EXACT_WORK else (None, None)


def place_of_eigenvalues(values: Shaped[Tensor, " n"]) -> tuple[Place, complex]:
    """The same for eigenvalues that are given, each with an eigenvector of its own; and the outermost of them."""
    squares = [squared_modulus(value) for value in values.tolist()]
    largest = max(range(len(squares)), key=squares.__getitem__)
    place = "inside" if squares[largest] < 1 else "outside" if squares[largest] > 1 else "circle"
    return place, complex(values[largest])


def squared_modulus(value: float | complex) -> Fraction:
    """Without rounding, as the number is stored."""
    return Fraction(value.real) ** 2 + Fraction(value.imag) ** 2


def _may_be_coupled(matrix: Tensor) -> bool:
    """Whether a triangular matrix may have a Jordan block: it is not diagonal, and some value on the circle returns."""
    on = [value for value in matrix.diagonal().tolist() if squared_modulus(value) == 1]
    return len(set(on)) < len(on) and bool((matrix - matrix.diagonal().diag()).any())


def _as_real(matrix: Tensor) -> Float[Tensor, "m m"]:
    """A complex matrix as a real one of twice the size: it has the same eigenvalues, and their conjugates."""
    if not matrix.is_complex():
        return matrix.double()
    real, imaginary = matrix.real.double(), matrix.imag.double()
    return torch.cat([torch.cat([real, -imaginary], dim=1), torch.cat([imaginary, real], dim=1)])


def computed_eigenvalues(matrix: Shaped[Tensor, "n n"]) -> Complex[Tensor, " n"]:
    """With their rounding. Torch's fail to converge for one in seven matrices of one constant, numpy's do not."""
    matrix = matrix.detach().cpu()
    unit = power_of_two(_as_real(matrix))
    return torch.from_numpy(np.linalg.eigvals((matrix / unit).numpy())).to(torch.complex128) * unit


# --- Double precision, with proof ---


def _scaled_matrix(matrix: Float[Tensor, "n n"]) -> tuple[Float[Tensor, "n n"], float]:
    """A matrix with eigenvalues far from the circle, divided by a power of two that leaves them on their side of it."""
    radius = float(computed_eigenvalues(matrix).abs().max())
    if not 0 < radius < math.inf or 0.25 <= radius <= 4:
        return matrix, 1.0
    exponent = math.frexp(radius)[1]  # the radius lies between 2^(exponent - 1) and 2^exponent
    factor = 2.0 ** (exponent - 2 if radius > 1 else exponent + 1)
    scaled = matrix / factor
    return (scaled, factor) if torch.equal(scaled * factor, matrix) else (matrix, 1.0)


def _by_quadratic_form(matrix: Float[Tensor, "n n"], factor: float = 1.0) -> Place | None:
    r"""Decide for A times a factor, by a form that every step makes smaller.

    $$ V(x) = x^\top Hx, \qquad R = H - A^\top HA \succ 0 $$

    If V is positive, $V(A^kx)$ falls to zero geometrically. If V is negative somewhere, it falls from there without
    end, by at least the same share of itself in every step. How H was found proves nothing; R and H are checked.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the equation is nearly singular, or that its numbers overflow
            form = linalg.solve_discrete_lyapunov(matrix.T.numpy(), np.eye(len(matrix)))
    except (np.linalg.LinAlgError, ValueError):
        return None
    form = torch.from_numpy(form)
    if not form.isfinite().all() or not form.any():
        return None
    form = form / power_of_two(form)
    form = form / 2 + form.mT / 2
    remainder = form - matrix.mT @ form @ matrix
    remainder = remainder / 2 + remainder.mT / 2
    # Two products of n terms, a difference and a mean; as much again for the rounding of this bound itself, and for
    # what is lost to subnormal numbers. The largest sum of a row bounds the norm of a symmetric matrix.
    sizes = form.abs() + matrix.abs().mT @ form.abs() @ matrix.abs()
    lost = 2 * gamma(2 * len(matrix) + 4) * sizes.sum(1).max()
    lost += len(matrix) ** 2 * (1 + matrix.abs().max()) * torch.finfo(matrix.dtype).tiny
    if not remainder.isfinite().all() or not certify_definiteness(remainder).floor > lost:
        return None
    sign = certify_definiteness(form)
    # A larger factor leaves what is outside there, a smaller one what is inside.
    if sign.floor > 0 and factor <= 1:
        return "inside"
    return "outside" if sign.ceiling < 0 and factor >= 1 else None


# --- Integers ---


def _integer_matrix(matrix: Float[Tensor, "n n"]) -> tuple[list[list[int]], int]:
    """The matrix times the least number that makes it whole, and that number."""
    rows = fractions(matrix)
    scale = math.lcm(*(entry.denominator for row in rows for entry in row))
    return [[int(entry * scale) for entry in row] for row in rows], scale


def _by_polynomial(rows: list[list[int]], scale: int) -> tuple[Place, complex | None]:
    r"""Decide for integers divided by a scale, by the characteristic polynomial p in integers.

    Its zeros on the circle, and pairs $\lambda, 1/\lambda$, are those that it shares with its reverse $x^np(1/x)$. Let
    s have each of them once. They all lie on the circle if and only if the zeros of s' lie within (Cohn).

    Source: A. Cohn, Über die Anzahl der Wurzeln einer algebraischen Gleichung in einem Kreise (1922).
    """
    from sympy import ZZ, Poly
    from sympy.abc import x
    from sympy.polys.matrices import DomainMatrix

    size = len(rows)
    whole = DomainMatrix([[ZZ(entry) for entry in row] for row in rows], (size, size), ZZ)
    # p(x) is the polynomial of the whole matrix at scale x.
    p = Poly([c * scale ** (size - k) for k, c in enumerate(whole.charpoly())], x, domain=ZZ)
    s = p.gcd(Poly(p.all_coeffs()[::-1], x)).sqf_part()
    rest, common = p, s
    while common.degree() > 0:
        rest, common = rest.quo(common), rest.quo(common).gcd(s)
    if not _all_inside(rest) or not _all_inside(s.diff()):
        return "outside", None
    if s.degree() == 0:
        return "inside", None
    for factor, _ in s.gcd(p.diff()).factor_list()[1]:
        times = next(k for k in range(1, size + 2) if not p.rem(factor**k).is_zero) - 1
        value = whole.zeros((size, size), ZZ)
        for k, c in enumerate(factor.all_coeffs()):
            value = value * whole + whole.eye(size, ZZ) * ZZ(int(c) * scale**k)
        if size - value.rank() < times * factor.degree():
            return "block", _largest_zero(factor)
    return "circle", _largest_zero(s)


def _all_inside(polynomial: Any) -> bool:
    """Whether all zeros lie strictly within the circle (Schur and Cohn): one degree less at each step."""
    coefficients = [int(c) for c in polynomial.all_coeffs()]
    while len(coefficients) > 1:
        first, last = coefficients[0], coefficients[-1]
        if abs(last) >= abs(first):
            return False
        pairs = zip(coefficients, reversed(coefficients), strict=True)
        coefficients = [first * a - last * b for a, b in pairs][:-1]
        shared = math.gcd(*coefficients)
        coefficients = [c // shared for c in coefficients]
    return True


def _largest_zero(polynomial: Any) -> complex:
    """The zero with the largest real part, above the real axis or on it: for words, rounded."""
    zeros = np.roots([float(c / polynomial.LC()) for c in polynomial.all_coeffs()])
    return complex(max((z for z in zeros if z.imag >= -1e-9), key=lambda z: z.real))
