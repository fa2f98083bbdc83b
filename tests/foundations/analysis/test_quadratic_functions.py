"""Quadratic functions: bad input, minima with a kernel, derivatives."""

import math

import pytest
import torch

from lemmata.foundations import QuadraticFunction

DOUBLE = torch.float64


def test_quadratic_functions_check_their_parts(unchecked):
    with pytest.raises(ValueError, match="matrix must be symmetric"):
        QuadraticFunction(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"linear must be a \(..., 2\) tensor to fit matrix"):
        QuadraticFunction(torch.eye(2), torch.zeros(3))
    with pytest.raises(ValueError, match="constant must be finite"):
        QuadraticFunction(torch.eye(2), constant=math.nan)
    with pytest.raises(ValueError, match="has no minimum"):
        _ = QuadraticFunction(-torch.eye(2)).minimiser
    with pytest.raises(ValueError, match="has no minimum"):
        _ = QuadraticFunction(torch.zeros(1, 1), torch.ones(1)).minimum
    assert repr(QuadraticFunction(torch.eye(3))) == "QuadraticFunction(n=3)"


def test_the_minimum_of_a_quadratic_has_derivatives_in_all_its_parts():
    matrix = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=DOUBLE, requires_grad=True)
    linear = torch.tensor([1.0, 2.0], dtype=DOUBLE, requires_grad=True)
    for part in ("minimiser", "minimum"):
        value = lambda a, b, part=part: getattr(QuadraticFunction((a + a.T) / 2, b), part)  # noqa: E731
        assert torch.autograd.gradcheck(value, (matrix, linear))


def test_the_minimum_of_a_quadratic_with_a_kernel_is_found_at_every_condition():
    q = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=DOUBLE))[0]
    for spread in (1e-12, 1e-6, 1.0, 1e3):
        matrix = (q * torch.tensor([0.0, 1e-3, 1.0, 1e3], dtype=DOUBLE) * spread) @ q.T
        f = QuadraticFunction((matrix + matrix.T) / 2, matrix @ torch.ones(4, dtype=DOUBLE))
        along = q[:, 1:] @ (q[:, 1:].T @ -torch.ones(4, dtype=DOUBLE))
        torch.testing.assert_close(f.minimiser, along, rtol=1e-8, atol=1e-8)


def test_values_are_those_of_the_formula_in_any_batch():
    generator = torch.Generator().manual_seed(0)
    x, linear = torch.randn(2, 5, 3, generator=generator).double(), torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE)
    matrix = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 1.0]], dtype=DOUBLE)
    expected = torch.einsum("...i,ij,...j->...", x, matrix, x) / 2 + x @ linear + 2.0
    torch.testing.assert_close(QuadraticFunction(matrix, linear, constant=2.0)(x), expected)
    torch.testing.assert_close(QuadraticFunction(matrix)(x), expected - x @ linear - 2.0)
