"""Gordan's alternative in fractions: every answer is a proof, whatever the rows and the guess."""

import random
from fractions import Fraction

import pytest

from lemmata.certified.gordan import _power_of_two, positive_or_cancelling


def proved(rows, first=()):
    """Whether a vector was found, after checking it or the multipliers."""
    vector, shares = positive_or_cancelling(rows, first)
    if vector is not None:
        assert shares is None
        assert all(sum(map(Fraction.__mul__, row, vector)) > 0 for row in rows)
        return True
    assert min(shares) >= 0
    assert sum(shares) == 1
    assert not any(sum(map(Fraction.__mul__, column, shares)) for column in zip(*rows, strict=True))
    return False


def test_rows_of_whole_numbers_with_many_ties():
    draw, found = random.Random(0), 0
    for _ in range(300):
        points, inputs, most = draw.randint(1, 9), draw.randint(1, 4), draw.choice([1, 2, 5])
        rows = [[Fraction(draw.randint(-most, most)) for _ in range(inputs)] for _ in range(points)]
        found += proved(rows, draw.sample(range(points), draw.randint(0, points)))
    assert 80 < found < 220


@pytest.mark.parametrize("size", [Fraction(1, 10**300), Fraction(1), Fraction(10**300)])
def test_columns_of_any_size(size):
    rows = [[size, Fraction(1)], [-2 * size, Fraction(-1)], [size, Fraction(2)]]
    assert proved([[size, Fraction(1)], [-size, Fraction(1)]])
    assert proved(rows[:2])
    assert not proved([*rows, [size / 2, Fraction(1, 2)], [Fraction(0), -size]])


def test_rows_that_span_little_and_rows_of_zeros():
    one, zero = Fraction(1), Fraction(0)
    assert proved([[one, one, one]] * 4)
    assert not proved([[zero, zero]])
    assert not proved([[one, zero], [zero, zero]])
    assert proved([[one, zero], [3 * one, zero], [one, zero]])


def test_too_large_a_problem_is_refused(monkeypatch):
    monkeypatch.setattr("lemmata.certified.gordan.MAX_WORDS", 20)
    with pytest.raises(ArithmeticError, match="2 rows of 3 numbers are too many for exact arithmetic"):
        positive_or_cancelling([[Fraction(1), Fraction(2), Fraction(3)]] * 2)


def test_the_work_is_counted_in_words_to_multiply(monkeypatch):
    """One row of one number, in two equations: 2 to look at it, 4 for its weights, 4 to take it in."""
    for most, enough in ((9, False), (10, True)):
        monkeypatch.setattr("lemmata.certified.gordan.MAX_WORDS", most)
        if enough:
            assert proved([[Fraction(1)]])
        else:
            with pytest.raises(ArithmeticError, match="1 rows of 1 numbers are too many"):
                positive_or_cancelling([[Fraction(1)]])


def test_long_numbers_are_more_words(monkeypatch):
    def rows(digits):
        """Sums of a large number and of a small one that differs, so that nothing can be divided out."""
        return [[Fraction(10**digits * (i + j**2 + 1) + (3 * i + j) % 7 + 1) for j in range(4)] for i in range(4)]

    monkeypatch.setattr("lemmata.certified.gordan.MAX_WORDS", 400)
    proved(rows(0))
    with pytest.raises(ArithmeticError, match="4 rows of 4 numbers are too many"):
        positive_or_cancelling(rows(200))


@pytest.mark.parametrize("size", [Fraction(3, 10**40), Fraction(1), Fraction(5, 7), Fraction(10**40, 3)])
def test_a_column_is_divided_by_a_power_of_two_of_its_size(size):
    unit = _power_of_two([size / 3, -size, Fraction(0)])
    assert Fraction(1, 2) <= size / unit <= 2
    assert unit.numerator & (unit.numerator - 1) == unit.denominator & (unit.denominator - 1) == 0
    assert _power_of_two([Fraction(0)]) == 1
