"""Bounds on rounding that hold, and exact answers where they do not decide."""

from fractions import Fraction

import pytest
import torch

from lemmata.certified import rounding
from lemmata.certified.rounding import exact_signs, form, fractions, gamma, power_of_two, scaled_down, scaled_up


def double(value):
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("terms", [1, 2, 7, 60])
def test_no_sum_of_products_is_wrong_by_more_than_gamma(dtype, terms):
    left, right = (torch.randn(200, terms).to(dtype) for _ in range(2))
    total = torch.zeros(200, dtype=dtype)
    for index in range(terms):
        total = total + left[:, index] * right[:, index]
    for found, a, b in zip(fractions(total), fractions(left), fractions(right), strict=True):
        products = [x * y for x, y in zip(a, b, strict=True)]
        assert abs(found - sum(products)) <= Fraction(gamma(terms, dtype)) * sum(map(abs, products))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("terms", [1, 7, 100])
def test_gamma_is_its_formula_rounded_up_and_hardly_more(dtype, terms):
    lost = terms * Fraction(torch.finfo(dtype).eps) / 2
    exact = lost / (1 - lost)
    assert exact < Fraction(gamma(terms, dtype)) < exact * (1 + Fraction(1, 2**48))
    assert gamma(terms) == gamma(terms, torch.float64)


def test_a_sum_without_a_digit_left_is_refused():
    assert gamma(1023, torch.float16) < 1
    with pytest.raises(ValueError, match=r"a sum of 1024 terms has no digit left in torch.float16: use double"):
        gamma(1024, torch.float16)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-30, 1.0, 3.7, 1e30, 1.7e308])
def test_the_largest_entry_over_its_power_of_two_is_from_one_to_below_two(scale):
    matrix = double([[0.5, -1.0], [0.25, 0.0]]) * scale
    unit = power_of_two(matrix)
    assert 1 <= (matrix.abs().max() / unit).item() < 2
    assert torch.equal(power_of_two(torch.stack([matrix, matrix])), torch.stack([unit, unit]))
    assert torch.equal(power_of_two(-matrix), unit)
    assert power_of_two(torch.zeros(2, 2)).item() > 0


@pytest.mark.parametrize("exponent", [-1074, -1060, -1022, -3, 0, 1000, 1023])
def test_bounds_stay_bounds_when_they_are_scaled_back(exponent):
    unit = double(1.0).ldexp(torch.tensor(exponent))
    bounds = torch.cat([torch.randn(200, dtype=torch.float64).exp(), -torch.rand(200).double(), torch.zeros(1)])
    low, high = (scaled(bounds, unit.expand(401)) for scaled in (scaled_down, scaled_up))
    for a, x, b in zip(low.tolist(), fractions(bounds), high.tolist(), strict=True):
        exact = x * Fraction(2) ** exponent
        assert a == -torch.inf or Fraction(a) <= exact
        assert b == torch.inf or exact <= Fraction(b)
        if -1022 <= exponent <= 1000 and abs(exact) > Fraction(2) ** -1022:
            assert a == b == float(exact)
        elif exponent < -1022:  # and no looser than what can be stored
            assert Fraction(b) - Fraction(a) == (0 if (exact * 2**1074).denominator == 1 else Fraction(1, 2**1074))


def test_a_bound_too_large_to_store_is_the_largest_number_below_and_infinite_above():
    unit, largest = double(2.0**1023), torch.finfo(torch.float64).max
    assert scaled_down(double([3.0, -3.0]), unit.expand(2)).tolist() == [largest, -torch.inf]
    assert scaled_up(double([3.0, -3.0]), unit.expand(2)).tolist() == [torch.inf, -largest]


