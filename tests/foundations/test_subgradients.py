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
