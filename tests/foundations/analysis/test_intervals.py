"""Interval arithmetic against exact ranges: every operation encloses what it should, and not much more."""

from fractions import Fraction

import pytest
import torch

from lemmata.foundations.analysis.intervals import Interval

EPS = torch.finfo(torch.float64).eps
# All patterns of signs, points too; and points inside them, with 0 among these wherever it lies inside.
LOWS, HIGHS = torch.tensor(
    [[1.0, -2.0, -1.0, -2.0, 0.0, -1.0, 0.5, -0.5, -0.5], [2.0, -1.0, 2.0, 1.0, 1.0, 0.0, 0.5, -0.5, 0.5]],
    dtype=torch.float64,
)
INSIDE = LOWS + (HIGHS - LOWS) * torch.linspace(0.0, 1.0, 31, dtype=torch.float64)[:, None]
APART = (LOWS > 0) | (HIGHS < 0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def normal(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def is_range(found, values):
    """The smallest interval that holds the values, up to rounding outwards."""
    low, high = values.amin(0), values.amax(0)
    assert ((found.low <= low) & (high <= found.high)).all()
    assert (low - found.low).max() <= 512 * EPS
    assert (found.high - high).max() <= 512 * EPS


def test_sums_and_products_of_all_signs():
    one, two = Interval(LOWS, HIGHS)[:, None], Interval(LOWS, HIGHS)[None]
    x, y = INSIDE[:, None, :, None], INSIDE[None, :, None, :]
    is_range(one + two, (x + y).flatten(0, 1))
    is_range(one * two, (x * y).flatten(0, 1))


@pytest.mark.parametrize("exponent", range(6))
def test_powers_of_all_signs(exponent):
    is_range(Interval(LOWS, HIGHS).power(exponent), INSIDE**exponent)


def test_functions_of_one_variable():
    is_range(-Interval(LOWS, HIGHS), -INSIDE)
    is_range(Interval(LOWS, HIGHS)[APART].reciprocal(), 1 / INSIDE[:, APART])
    is_range(Interval(LOWS, HIGHS).increasing(torch.exp), INSIDE.exp())
    is_range(Interval(LOWS, HIGHS).even_falling(lambda u: 1 / (1 + u**2)), 1 / (1 + INSIDE**2))


def test_the_cosine_reaches_one_where_a_turn_lies_inside(generator):
    low, width, some = torch.rand((3, 150), generator=generator, dtype=torch.float64)
    low = 24 * low - 12
    high = low + 8 * width * (some < 0.9)  # a tenth are points
    values = torch.cos(low + (high - low) * torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)[:, None])
    found = Interval(low, high).cosine()
    assert ((found.low <= values.amin(0)) & (values.amax(0) <= found.high)).all()
    # The grid misses an extreme by half a step: 0.002² / 2.
    assert (values.amin(0) - found.low).max() <= 3e-6
    assert (found.high - values.amax(0)).max() <= 3e-6


def holds(found, exact):
    """Whether each interval holds its fraction."""
    ends = zip(found.low.tolist(), exact, found.high.tolist(), strict=True)
    return all(Fraction(low) <= middle <= Fraction(high) for low, middle, high in ends)


@pytest.mark.parametrize(
    ("size", "other"), [(1.0, 1.0), (1e10, 1e10), (1e-10, 1e-10), (1e200, 1e-200), (1e-200, 1e-200)]
)
def test_sums_and_products_hold_the_exact_fraction(generator, size, other):
    a, b = size * normal(generator, 60), other * normal(generator, 60)
    pairs = [(Fraction(p), Fraction(q)) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert holds(Interval(a) + Interval(b), [p + q for p, q in pairs])
    assert holds(Interval(a) * Interval(b), [p * q for p, q in pairs])


@pytest.mark.parametrize("error", [-6, 6])
def test_functions_may_err_by_six_units(generator, error):
    x = 20 * normal(generator, 200)
    image = Interval(x).increasing(lambda u: u.exp() * (1 + error * EPS))
    assert ((image.low <= x.exp()) & (x.exp() <= image.high)).all()
    assert ((image.high - image.low) / x.exp()).max() <= 32 * EPS


def test_sums_in_which_all_digits_cancel_but_the_last(generator):
    great = 2.0**52 * normal(generator, 40, 1).round()
    terms = torch.cat([great, normal(generator, 40, 6), -great], dim=1)
    exact = [sum(map(Fraction, row), Fraction(0)) for row in terms.tolist()]
    found = Interval(terms).sum(1)
    assert holds(found, exact)
    assert holds(Interval(terms.T).mapped(torch.ones(1, 8).double())[0], exact)
    assert (found.high - found.low <= 64 * EPS * terms.abs().sum(1)).all()


def test_images_under_a_matrix_take_the_ends_by_sign(generator):
    low, matrix = normal(generator, 5, 3), normal(generator, 4, 5)
    high = low + torch.rand((5, 3), generator=generator, dtype=torch.float64)
    weight = matrix[..., None]
    least, most = ((weight * torch.where(weight > 0, *ends)).sum(1) for ends in ((low, high), (high, low)))
    mapped, total = Interval(low, high).mapped(matrix), Interval(low, high).sum(0)
    assert ((mapped.low <= least) & (most <= mapped.high)).all()
    for found, exact in (
        (mapped.low, least), (mapped.high, most), (total.low, low.sum(0)), (total.high, high.sum(0))
    ):  # fmt: skip
        torch.testing.assert_close(found, exact, rtol=0, atol=512 * EPS)
