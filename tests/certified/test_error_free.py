"""Sums and products with what rounding took from them."""

from fractions import Fraction

import pytest
import torch

from lemmata.certified.error_free import grain, two_product, two_sum
from lemmata.certified.rounding import fractions


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_nothing_is_lost(scale):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(500, generator=generator, dtype=torch.float64) * scale**power for power in (1, 0.5))
    for pair, exact in ((two_sum(a, b), Fraction.__add__), (two_product(a, b), Fraction.__mul__)):
        high, low = map(fractions, pair)
        expected = [exact(x, y) for x, y in zip(fractions(a), fractions(b), strict=True)]
        assert [x + y for x, y in zip(high, low, strict=True)] == expected


def test_whole_numbers_leave_no_remainder():
    a, b = torch.arange(-50.0, 50, dtype=torch.float64), torch.arange(100.0, dtype=torch.float64)
    assert not two_sum(a, b)[1].any()
    assert not two_product(a, b)[1].any()


def test_the_grain_is_the_largest_power_of_two_that_divides_all():
    assert grain(torch.tensor([6.0, 12.0], dtype=torch.float64)) == 2.0
    assert grain(torch.tensor([6.0], dtype=torch.float64), torch.tensor([0.375], dtype=torch.float64)) == 0.125
    assert grain(torch.zeros(3, dtype=torch.float64)) == 1.0
    assert grain(torch.tensor([1 / 3], dtype=torch.float64)) == 2.0**-54
    assert grain(torch.tensor([-(2.0**60)], dtype=torch.float64)) == 2.0**60
    assert grain(torch.tensor([5e-324], dtype=torch.float64)) == 5e-324
