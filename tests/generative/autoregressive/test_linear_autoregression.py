"""Linear autoregression: peers, spectra, stationarity, several series, gradients, and what is refused."""

import math

import pytest
import torch
from scipy import linalg, signal

from lemmata.generative.autoregressive import LinearAutoregression, autocovariances, levinson_durbin


def model(dtype=torch.float64):
    return LinearAutoregression.of(torch.tensor([0.9, -0.5, 0.2], dtype=dtype), variance=0.7, mean=1.5)


def test_the_recursion_solves_the_toeplitz_system_of_every_order():
    gamma = autocovariances(torch.randn(3, 60, generator=torch.Generator().manual_seed(0)).double(), 6)
    predictors, left = levinson_durbin(gamma)
    for order in range(1, 7):
        solved = linalg.solve_toeplitz(gamma[:order].numpy(), gamma[1 : order + 1].numpy())
        assert torch.allclose(predictors[order], torch.from_numpy(solved))
        assert left[order] == pytest.approx(float(gamma[0] - torch.from_numpy(solved) @ gamma[1 : order + 1]))


def test_the_spectrum_is_that_of_the_filter_and_integrates_to_the_variance():
    ar = model()
    frequency = torch.linspace(0, 0.5, 101).double()
    _, response = signal.freqz([1.0], [1.0, -0.9, 0.5, -0.2], worN=2 * math.pi * frequency.numpy())
    assert torch.allclose(ar.spectrum(frequency), 0.7 * torch.from_numpy(response).abs() ** 2)
    whole = float(ar.spectrum((torch.arange(4096) / 4096).double()).mean().detach())
    assert whole == pytest.approx(float(torch.exp(-2 * _log_density_height(ar)) / (2 * math.pi)), rel=1e-6)


def _log_density_height(ar):
    """The log density of one value at its mean, which says its variance."""
    return ar.log_prob(torch.tensor([[1.5]]).double())[0].detach()


def test_both_fits_find_what_made_the_series():
    series = model().sample(20, length=2000, generator=torch.Generator().manual_seed(0))
    for method in ("least_squares", "yule_walker"):
        found = LinearAutoregression(3, dtype=torch.float64).fit(series, method)
        assert torch.allclose(found.coefficients, model().coefficients, atol=0.03), method
        assert found.variance == pytest.approx(0.7, rel=0.03)
        assert float(found.mean.detach()) == pytest.approx(1.5, abs=0.05)


def test_the_weights_are_statsmodels_ones():
    statsmodels = pytest.importorskip("statsmodels.tsa.ar_model")
    series = model().sample(1, length=500, generator=torch.Generator().manual_seed(0))
    peer = statsmodels.AutoReg((series[0] - series.mean()).numpy(), 3, trend="n").fit()
    found = LinearAutoregression(3, dtype=torch.float64).fit(series)
    assert torch.allclose(found.coefficients, torch.from_numpy(peer.params))


def test_yule_walker_is_stationary_where_least_squares_is_not():
    growing = 1.3 ** torch.arange(12.0).double()[None] + 0.01 * torch.randn(1, 12).double()
    by_squares = LinearAutoregression(1, dtype=torch.float64).fit(growing)
    assert not by_squares.stationary
    assert LinearAutoregression(1, dtype=torch.float64).fit(growing, "yule_walker").stationary
    with pytest.raises(ValueError, match="coefficients must be stationary, got reflections"):
        by_squares.log_prob(growing)
    with pytest.raises(ValueError, match="coefficients must be stationary"):
        by_squares.sample(2, length=3)
    assert by_squares.conditional_log_prob(growing).isfinite().all()


def test_the_loss_is_flat_at_the_least_squares():
    series = model().sample(2, length=300, generator=torch.Generator().manual_seed(0))
    fitted = LinearAutoregression(3, dtype=torch.float64).fit(series)
    fitted.loss(series).backward()
    assert fitted.weight.grad.abs().max() < 1e-12
    assert abs(float(fitted.log_variance.grad)) < 1e-12


def test_forecasts_are_weighted_sums_of_the_values_before():
    ar, x = model(torch.float32), torch.randn(2, 6)
    centred = x - 1.5
    by_hand = 1.5 + 0.9 * centred[:, 2:-1] - 0.5 * centred[:, 1:-2] + 0.2 * centred[:, :-3]
    assert torch.allclose(ar(x), by_hand, atol=1e-6)
    assert ar.log_prob(x[:1]).shape == (1,)


def test_a_generator_repeats_a_sample():
    first, second = (model().sample(3, length=9, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (3, 9)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="order must be >= 1, got 0"):
        LinearAutoregression(0)
    with pytest.raises(ValueError, match="at least 4 steps"):
        model()(torch.zeros(2, 3).double())
    with pytest.raises(ValueError, match="method must be"):
        model().fit(torch.randn(1, 50).double(), "burg")
    with pytest.raises(TypeError, match=r"use x.float\(\)"):
        model().log_prob(torch.ones(1, 9, dtype=torch.long))
    with pytest.raises(ValueError, match="a variance of zero has no density"):
        LinearAutoregression(1).fit(torch.ones(1, 20))
    with pytest.raises(ValueError, match="lags must be <= 4, got 5"):
        autocovariances(torch.randn(1, 5), 5)
