"""Rates: the slope on logarithmic axes."""

import math

import pytest
import torch

from lemmata.judge import slope_is

SIZES = [10.0, 20.0, 40.0, 80.0]


@pytest.mark.parametrize("power", [-2.0, -0.5, 0.0, 1.0, 3.0])
def test_a_power_law_has_its_power(power):
    evidence = slope_is(SIZES, [7 * size**power for size in SIZES], power, within=0.01)
    assert evidence.holds
    assert evidence.measured == pytest.approx(power, abs=1e-12)
    assert evidence.detail == "slope over 4 points"
    assert not slope_is(SIZES, [7 * size**power for size in SIZES], power + 0.5, within=0.2).holds


def test_the_slope_is_the_least_squares_one():
    x, y = torch.tensor([1.0, 2.0, 3.0, 7.0]), torch.tensor([1.0, 3.0, 2.0, 9.0])
    design = torch.stack([torch.ones(4), x.log()], dim=1)
    fitted = torch.linalg.lstsq(design, y.log()[:, None]).solution[1].item()
    assert slope_is(x, y, fitted, within=1e-5).holds


@pytest.mark.parametrize(("x", "y"), [([1.0, 2.0], [1.0, 2.0]), (SIZES, SIZES[:3]), ([], [])])
def test_too_few_points_are_refused(x, y):
    with pytest.raises(ValueError, match=f"three points or more with both coordinates, got {len(x)} and {len(y)}"):
        slope_is(x, y, 1.0, within=0.1)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_values_must_be_positive(bad):
    for x, y in ((SIZES, [1.0, 2.0, 3.0, bad]), ([bad, 1.0, 2.0, 3.0], SIZES)):
        with pytest.raises(ValueError, match="needs positive values"):
            slope_is(x, y, 1.0, within=0.1)


@pytest.mark.parametrize("within", [0.0, -1.0, math.nan])
def test_within_must_be_positive(within):
    with pytest.raises(ValueError, match="within must be > 0"):
        slope_is(SIZES, SIZES, 1.0, within=within)


@pytest.mark.parametrize(("x", "y"), [(SIZES, [1.0, math.nan, 2.0, 3.0]), ([2.0] * 4, SIZES), (SIZES, [math.inf] * 4)])
def test_what_has_no_slope_decides_nothing(x, y):
    evidence = slope_is(x, y, 1.0, within=0.1)
    assert not evidence.holds
    assert evidence.undecided
