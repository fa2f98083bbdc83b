"""Subgradients: bad input, witnesses, rounding, proofs."""

import pytest
import torch

from lemmata.foundations import is_subgradient


def test_slopes_of_another_shape_or_dtype_are_refused(unchecked):
    with pytest.raises(ValueError, match="x must have 1 entry, got 3"):
        is_subgradient(torch.sum, torch.zeros(3), torch.zeros(3), (-1.0, 1.0))
    with pytest.raises(ValueError, match=r"slope must be a \(1,\) tensor to fit x"):
        is_subgradient(torch.sum, torch.zeros(1), torch.zeros(3), (-1.0, 1.0))
    with pytest.raises(TypeError, match="slope must have the dtype of x"):
        is_subgradient(torch.sum, torch.zeros(1).double(), torch.zeros(1), (-1.0, 1.0))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_refused_slope_comes_with_a_point_that_its_plane_cuts_off(n):
    generator = torch.Generator().manual_seed(n)
    x, slopes = torch.randn(n, generator=generator).double(), torch.randn(n + 2, n, generator=generator).double()

    def f(t):  # a maximum of planes that all pass through one point
        return (slopes @ (t - x)).amax()

    slope = 3 * slopes.abs().amax(0)
    found = is_subgradient(f, x, slope, (x - 2, x + 2), points=2048)
    assert (found.value, found.certified) == (False, False)  # seen: intervals know no maximum
    (y,) = found.witness
    assert f(y) < f(x) + (y - x) @ slope


@pytest.mark.parametrize("size", [1e9, 1.0, 0.0])
def test_what_rounding_cuts_off_is_no_cut(size):
    place, slope = torch.full((1,), 0.3, dtype=torch.float64), torch.full((1,), size, dtype=torch.float64)
    found = is_subgradient(lambda x: (size * x - 0.3 * size).sum(), place, slope, (-1.0, 1.0))
    assert (found.value, found.certified) == (True, False)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cuts_are_proved_in_all_units(dtype, scale):
    box = (-torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype))
    x = torch.tensor([0.5, -0.25], dtype=dtype)
    for factor, value in ((1.0, True), (1.5, False), (0.0, False)):
        found = is_subgradient(lambda t: scale * t.square().sum(), x, factor * 2 * scale * x, box, points=256)
        assert (found.value, found.certified) == (value, not value)


def test_a_cut_that_only_rounding_sees_is_none():
    x = torch.tensor([0.3, 0.2, 0.7])
    box = (torch.zeros(3), torch.ones(3))
    assert is_subgradient(lambda t: (3 * t).sum() - 3 * t.sum(), x, torch.zeros(3), box, points=256).value
    far = torch.zeros(1, dtype=torch.float64)
    assert is_subgradient(lambda t: (t + 1e8).square().sum() - 1e16, far, far + 2e8, (-1.0, 1.0)).value
    # The slope is wrong by one part in a hundred million: too little for the digits, not for the intervals.
    assert not is_subgradient(lambda t: t.square().sum() + 1, far, far + 1e-6, (-1.0, 1.0), points=4096).value


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_half_precision_is_measured(dtype):
    zero, box = torch.zeros(2, dtype=dtype), (-torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype))
    assert is_subgradient(lambda t: t.abs().sum(), zero, zero + 0.5, box, points=64)
    assert not is_subgradient(lambda t: t.abs().sum(), zero, zero + 1.5, box, points=64)
    assert is_subgradient(lambda t: t.square().sum(), zero, zero + 0.5, box, points=64).certified


def test_a_region_of_plain_numbers_takes_the_dtype_of_the_point():
    zero = torch.zeros(1)
    assert is_subgradient(lambda t: t.abs().sum(), zero, zero + 0.5, (-1.0, 1.0)).witness[0].dtype == torch.float32


def test_infinite_values_are_taken_and_nan_is_not():
    half = torch.full((1,), 0.5, dtype=torch.float64)

    def inside(t):
        return torch.where(t.abs() <= 0.5, 0.0, torch.inf).sum()

    assert is_subgradient(inside, half, 3 * half, (-1.0, 1.0))
    assert not is_subgradient(inside, half, -half, (-1.0, 1.0))
    with pytest.raises(ValueError, match="f must be finite at x and a number in the region, got inf at x"):
        is_subgradient(inside, 2 * half, half, (-1.0, 1.0))
    with pytest.raises(ValueError, match="f must be finite at x and a number in the region"):
        is_subgradient(lambda t: torch.log(t).sum(), half, half, (-1.0, 1.0))
