"""The empirical risk: scipy's intervals, bounds that hold for any distribution, batches, and refusals."""

import math

import pytest
import torch
from scipy import stats

from lemmata.feedforward import empirical_risk


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_without_bounds_the_interval_is_students(confidence):
    losses = torch.randn(4, 9, dtype=torch.double).exp()
    found = empirical_risk(losses, confidence)
    low, high = stats.t.interval(confidence, 8, losses.mean(1), losses.std(1) / 3)
    torch.testing.assert_close(found.low, torch.as_tensor(low), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found.high, torch.as_tensor(high), rtol=1e-12, atol=1e-14)
    assert torch.equal(found.risk, losses.mean(1))
    assert found.examples == 9
    assert repr(found) == "RiskEstimate(shape=(4,), examples=9)"


def test_with_bounds_it_is_the_empirical_bernstein_interval_inside_them():
    losses = torch.tensor([1.0, 2.0, 1.0, 2.0], dtype=torch.double).repeat(500)
    found = empirical_risk(losses, 0.9, bounds=(0.0, 4.0))
    log = math.log(4 / 0.1)
    reach = float(losses.std()) * math.sqrt(2 * log / 2000) + 7 * 4 * log / (3 * 1999)
    assert (float(found.low), float(found.high)) == pytest.approx((1.5 - reach, 1.5 + reach), rel=1e-12)
    few = empirical_risk(losses[:3], 0.9, bounds=(0.0, 4.0))
    assert (float(few.low), float(few.high)) == (0.0, 4.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_stays(dtype):
    found = empirical_risk(torch.rand(5, dtype=dtype), bounds=(0, 1))
    assert found.risk.dtype == found.low.dtype == found.high.dtype == dtype


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("losses", "words", "said"),
    [
        (torch.rand(1), {}, r"two examples or more on their last axis, got shape \(1,\)"),
        (torch.tensor(1.0), {}, r"two examples or more on their last axis, got shape \(\)"),
        (torch.rand(5).log_(), {"bounds": (0, 1)}, r"bounds must be .* got \(0, 1\): the losses lie from -"),
        (torch.rand(5), {"bounds": (1, 0)}, r"bounds must be \(least, most\) of any loss, got \(1, 0\)"),
        (
            torch.rand(5),
            {"bounds": (0,)},
            r"bounds must be \(least, most\) of any loss, got \(0,\): use \(0, 1\) for errors",
        ),
        (torch.rand(5), {"bounds": 1.0}, r"bounds must be \(least, most\) of any loss, got 1.0"),
        (torch.rand(5), {"bounds": (0, math.inf)}, "bounds must be finite, got inf"),
        ([0.5, 0.5], {}, r"losses must be a tensor, got list"),
        (torch.rand(5), {"confidence": 1.0}, "confidence must be > 0 and < 1, got 1.0"),
        (torch.tensor([1.0, math.nan]), {}, "losses must be finite, found 1 NaN value"),
        (torch.tensor([0, 1]), {}, "losses must be floating point"),
    ],
)
def test_bad_input_is_refused(losses, words, said):
    with pytest.raises((ValueError, TypeError), match=said):
        empirical_risk(losses, **words)
