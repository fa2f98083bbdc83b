"""Quadratic functions: bad input, minima with a kernel, derivatives."""

import math

import pytest
import torch

from lemmata.foundations import QuadraticFunction

DOUBLE = torch.float64


def test_quadratic_functions_check_their_parts(unchecked):
    with pytest.raises(ValueError, match="matrix must be symmetric"):
        QuadraticFunction(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"linear must be a \(2,\) tensor to fit matrix"):
        QuadraticFunction(torch.eye(2), torch.zeros(3))
    with pytest.raises(ValueError, match="constant must be finite"):
        QuadraticFunction(torch.eye(2), constant=math.nan)
    with pytest.raises(ValueError, match="has no minimum"):
        _ = QuadraticFunction(-torch.eye(2)).minimiser
    assert repr(QuadraticFunction(torch.eye(3))) == "QuadraticFunction(n=3)"


def test_the_minimum_of_a_quadratic_has_derivatives_in_all_its_parts():
    matrix = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=DOUBLE, requires_grad=True)
    linear = torch.tensor([1.0, 2.0], dtype=DOUBLE, requires_grad=True)
    for part in ("minimiser", "minimum"):
        value = lambda a, b, part=part: getattr(QuadraticFunction((a + a.T) / 2, b), part)  # noqa: E731
        assert torch.autograd.gradcheck(value, (matrix, linear))


def test_the_minimum_is_found_at_every_condition_and_scale():
    q = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=DOUBLE))[0]
    lowest = torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=DOUBLE)
    for scale in (1e-200, 1e-6, 1.0, 1e200):
        matrix = scale * (q * torch.tensor([1e-6, 1e-3, 1.0, 1e3], dtype=DOUBLE)) @ q.T
        matrix = (matrix + matrix.T) / 2
        # The linear part is rounded, which the inverse enlarges by the condition number.
        found = QuadraticFunction(matrix, -matrix @ lowest).minimiser
        torch.testing.assert_close(found, lowest, rtol=0, atol=1e9 * 64 * torch.finfo(DOUBLE).eps)


def test_without_a_proof_there_is_no_minimum():
    """A matrix with one slightly negative eigenvalue, singular ones, and one of rounded zeros, too large to decide."""
    falling = torch.eye(100)
    falling[-1, -1] = -1e-5
    with pytest.raises(ValueError, match="has no minimum"):
        _ = QuadraticFunction(falling).minimum
    wide = torch.randn(5, 20, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    for matrix in (torch.zeros(1, 1), torch.ones(3, 3), wide.T @ wide):
        with pytest.raises(
            ValueError, match="positive definite beyond rounding, but its least eigenvalue lies between"
        ):
            _ = QuadraticFunction(matrix).minimum
    shifted = QuadraticFunction(wide.T @ wide + 1e-9 * torch.eye(20, dtype=DOUBLE), torch.ones(20, dtype=DOUBLE))
    assert shifted.minimum < -1e7


def test_bounds_enclose_every_eigenvalue_and_are_tight():
    matrix = torch.diag(torch.tensor([-3.0, 0.25, 7.0]))
    low, high = QuadraticFunction(matrix).eigenvalue_bounds
    assert -3 - 1e-13 <= low <= -3
    assert 7 <= high <= 7 + 1e-13
    assert QuadraticFunction(torch.ones(3, 3)).eigenvalue_bounds[0] == 0.0


def test_values_are_those_of_the_formula_in_any_batch():
    generator = torch.Generator().manual_seed(0)
    x, linear = torch.randn(2, 5, 3, generator=generator).double(), torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE)
    matrix = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 1.0]], dtype=DOUBLE)
    expected = torch.einsum("...i,ij,...j->...", x, matrix, x) / 2 + x @ linear + 2.0
    torch.testing.assert_close(QuadraticFunction(matrix, linear, constant=2.0)(x), expected)
    torch.testing.assert_close(QuadraticFunction(matrix)(x), expected - x @ linear - 2.0)


def test_a_matrix_that_double_precision_cannot_solve_is_refused_in_words():
    """Definite as it is stored, which fractions prove; halves and quarters of its entries cancel to nothing."""
    matrix = torch.tensor([[1e30, 9.999999999999999e29], [1e30, 1e30]], dtype=DOUBLE)
    with pytest.raises(ValueError, match=r"too near to a singular one|positive definite beyond rounding"):
        QuadraticFunction(matrix, torch.ones(2, dtype=DOUBLE)).minimiser
