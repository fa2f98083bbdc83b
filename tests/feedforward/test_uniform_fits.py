"""Fits with the least largest error: scales, dependent features, refusals."""

import pytest
import torch

from lemmata.feedforward import uniform_fit

X = torch.linspace(-1, 1, 101, dtype=torch.float64)


def powers(degree):
    return torch.stack([X**k for k in range(degree + 1)], dim=1)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_scales_of_features_and_values_change_nothing(scale):
    assert uniform_fit(scale * powers(2), X.abs()).distance == pytest.approx(1 / 8, rel=1e-6)
    fit = uniform_fit(powers(2), scale * X.abs())
    assert fit.distance == pytest.approx(scale / 8, rel=1e-6)
    assert fit.weights.tolist() == pytest.approx([scale / 8, 0.0, scale], rel=1e-6, abs=1e-6 * scale)


def test_the_error_is_largest_at_one_point_more_than_there_are_features():
    fit = uniform_fit(powers(4), X.exp())
    errors = X.exp() - powers(4) @ fit.weights
    extreme = errors[errors.abs() > 0.999 * fit.distance].sign()
    assert int((extreme.diff() != 0).sum()) >= 5  # they alternate: Chebyshev's theorem


def test_features_that_agree_or_vanish_do_no_harm():
    twice = torch.cat([powers(2), powers(2), 1e-14 + powers(2)], dim=1)
    assert uniform_fit(twice, X.abs()).distance == pytest.approx(1 / 8, rel=1e-6)
    assert uniform_fit(torch.zeros(101, 2, dtype=torch.float64), X).distance == 1.0
    assert uniform_fit(powers(1), 0 * X).distance == pytest.approx(0.0, abs=1e-9)


def test_a_fit_is_no_further_than_any_other_and_single_precision_is_kept():
    torch.manual_seed(0)
    features, y = torch.randn(50, 5), torch.randn(50)
    fit = uniform_fit(features, y)
    assert fit.weights.dtype == torch.float32
    other = torch.linalg.lstsq(features, y[:, None]).solution[:, 0]
    assert fit.distance < float((features @ other - y).abs().max())
    assert uniform_fit(features[:1], y[:1]).distance == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("features", "y", "message"),
    [
        (torch.ones(3), torch.ones(3), r"features must be a \(points, features\) tensor"),
        (torch.ones(3, 1), torch.ones(2), "y must have 3 entries, got 2"),
        (torch.full((3, 1), torch.nan), torch.ones(3), "features must be finite"),
    ],
)
def test_bad_input_is_refused(unchecked, features, y, message):
    with pytest.raises(ValueError, match=message):
        uniform_fit(features, y)
