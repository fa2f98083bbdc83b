"""Bounds on logarithms and powers: dtypes and bad input."""

import pytest
import torch

from lemmata.foundations.analysis.elementary_bounds import log1p_bounds, power_bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    x = torch.tensor([0.1, 0.5], dtype=dtype)
    for found in (power_bound(x, 4), *log1p_bounds(x)):
        assert found.dtype == dtype


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: log1p_bounds(torch.tensor([0.0, -1.0])), ValueError, "x must be > -1.*got -1"),
        (lambda: power_bound(torch.tensor([0.5, 3.0]), 2), ValueError, "epsilon must be <= 1.*got 3"),
        (lambda: power_bound(torch.tensor(0.5), -1), ValueError, "n must be >= 0, got -1"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
