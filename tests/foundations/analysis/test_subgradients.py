"""Subgradients: bad input, witnesses, rounding, proofs."""

import pytest
import torch

from lemmata.foundations import is_subgradient


def test_slopes_of_another_shape_or_dtype_are_refused(unchecked):
    with pytest.raises(ValueError, match="x must have 1 entry, got 3"):
        is_subgradient(torch.sum, torch.zeros(3), torch.zeros(3), (-1.0, 1.0))
    with pytest.raises(ValueError, match=r"slope must be a \(..., 1\) tensor to fit x"):
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
    assert (found.value, found.certified) == (False, True)
    (y,) = found.witness
    assert f(y) < f(x) + (y - x) @ slope


@pytest.mark.parametrize("size", [1e9, 1.0, 0.0])
def test_what_rounding_cuts_off_is_no_cut(size):
    place, slope = torch.full((1,), 0.3, dtype=torch.float64), torch.full((1,), size, dtype=torch.float64)
    found = is_subgradient(lambda x: (size * x - 0.3 * size).sum(), place, slope, (-1.0, 1.0))
    assert (found.value, found.certified) == (True, False)
