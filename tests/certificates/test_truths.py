"""The judge of certificates, on cases whose answers are known."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest
import torch
from tests.certificates import truths


def rows(*given):
    return [[Fraction(value) for value in row] for row in given]


def test_the_digits_of_every_dtype_are_read_as_they_are_stored():
    assert truths.exact(torch.tensor([0.1], dtype=torch.float32))[0] != Fraction(1, 10)
    assert truths.exact(torch.tensor([[0.5, 3.0]], dtype=torch.bfloat16)) == rows([0.5, 3])
    assert truths.exact(torch.tensor([2**64 - 1], dtype=torch.uint64)) == [Fraction(2**64 - 1)]
    assert truths.exact(torch.tensor([True])) == [1]
    assert truths.exact(torch.tensor(5e-324, dtype=torch.float64)) == Fraction(1, 2**1074)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (rows([2, 1], [1, 2]), (0, 0, 2)),
        (rows([1, 2], [2, 1]), (1, 0, 1)),
        (rows([0, 1], [1, 0]), (1, 0, 1)),
        (rows([0, 0, 1], [0, 0, 0], [1, 0, 0]), (1, 1, 1)),
        (rows([1, 1], [1, 1]), (0, 1, 1)),
        (rows([0]), (0, 1, 0)),
        (rows([1, 1, 0], [1, 1 + Fraction(1, 10**40), 0], [0, 0, -1]), (1, 0, 2)),
    ],
)
def test_inertia(matrix, expected):
    assert truths.inertia(matrix) == expected


def test_inertia_agrees_with_eigenvalues():
    generator = torch.Generator().manual_seed(0)
    for size in (1, 2, 3, 5):
        matrix = torch.randint(-2, 3, (size, size), generator=generator).double()
        matrix = matrix + matrix.T
        values = torch.linalg.eigvalsh(matrix)
        found = truths.inertia(truths.exact(matrix))
        assert found == (int((values < -1e-9).sum()), int((values.abs() <= 1e-9).sum()), int((values > 1e-9).sum()))
        assert truths.eigenvalues_below(truths.exact(matrix), Fraction(1, 3)) == int((values < 1 / 3).sum())


def test_rank_and_general_position():
    assert truths.rank(rows([1, 2], [2, 4])) == 1
    assert truths.rank(rows([Fraction(1, 10), Fraction(2, 10)], [1, 2])) == 1
    assert truths.rank(rows([0.1, 0.2, 0.3], [1, 2, 3])) == 2  # as they are stored
    assert truths.rank([]) == 0
    flat = rows([1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1])
    assert truths.dependent_subsets(flat, 3) == [(0, 1, 2)]
    assert not truths.in_general_position(flat)
    assert truths.in_general_position(rows([0, 1], [1, 2], [2, 3]))


def test_planes_that_separate_and_points_that_none_does():
    x = rows([0, 0], [0, 1], [1, 0], [1, 1])
    found = {y for y in product((-1, 1), repeat=4) if truths.separating_plane(truths.signed(x, y, True)) is not None}
    assert len(found) == 14
    assert (-1, 1, 1, -1) not in found
    assert truths.separable_labellings(x, bias=True) == found
    huge = rows([10**30], [10**30 + 1])
    assert truths.separating_plane(truths.signed(huge, (-1, 1), True)) is not None
    assert truths.separating_plane(truths.signed(rows([1], [1]), (-1, 1), True)) is None
    assert truths.separating_plane(rows([0, 0])) is None


def test_fractions_of_directions():
    assert truths.fraction_of_directions(rows([3, 1])) == 0.5
    assert mpmath.almosteq(truths.fraction_of_directions(rows([1, 0], [0, 1])), mpmath.mpf(1) / 4)
    assert mpmath.almosteq(truths.fraction_of_directions(rows([1, 0, 0], [0, 2, 0])), mpmath.mpf(1) / 4)
    octant = rows([1, 0, 0], [0, 2, 0], [0, 0, 3], [1, 1, 1])
    assert mpmath.almosteq(truths.fraction_of_directions(octant), mpmath.mpf(1) / 8)
    assert truths.fraction_of_directions(rows([1, 0], [-1, 0])) == 0
    square = rows([1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1])  # the cone |x| + |y| < z
    drawn = torch.randn(200_000, 3, generator=torch.Generator().manual_seed(0))
    inside = float((drawn[:, :2].abs().amax(1) < drawn[:, 2]).double().mean())
    assert abs(float(truths.fraction_of_directions(square)) - inside) < 5 * math.sqrt(0.25 / len(drawn))


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (rows([Fraction(1, 2), 100], [0, Fraction(1, 2)]), (True, True)),
        (rows([1, 0], [0, 1]), (False, True)),
        (rows([1, 1], [0, 1]), (False, False)),
        (rows([1, Fraction(1, 10**9)], [0, 1]), (False, False)),
        (rows([0, -1], [1, 0]), (False, True)),
        (rows([0, -1, 1, 0], [1, 0, 0, 1], [0, 0, 0, -1], [0, 0, 1, 0]), (False, False)),
        (rows([2, 0], [0, Fraction(1, 2)]), (False, False)),  # the roots are mirror images of each other
        (rows([1 + Fraction(1, 10**20)]), (False, False)),
        (rows([1 - Fraction(1, 10**20)]), (True, True)),
        (rows([Fraction(3, 5), Fraction(-4, 5)], [Fraction(4, 5), Fraction(3, 5)]), (False, True)),
        (rows([0, 1], [0, 0]), (True, True)),
        (rows([-1, 0, 0], [0, 1, 0], [0, 7, 0]), (False, True)),
    ],
)
def test_powers_of_a_matrix(matrix, expected):
    assert truths.powers_stay_bounded(matrix) == expected


def test_the_characteristic_polynomial_is_that_of_its_roots():
    assert truths.characteristic(rows([1, 5, 7], [0, 2, 9], [0, 0, 3])) == [1, -6, 11, -6]
