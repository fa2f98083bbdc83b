"""Geometric series: dtypes, gradients at ratio one, bad input."""

import pytest
import torch

from lemmata.foundations.analysis.geometric_series import geometric_remainder, geometric_sum


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    x = torch.tensor([0.1, 0.5], dtype=dtype)
    for found in (geometric_sum(1.0, x), geometric_sum(1.0, x, terms=3), geometric_remainder(2, x, terms=3)):
        assert found.dtype == dtype


def test_gradients_flow_through_a_series_at_ratio_one():
    ratio = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    geometric_sum(1.0, ratio, terms=3).sum().backward()
    assert ratio.grad is not None
    assert torch.isfinite(ratio.grad).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: geometric_sum(1.0, torch.tensor([0.5, -1.0])),
            ValueError,
            r"ratio must be in \(-1, 1\).*got -1: give",
        ),
        (lambda: geometric_remainder(1.0, torch.tensor(2.0), 3), ValueError, "ratio must be in"),
        (lambda: geometric_sum(1.0, torch.tensor(0.5), terms=-1), ValueError, "terms must be >= 0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
