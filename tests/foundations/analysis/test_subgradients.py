"""Subgradients: bad input, dtypes, batches."""

import math

import pytest
import torch

from lemmata.foundations import MaxAffine, is_subgradient, subdifferential_interval


def test_a_maximum_is_batched_and_shown():
    f = MaxAffine(torch.eye(3), torch.zeros(3))
    assert f(torch.zeros(4, 5, 3)).shape == (4, 5)
    assert f.active(torch.zeros(4, 3)).all()
    assert repr(f) == "MaxAffine(pieces=3, n=3)"


def test_slopes_of_another_shape_or_dtype_are_refused(unchecked):
    f = MaxAffine(torch.eye(2))
    with pytest.raises(ValueError, match="x must have 2 entries, got 3"):
        f.contains(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ValueError, match=r"slope must be a \(..., 2\) tensor to fit x"):
        f.contains(torch.zeros(2), torch.zeros(3))
    with pytest.raises(ValueError, match=r"offsets must be a \(..., 2\) tensor to fit slopes"):
        MaxAffine(torch.eye(2), torch.zeros(3))
    with pytest.raises(ValueError, match="tolerance must be > 0"):
        MaxAffine(torch.eye(2), tolerance=0)
    with pytest.raises(TypeError, match="slope must have the dtype of x"):
        is_subgradient(torch.sum, torch.zeros(1).double(), torch.zeros(1), (-1.0, 1.0))


def test_multipliers_rebuild_the_slope():
    f = MaxAffine(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    weights = f.multipliers(torch.zeros(2), torch.tensor([0.2, 0.1]))
    assert weights is not None
    torch.testing.assert_close(weights @ f.slopes, torch.tensor([0.2, 0.1]))
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))
    assert f.multipliers(torch.zeros(2), torch.tensor([1.0, 1.0])) is None


def test_ties_in_float32_are_ties_at_every_scale():
    generator = torch.Generator().manual_seed(0)
    for size in (1e-12, 1.0, 1e6):
        slopes, x = size * torch.randn(5, 3, generator=generator), torch.randn(3, generator=generator)
        f = MaxAffine(slopes, size - slopes @ x)
        assert f.active(x).all()
        pair = MaxAffine(slopes[:2], (size - slopes @ x)[:2])
        assert pair.contains(x, slopes[:2].mean(0))
        assert not pair.contains(x, slopes[:2].mean(0) + 0.01 * size)
        assert not MaxAffine(slopes, size * torch.arange(5) - slopes @ x).active(x)[:4].any()


def test_one_sided_slopes_need_doubles():
    with pytest.raises(TypeError, match="x must be float64"):
        subdifferential_interval(torch.abs, torch.zeros(1))
    with pytest.raises(ValueError, match="x must be finite"):
        subdifferential_interval(torch.abs, torch.tensor([math.nan], dtype=torch.float64))


def corner_of_planes(n):
    """A maximum of planes that all pass through one point but the last, which stays below it there; and that point."""
    generator = torch.Generator().manual_seed(n)
    x, slopes = torch.randn(n, generator=generator).double(), torch.randn(n + 3, n, generator=generator).double()
    offsets = 1.0 - slopes @ x
    offsets[-1] -= 0.5
    return MaxAffine(slopes, offsets), x


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_planes_through_a_point_are_active_there(n):
    f, x = corner_of_planes(n)
    expected = torch.tensor([True] * (n + 2) + [False])
    assert torch.equal(f.active(torch.stack([x, x])), expected.expand(2, -1))
    assert torch.equal(MaxAffine(1e9 * f.slopes, 1e9 * f.offsets).active(x), expected)
    assert torch.equal(f(x[None]), f(x)[None])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_multipliers_are_weights_of_a_mixture(n):
    f, x = corner_of_planes(n)
    mixture = torch.softmax(torch.arange(n + 2).double(), 0) @ f.slopes[:-1]
    weights = f.multipliers(x, mixture)
    assert weights is not None
    assert (weights >= 0).all()
    torch.testing.assert_close(weights @ f.slopes, mixture, rtol=0, atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_refused_slope_comes_with_a_point_that_its_plane_cuts_off(n):
    f, x = corner_of_planes(n)
    slope = 3 * f.slopes[:-1].abs().amax(0)
    found = is_subgradient(f, x, slope, (x - 2, x + 2), points=2048)
    assert (found.value, found.certified) == (False, True)
    (y,) = found.witness
    assert f(y) < f(x) + (y - x) @ slope


def test_between_two_slopes_lie_their_mixtures_alone():
    larger, tie = MaxAffine(torch.eye(2, dtype=torch.float64)), torch.ones(2, dtype=torch.float64)
    for weight in range(-5, 16):
        slope = torch.tensor([weight, 10 - weight], dtype=torch.float64) / 10
        assert larger.contains(tie, slope) == (0 <= weight <= 10)


@pytest.mark.parametrize("size", [1e9, 1.0, 0.0])
def test_what_rounding_cuts_off_is_no_cut(size):
    place, slope = torch.full((1,), 0.3, dtype=torch.float64), torch.full((1,), size, dtype=torch.float64)
    found = is_subgradient(lambda x: (size * x - 0.3 * size).sum(), place, slope, (-1.0, 1.0))
    assert (found.value, found.certified) == (True, False)


def test_one_sided_slopes_far_from_the_origin():
    far = torch.full((1,), 2.0**60, dtype=torch.float64)
    low, high = subdifferential_interval(lambda x: (x - 2.0**60).abs(), far)
    assert (low.item(), high.item()) == (-1.0, 1.0)


def test_the_absolute_value_is_a_maximum_of_two_lines():
    absolute = MaxAffine(torch.tensor([[1.0], [-1.0]]))
    x = torch.linspace(-2.0, 2.0, 9)
    assert torch.equal(absolute(x[:, None]), x.abs())
    assert absolute.is_minimum(torch.zeros(1))
