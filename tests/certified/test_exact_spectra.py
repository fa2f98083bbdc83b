"""Eigenvalues counted in fractions, against spectra known by construction and against mpmath."""

from fractions import Fraction

import mpmath
import pytest
import torch

from lemmata.certified.exact_spectra import eigenvalue_counts

DOUBLE = torch.float64


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-100, 1.0, 2.0**100, 2.0**1000])
def test_counts_on_either_side_of_every_eigenvalue(unit):
    half = torch.tensor([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], dtype=DOUBLE) / 2
    values = [-3.0, 0.0, 0.0, 5.0]
    matrix = unit * (half * torch.tensor(values, dtype=DOUBLE)) @ half.T  # a symmetric orthogonal matrix: exact
    for bound in (-4, -3, -1, 0, Fraction(1, 10**30), 5, 6):
        expected = (sum(v < bound for v in values), values.count(bound), sum(v > bound for v in values))
        assert eigenvalue_counts(matrix, bound * Fraction(unit)) == expected


@pytest.mark.parametrize("dtype", [torch.half, torch.float32, DOUBLE])
def test_stored_numbers_of_random_matrices_agree_with_many_digits(dtype):
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        matrix = torch.randn(4, 2, generator=generator, dtype=DOUBLE)
        matrix = (matrix @ matrix.T).to(dtype)  # singular but for the rounding of what is stored
        matrix = matrix.tril() + matrix.tril(-1).mT
        with mpmath.workdps(60):
            values = mpmath.eigsy(mpmath.matrix(matrix.double().tolist()), eigvals_only=True)
            below = sum(bool(value < 0) for value in values)
        assert eigenvalue_counts(matrix, Fraction(0)) == (below, 0, 4 - below)
