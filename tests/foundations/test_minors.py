"""Minors without rounding; bad input and sizes are in test_exact_elimination."""

from fractions import Fraction

import torch

from lemmata.foundations.exact_elimination import exact_determinant
from lemmata.foundations.minors import definiteness_by_minors, leading_minors, principal_minors

MIXED = torch.tensor([[0.0, 0.5, 2.0], [1.5, -1.0, 0.25], [3.0, 0.0, 1.0]])


def test_the_last_leading_minor_is_the_determinant():
    # By the first column: -3/2 (1/2) + 3 (1/2 1/4 + 2) = 45/8.
    assert leading_minors(MIXED) == [0, Fraction(-3, 4), Fraction(45, 8)]
    assert exact_determinant(MIXED) == Fraction(45, 8)
    minors = principal_minors(MIXED)
    assert minors[0, 2] == -6
    assert minors[1, 2] == -1


def test_minors_agree_with_determinants_up_to_rounding():
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randint(-3, 4, (20, 4, 4), generator=generator)
    found = torch.tensor([float(leading_minors(matrix)[-1]) for matrix in matrices], dtype=torch.float64)
    torch.testing.assert_close(found, torch.linalg.det(matrices.double()), rtol=0.0, atol=1e-11)


def test_numbers_are_taken_as_they_are_stored():
    assert definiteness_by_minors(torch.tensor([[1.0, 0.1], [0.1, 0.01]])) == "indefinite"  # 0.1 squared exceeds 0.01