@pytest.mark.parametrize(
    ("exponent", "other", "column"),
    [
        *((-1070, 60, 0), (-1070, 460, -400), (-1070, 100, 400)),
        *((-500, 0, 0), (0, 0, 0), (500, 0, 0)),
        *((1020, -60, 0), (1020, -460, 400), (1020, -100, -400)),
    ],
)
def test_a_form_keeps_its_digits_where_the_matrix_is_tiny_or_huge(exponent, other, column):
    """The row brings it back into range; in between, products of matrix and column are subnormal or too large."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randint(-7, 8, (2, 3, 4), generator=generator).double().ldexp(torch.tensor(exponent))
    left = torch.randn(2, 3, generator=generator, dtype=torch.float64).ldexp(torch.tensor(other))
    right = torch.randn(2, 4, generator=generator, dtype=torch.float64).ldexp(torch.tensor(column))
    found = form(matrix, left, right, power_of_two(matrix))
    for value, a, rows, b in zip(*map(fractions, (found, left, matrix, right)), strict=True):
        terms = [x * entry * y for x, row in zip(a, rows, strict=True) for entry, y in zip(row, b, strict=True)]
        assert abs(value - sum(terms)) <= Fraction(gamma(12)) * sum(map(abs, terms))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gradient_of_a_form_is_the_product_of_its_vectors(dtype):
    matrix = torch.randn(3, 4).to(dtype).requires_grad_()
    left, right = double([1.0, -2.0, 3.0]), double([0.5, 0.25, -1.0, 2.0])
    value = form(matrix, left, right, power_of_two(matrix.detach().double()))
    assert value.dtype is dtype
    (gradient,) = torch.autograd.grad(value, matrix)
    assert gradient.equal((left[:, None] * right).to(dtype))  # few bits, which round nothing


def test_every_kind_of_number_is_a_fraction():
    assert fractions(torch.tensor([True, False])) == [1, 0]
    assert fractions(torch.tensor([255], dtype=torch.uint8)) == [255]
    assert fractions(torch.tensor([2**64 - 1], dtype=torch.uint64)) == [2**64 - 1]
    assert fractions(torch.tensor(-(2**63))) == -(2**63)
    assert fractions(torch.tensor([0.1], dtype=torch.bfloat16)) == [Fraction(float(torch.tensor(0.1).bfloat16()))]
    assert fractions(double([5e-324])) == [Fraction(1, 2**1074)]
    with pytest.raises(TypeError, match="complex numbers are no fractions"):
        fractions(torch.ones(2, dtype=torch.complex64))


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1.0, 1e200, 1.7e308])
def test_signs_of_products_are_exact_at_every_scale(scale):
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(-3, 4, (300, 4), generator=generator).double()
    vector = torch.randint(-3, 4, (4,), generator=generator).double()
    nearly = rows + 2.0**-40 * torch.randint(-1, 2, (300, 4), generator=generator)
    for points in (rows, nearly) if scale == 1.0 else (rows.clamp(-1, 1),):
        points = points * scale
        exact = [sum(a * b for a, b in zip(row, fractions(vector), strict=True)) for row in fractions(points)]
        assert exact_signs(points, vector).tolist() == [(value > 0) - (value < 0) for value in exact]


def test_signs_of_whole_numbers_beyond_double_are_exact():
    rows = torch.tensor([[2**62, -(2**62) + 1], [2**62, -(2**62)], [2**53 + 1, -(2**53)]])
    assert exact_signs(rows, torch.tensor([1, 1])).tolist() == [1, 0, 1]
    assert exact_signs(torch.zeros(0, 2), torch.ones(2)).tolist() == []
    assert exact_signs(torch.zeros(3, 0), torch.ones(0)).tolist() == [0, 0, 0]
    assert exact_signs(double([[5e-324, 0.0]]), double([5e-324, 1.0])).tolist() == [1]
    assert exact_signs(double([[1e308, 1e308]]), double([1e308, -1e308])).tolist() == [0]
    # The only product that is not zero is too small to be stored, though nothing else is.
    assert exact_signs(double([[1.0, 0.0, 2.0**-540]]), double([0.0, 1.0, -(2.0**-540)])).tolist() == [-1]


def test_only_products_that_double_precision_does_not_decide_are_computed_in_fractions(monkeypatch):
    asked = []

    def counted(value):
        asked.append(value.shape)
        return fractions(value)

    monkeypatch.setattr(rounding, "fractions", counted)
    rows = double([[1.0, 1.0], [1.0, -1.0 - 2.0**-40], [-3.0, 0.0], [1e-300, 1e-300]])
    vector = double([1.0, 1.0])
    assert exact_signs(rows, vector).tolist() == [1, -1, -1, 1]
    assert asked == []
    assert exact_signs(double([[1.0, -1.0], [2.0, 1.0]]), vector).tolist() == [0, 1]
    assert asked == [(2,), (2,)]  # of the vector and of one row
